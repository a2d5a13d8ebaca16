"""What an operator asks of memU's tables, whatever their user model: how much there is, and what nobody needs."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.memu.statements import TOKENS_AT_ONCE
from ...dialect.memu.tables import CORE
from ...engine.operation import Batch, Operation
from .database import own_prefix
from .operations import MemuStore


class AnyScope(BaseModel):
    """No field of a scope is asked for."""


class MemuCaring:
    """What looks after the tables.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._store = MemuStore(own_prefix(config), AnyScope, 0)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self._store.schema

    def count(self) -> Operation[int]:
        """How many records of the tenant there are, of all kinds. One round trip."""
        sql, tenant = self._store.sql, self._store.tenant
        results = yield Batch(tuple(sql.count(role, tenant) for role in CORE), atomic=False)
        return sum(cast(int, result.rows[0][0]) for result in results)

    def tokens(self) -> Operation[int]:
        """How many tokens of writes there are, of all tenants. One round trip."""
        (found,) = yield Batch.of(self._store.sql.count_settled())
        return cast(int, found.rows[0][0])

    def vacuum(self) -> Operation[int]:
        """Remove tokens of writes that nobody repeats any more, some at a time; returns how many."""
        removed = 0
        while True:
            (forgotten,) = yield Batch.of(self._store.sql.forget_settled())
            removed += forgotten.affected
            if forgotten.affected < TOKENS_AT_ONCE:
                return removed
