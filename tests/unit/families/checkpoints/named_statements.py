"""`operations`: checkpoint operations whose statements are their names, and answers to them by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect import Query, Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.saving import NewRow
from locus_mysql.dialect.checkpoints.tables import checkpoint_schema
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Batch, Outdated, Results
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.leases import Lease
from locus_mysql.families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from locus_mysql.families.checkpoints.operations import CheckpointOperations

from ...driven import Driven, DrivenOperations, Landed

KEY = ("tenant", "t")
BIG = {"messages": ["x" * 500 for _ in range(20)]}
LONGER = {"messages": [*BIG["messages"], "more"]}
TAKES = ("take_seq", "take_seq_of_live", "take_seq_if_unchanged")
RETIRE = "remove_unneeded remove_unneeded_2"
TOKEN = b"token of the row"


class Named:
    """A dialect whose statements consist of their names, with their arguments as parameters."""

    names = {"checkpoints": "locus_checkpoints", "threads": "locus_threads"}  # noqa: RUF012 - as a dialect has it
    schema = checkpoint_schema("locus_", "agents", search=True, search_parser="default")

    def __getattr__(self, group: str) -> Any:
        return _Group(group)


class _Group:
    def __init__(self, name: str) -> None:
        self._real = getattr(CheckpointDialect, name).func

    def __getattr__(self, method: str) -> Any:
        returned = get_type_hints(getattr(get_type_hints(self._real)["return"], method))["return"]
        kinds = get_args(returned) if get_origin(returned) is tuple else (returned,)
        kinds = (Statement, Statement) if Ellipsis in kinds else kinds

        def statement(*arguments: Any, **options: Any) -> Any:
            params = (*arguments, *options.values())
            made = tuple(
                _named(method if index == 1 else f"{method}_{index}", params if index == 1 else (), kind)
                for index, kind in enumerate(kinds, 1)
            )
            return made if get_origin(returned) is tuple and method != "copy_thread" else made[0]

        return statement


def _named(name: str, params: tuple[Any, ...], kind: Any) -> Statement:
    """Return a statement of this name; a query with the same row type if the real one is a query."""
    return Query(name, params, row=get_args(kind)[0]) if get_origin(kind) is Query else Statement(name, params)


def operations(**options: Any) -> Any:
    named: Any = Named()
    return DrivenOperations(CheckpointOperations(MySQLConfig(**options), named))


def new(state: dict[str, Any], checkpoint_id: str | None = None, text: str = "", **options: Any) -> NewCheckpoint:
    return NewCheckpoint(lambda _: EncodedCheckpoint(encode(state)), lambda _: (text, False), checkpoint_id, **options)


def names(batch: Batch) -> str:
    return " ".join(statement.sql for statement in batch.statements)


def params(batch: Batch, name: str) -> tuple[Any, ...]:
    return next(statement.params for statement in batch.statements if statement.sql == name)


def row_of(batch: Batch) -> NewRow:
    return next(p for one in batch.statements for p in one.params if isinstance(p, NewRow))  # type: ignore[comparison-overlap]


def answer(batch: Batch, fate_unknown: bool = False, **by_name: Result) -> Results:
    """Answer each statement with one affected row, or as given by its name."""
    given = defaultdict(lambda: Result(affected=1, last_insert_id=1), by_name)
    return Results([given[one.sql] for one in batch.statements], batch, fate_unknown=fate_unknown)


def done(operation: Driven, results: Results | list[Result] | Landed) -> Any:
    with pytest.raises(StopIteration) as ended:
        operation.send(results)
    return ended.value.value


def save(ops: Any, what: NewCheckpoint, seq: int = 1) -> Batch:
    operation = ops.saving.save(*KEY, what)
    batch = next(operation)
    done(operation, answer(batch, **{name: Result(affected=1, last_insert_id=seq) for name in TAKES}))
    return batch


def save_to(ops: Any, thread_id: str) -> None:
    operation = ops.saving.save("tenant", thread_id, new(BIG))
    done(operation, answer(next(operation)))


def outdated() -> Outdated:
    return Outdated("a guard failed")


def three(newest: Iterable[Any] = (), named: Iterable[Any] = (), whose: Iterable[Any] = ()) -> list[Result]:
    return [Result(rows=tuple(rows)) for rows in (newest, named, whose)]


def lease(ops: Any, where: tuple[str, str] = KEY) -> Lease:
    """Enter a turn for the test."""
    taken = Lease(where, 20.0)
    ops.context.turns.enter(taken)
    return taken


class Server:
    """Answers statements from lists of pages by statement name."""

    def __init__(self, **pages: list[Any]) -> None:
        self.pages = pages
        self.sent: list[str] = []
        self.asked: list[Statement] = []

    def run(self, operation: Driven) -> Any:
        results: Any = None
        error: Exception | None = None
        try:
            while True:
                batch = operation.throw(error) if error else operation.send(results)
                self.sent.append(names(batch))
                self.asked.extend(batch.statements)
                results, error = self.answer(batch)
        except StopIteration as ended:
            return ended.value

    def answer(self, batch: Batch) -> tuple[Results | None, Exception | None]:
        found = []
        earlier_attempt = None
        for one in batch.statements:
            given = self.pages[one.sql].pop(0) if self.pages.get(one.sql) else ()
            if isinstance(given, Exception):
                return None, given
            if given == "carried out":
                earlier_attempt = (1,)
                given = ()
            result = Result(affected=given) if isinstance(given, int) else Result(rows=tuple(given))
            found.append(result)
        return Results([] if earlier_attempt else found, batch, earlier_attempt=earlier_attempt), None

    def params(self, name: str) -> list[tuple[Any, ...]]:
        return [one.params for one in self.asked if one.sql == name]


REMOVES = "{} guard record_all record_count delete_all drop find"


PRUNES = "lock guard delete_left_behind record_all clear_ids_before record_affected sweep sweep_2"
