"""Upgrading the tables of families to this version's layouts: `migrate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from pydantic import SecretStr

from ..config import ENVIRONMENT, Environment, Keywords, MySQLConfig
from ..dialect import Schema
from ..dialect.schema import Step
from ..engine.bootstrap import has_own_tables
from ..engine.migration import Plan
from ..engine.migration import migrate as migrate_tables
from ..engine.operation import Operation
from ..runtime.database import Database, configure
from .family import Family
from .registry import families, find_family

#: Longest time for one step, in seconds: InnoDB may need hours for an index of a large table.
STEP_LIMIT_S = 7 * 86_400.0


def migrate(
    where: str | SecretStr | MySQLConfig | Environment = ENVIRONMENT,
    *,
    family: str | None = None,
    report: Callable[[Step], None] | None = None,
    **options: Unpack[Keywords],
) -> list[Plan]:
    """Upgrade the tables of older versions to this version's layouts; such as from a migration of Alembic.

    May be repeated after any failure. Several processes may call it at once: one works, the others wait for a minute.

    Args:
        where: A DSN or a `MySQLConfig`; or give its options as keywords.
        family: The name of the only family to upgrade; by default, all families whose tables exist.
        report: Called with each step before it is carried out.
        options: Options of `MySQLConfig`.

    Returns:
        The plan of each family that has tables, as it was before.

    Raises:
        NewerLayout: The tables cannot be upgraded by this version.
        Unavailable: Another process migrates them, or transactions keep a table locked.
        PrivilegeMissing: The account lacks ALTER.
    """
    config = migrating(configure(where, options))
    with Database(config) as database:
        engine = database.synchronous
        return [
            engine.run(migrate_tables(config, schema, report or _ignore))
            for one in asked(family)
            if (schema := one.schema(config)) and engine.run(exists(one, schema, named=family is not None))
        ]


def asked(name: str | None) -> Sequence[Family]:
    """Return the families to migrate: all, or the named one."""
    return families() if name is None else [find_family(name)]


def exists(family: Family, schema: Schema, *, named: bool) -> Operation[bool]:
    """Check whether the tables of a family may have to be migrated; those of other programs must not.

    Args:
        family: The family.
        schema: Its tables.
        named: Whether the caller named the family.
    """
    if family.on_request and not named:
        return (yield from has_own_tables(schema))
    return True


def migrating(config: MySQLConfig) -> MySQLConfig:
    """Return the options with one connection, which keeps the migration's lock, and time for long steps."""
    return config.model_copy(update={"pool_size": 1, "read_timeout_s": STEP_LIMIT_S, "pool_max_age_s": STEP_LIMIT_S})


def _ignore(step: Step) -> None:
    """Report nothing."""
