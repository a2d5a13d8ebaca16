"""Vacuum and health, as generators that do no I/O: sessions are counted, and expired ones removed one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.working.entries import TOKENS_AT_ONCE
from ...engine.operation import Batch, Operation
from .operations import WorkingOperations

#: How many sessions are looked for at once; each is removed in a transaction of its own.
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Held:
    """What a tenant's sessions take.

    Args:
        sessions: How many there are, without expired ones.
        size_bytes: Bytes of their variables, task states and notes; without checkpoints.
    """

    sessions: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Waste:
    """What is stored, or was removed, that nobody needs; of all tenants.

    Args:
        expired: Sessions that have expired.
        tokens: What tells of writes that were carried out; needed for a quarter of an hour.
    """

    expired: int
    tokens: int


class WorkingCare:
    """What looks after the tables.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = WorkingOperations(config)
        self.sql = self._operations.sql

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self.sql.schema

    def held(self, tenant: str) -> Operation[Held]:
        """What a tenant's sessions take."""
        (found,) = yield Batch.of(self.sql.care.count(tenant))
        return Held(*(int(cast(int, count)) for count in found.rows[0]))

    def waste(self) -> Operation[Waste]:
        """How much there is that nobody needs, or will not need soon. One round trip; changes nothing."""
        results = yield Batch(self.sql.care.count_waste(), atomic=False)
        return Waste(*(int(cast(int, result.rows[0][0])) for result in results))

    def vacuum(self) -> Operation[Waste]:
        """Remove what nobody needs, in transactions that are short; returns how much.

        What writers do on their own now and then, a few rows at a time.
        """
        expired = tokens = 0
        while some := (yield from self._operations.sweep(AT_ONCE)):
            expired += some
        while True:
            (forgotten,) = yield Batch.of(self.sql.entries.forget_settled())
            tokens += forgotten.affected
            if forgotten.affected < TOKENS_AT_ONCE:
                return Waste(expired, tokens)
