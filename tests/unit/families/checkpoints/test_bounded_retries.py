"""Writes that others overtake every time end with an error, or without what they wished, after some attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Outdated
from locus_mysql.errors import Unavailable
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.preconditions import Precondition
from locus_mysql.families.checkpoints.records import EncodedCheckpoint, NewCheckpoint, ParentRule
from locus_mysql.families.checkpoints.statements.saving import WholeRow
from locus_mysql.families.checkpoints.store import CheckpointOperations, StoreOperations

from ...driven import Driven, DrivenOperations

KEY = ("tenant", "t")
TOKEN = b"token of the row"

#: A row of a thread, which no checkpoint names any longer: others build on it.
ROW = WholeRow(1, TOKEN, b"", None, 1, None, None, None, datetime(2026, 1, 1), TOKEN, 1)


def operations(**options: Any) -> Any:
    made = StoreOperations(MySQLConfig(dsn="mysql://nobody@localhost/unused", **options))
    return DrivenOperations(next(one for one in vars(made).values() if isinstance(one, CheckpointOperations)))


def new(**options: Any) -> NewCheckpoint:
    return NewCheckpoint(lambda _: EncodedCheckpoint(encode({"a": 1})), lambda _: ("", False), **options)


def overtaken(operation: Driven, *answers: Sequence[Any]) -> int:
    """Refuse each write and answer each batch of queries, for a long while; return the number of these."""
    batch, asked = next(operation), 0
    for _ in range(100):
        while batch.outcome_query is None:
            batch = operation.send([Result(rows=tuple(rows)) for rows in answers[: len(batch.statements)]])
            asked += 1
        batch = operation.throw(Outdated("somebody was faster"))
    return asked


def test_a_save_under_a_condition_that_holds() -> None:
    saving = operations().saving.save(*KEY, new(), Precondition(newest_id="x"))
    with pytest.raises(Unavailable, match="during every attempt"):
        overtaken(saving, [("x", TOKEN)], [], [])


def test_a_rewrite() -> None:
    with pytest.raises(Unavailable, match="during every attempt"):
        overtaken(operations().whole_threads.rewrite(*KEY, lambda *_: new()), [ROW])


def test_a_save_after_the_newest_does_not_insist_on_it() -> None:
    saving = operations().saving.save(*KEY, new(parent=ParentRule.NEWEST))
    assert overtaken(saving, []) == 10
