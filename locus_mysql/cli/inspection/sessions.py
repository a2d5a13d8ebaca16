"""``session``: lists, shows and ends sessions of working memory."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from ...families.inspection.records import Page, SessionRow
from ...families.working import calls
from ...families.working.storages.mysql_operations import WorkingOperations
from ...inspection.inspector import Inspector
from ..sanitize import sanitize_line
from .command import PAGE, Clock
from .measures import format_size
from .records import Records, add_records, run_records
from .screen import Column


def add_session(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``session``."""
    add_records(parser, SESSIONS)


def run_session(arguments: argparse.Namespace) -> int:
    """Run a subcommand."""
    return run_records(arguments)


def _add_pattern(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pattern", nargs="?", default="*", metavar="GLOB", help="only ids that match, such as 'order-*'"
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the session's id")


def _name(arguments: argparse.Namespace) -> str:
    return sanitize_line(f"session {arguments.session}")


async def _page(inspector: Inspector, arguments: argparse.Namespace, cursor: str | None) -> Page[SessionRow]:
    return await inspector.sessions(limit=min(arguments.limit, PAGE), cursor=cursor, pattern=arguments.pattern)


def _columns(arguments: argparse.Namespace, clock: Clock) -> Sequence[Column]:
    numbers = [Column(title, right=True, whole=True) for title in ("variables", "size", "age")]
    return (Column("session", "bold"), *numbers)


def _cells(row: SessionRow, clock: Clock) -> Sequence[str]:
    age = "" if row.updated_at is None else clock.age(row.updated_at)
    return (row.session_id, f"{row.variables:,}", format_size(row.size_bytes), age)


async def _find(inspector: Inspector, arguments: argparse.Namespace) -> Any:
    return await inspector.session(arguments.session)


async def _delete(inspector: Inspector, arguments: argparse.Namespace) -> bool:
    operations = WorkingOperations(inspector.config)
    address = calls.Address(inspector.config.tenant, arguments.session)
    call = calls.Call("end", address, (calls.End(),), token=os.urandom(16))
    reply = await inspector.database.asynchronous.run(operations.execute(call), operations.schema, "validate")
    return bool(reply.results[0])


SESSIONS = Records(
    noun="session",
    owner="sessions",
    family="working",
    add_filter=_add_pattern,
    add_name=_add_name,
    name=_name,
    page=_page,
    columns=_columns,
    cells=_cells,
    find=_find,
    delete=_delete,
)
