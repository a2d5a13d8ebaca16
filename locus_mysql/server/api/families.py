"""Whether the tables of a family are there: what is only read makes none."""

from __future__ import annotations

from typing import Literal, TypeAlias

from starlette.requests import Request

from ...dialect import Schema
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.working.dialect import WorkingDialect
from ...engine.bootstrap import has_own_tables
from ..problems import Problem
from ..services import Services, services_of

Family: TypeAlias = Literal["agents", "memories", "working"]

_NAMES: dict[Family, str] = {"agents": "threads", "memories": "long-term memory", "working": "working memory"}


async def is_there(request: Request, family: Family) -> bool:
    """Whether the tables of a family are there; if not, nothing was kept yet, and the first write makes them.

    The server is asked until they are there.

    Raises:
        Problem: They are not there, and the service may not make them.
    """
    services = services_of(request)
    if family in services.families:
        return True
    if await services.database.asynchronous.run(has_own_tables(_schema(services, family))):
        services.families.add(family)
        return True
    if services.config.ddl_mode != "create":
        raise Problem(404, "not_kept", f"This service keeps no {_NAMES[family]}: the database has no tables for it.")
    return False


async def check_kept(request: Request, family: Family) -> None:
    """Let a write go on where the tables of its family are, or where it may make them.

    Raises:
        Problem: They are not there, and the service may not make them.
    """
    await is_there(request, family)


def _schema(services: Services, family: Family) -> Schema:
    prefix = services.config.table_prefix
    if family == "agents":
        return CheckpointDialect(prefix, "agents").schema
    return MemoryDialect(prefix).schema if family == "memories" else WorkingDialect(prefix).schema
