"""Wrong arguments are named before anything is sent, and a sweep counts what it removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Outdated
from locus_mysql.errors import InvalidInput
from locus_mysql.families.transcripts.operations import TranscriptOperations
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.writing import ITEMS_LIMIT
from tests.unit.driven import Driven, DrivenOperations

KEY = TranscriptKey("kind", "", "name")


@pytest.fixture
def operations() -> Any:
    return DrivenOperations(TranscriptOperations(MySQLConfig(dsn="mysql://user@localhost/app")))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda store: store.append("name", []), "key of a transcript must be a TranscriptKey, not str"),
        (lambda store: store.append(KEY._replace(kind=""), []), "kind of a transcript is empty"),
        (lambda store: store.append(KEY._replace(kind="k" * 33), []), "33 bytes long; the limit is 32"),
        (lambda store: store.append(KEY._replace(name="é" * 401), []), "802 bytes long; the limit is 800"),
        (lambda store: store.append(KEY._replace(part="\0"), []), "part of a transcript holds a NUL"),
        (lambda store: store.append(KEY, [NewItem(one) for one in range(ITEMS_LIMIT + 1)]), "add 10,000 items at most"),
        (lambda store: store.append(KEY, [NewItem(object())]), "The item"),
        (lambda store: store.write([Write(KEY), Write(KEY)]), "Two of the writes are to one transcript"),
        (lambda store: store.append(KEY, None), "items must be a list of NewItem values, not NoneType"),
        (lambda store: store.append(KEY, "text"), "items must be a list of NewItem values, not str"),
        (lambda store: store.append(KEY, [1]), "Each of the items must be a NewItem, not int"),
        (lambda store: store.append(KEY, [NewItem(1, cast(Any, 5))]), "id of an item must be text"),
        (lambda store: store.append(KEY, [], header=5), "header must be a Header, not int"),
        (lambda store: store.append(KEY, [], expected="x"), "expected must be a whole number"),
        (lambda store: store.write(5), "writes must be a list of Write values"),
        (lambda store: store.write([Write(KEY, cast(Any, [1]))]), "Each of the items must be a NewItem"),
        (lambda store: store.get(5), "must be a TranscriptKey, not int"),
        (lambda store: store.get_all(5), "keys must be a list of TranscriptKey values"),
        (lambda store: store.read(None), "must be a TranscriptKey, not NoneType"),
        (lambda store: store.read(KEY, after="x"), "after must be a whole number"),
        (lambda store: store.delete_if(KEY, expected="x"), "expected must be a whole number"),
        (lambda store: store.sweep("x"), "limit must be a whole number"),
    ],
)
def test_a_wrong_argument_is_named(operations: Any, call: Callable[[Any], Driven], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        next(call(operations))


def test_a_sweep_does_not_count_what_others_wrote_meanwhile(operations: Any) -> None:
    sweep = operations.sweep()
    next(sweep)
    found = tuple(("default", b"kind", b"", name, b"", bytes(16), "", 0) for name in (b"one", b"two"))
    sweep.send([Result(rows=found)])
    sweep.send([Result(affected=1), Result(), Result(affected=2)])
    with pytest.raises(StopIteration) as done:
        sweep.throw(Outdated("written to"))
    assert done.value.value == 1
