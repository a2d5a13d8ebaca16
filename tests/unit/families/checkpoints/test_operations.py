"""Operations driven with plain values: the batches they yield, and their results for given answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.loading import CHAIN_ROWS
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Batch, Duplicate, Outdated, Results
from locus_mysql.errors import (
    CorruptCheckpoint,
    InvalidInput,
    PrivilegeMissing,
    ReadOnlyServer,
    SchemaMismatch,
    ThreadExists,
    Unavailable,
)
from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.new_checkpoint import EncodedCheckpoint, NewCheckpoint
from locus_mysql.families.checkpoints.operations import CheckpointOperations
from locus_mysql.families.checkpoints.state_rows import row_seal
from locus_mysql.families.checkpoints.store import StoreOperations

from ...driven import Driven, DrivenOperations, Landed
from .states import CLEAR

KEY = ("tenant", "t")


def operations(**options: Any) -> Any:
    return DrivenOperations(CheckpointOperations(MySQLConfig(**options), CheckpointDialect()))


def new(state: dict[str, Any], checkpoint_id: str | None = "c") -> NewCheckpoint:
    return NewCheckpoint(lambda _: EncodedCheckpoint(encode(state)), lambda _: ("", False), checkpoint_id)


def finish(operation: Driven, results: Results | list[Result] | Landed) -> Any:
    """Send an operation its last results, and return its value."""
    with pytest.raises(StopIteration) as done:
        operation.send(results)
    return done.value.value


def answers(batch: Batch, affected: int = 1, last_insert_id: int = 1) -> Results:
    results = [Result(affected=affected, last_insert_id=last_insert_id) for _ in batch.statements]
    return Results(results, batch)


BIG = {"messages": ["x" * 500 for _ in range(20)]}


def save(ops: Any, state: dict[str, Any], seq: int, name: str) -> Batch:
    operation = ops.saving.save("tenant", "t", new(state, name))
    batch = next(operation)
    assert finish(operation, answers(batch, last_insert_id=seq)) == name
    return batch


def test_a_save_is_one_recognisable_batch() -> None:
    batch = save(operations(), {"a": 1}, 1, "c")
    assert batch.outcome_query is not None
    assert "c" in batch.outcome_query.params


def test_a_save_whose_earlier_try_landed_succeeds() -> None:
    operation = operations().saving.save("tenant", "t", new({"a": 1}))
    next(operation)
    assert finish(operation, Landed(7)) == "c"


def test_a_save_whose_earlier_try_landed_and_was_replaced_since_succeeds_and_is_not_remembered() -> None:
    ops = operations()
    operation = ops.saving.save("tenant", "t", new({"a": 1}))
    next(operation)
    assert finish(operation, Landed(None)) == "c"
    assert ops.context.cache.snapshot(("tenant", "t")).newest == ()


def test_a_delta_whose_base_was_deleted_is_refused_and_saved_as_a_whole_state() -> None:
    ops = operations()
    save(ops, BIG, 1, "first")
    longer = {"messages": [*BIG["messages"], "more"]}
    operation = ops.saving.save("tenant", "t", new(longer, "second"))
    delta = next(operation)
    whole = operation.send(answers(delta, affected=0))
    assert len(_payload(delta)) < len(encode(longer).head) + 600
    assert len(whole.statements) >= 2
    assert finish(operation, answers(whole, last_insert_id=2)) == "second"


def test_a_save_after_another_process_s_write_looks_for_its_base() -> None:
    ops = operations()
    save_anew(ops, BIG, 1)
    operation = ops.saving.save("tenant", "t", new({"messages": [*BIG["messages"], "more"]}, None))
    trusting = next(operation)
    assert "FROM" not in trusting.statements[1].sql
    checking = operation.throw(Outdated("written to"))
    assert "b.token" in checking.statements[2].sql
    assert _payload(checking) == _payload(trusting)
    assert len(finish(operation, answers(checking, last_insert_id=3))) == 32


def save_anew(ops: Any, state: dict[str, Any], seq: int) -> None:
    operation = ops.saving.save("tenant", "t", new(state, None))
    finish(operation, answers(next(operation), last_insert_id=seq))


def test_a_load_of_a_cached_state_only_checks_that_it_is_still_the_newest() -> None:
    ops = operations()
    save(ops, BIG, 1, "first")
    loading = ops.loading.load("tenant", "t")
    (question,) = next(loading).statements
    assert "payload" not in question.sql
    assert finish(loading, [Result(rows=[(1,)])]).text() == encode(BIG).text()


def test_a_load_of_a_thread_that_another_process_saved_to_reads_its_rows() -> None:
    ops = operations()
    batch = save(ops, BIG, 1, "first")
    loading = ops.loading.load("tenant", "t")
    next(loading)
    (rows,) = loading.send([Result()]).statements
    assert "payload" in rows.sql
    other = [chain((2, _token(batch), _payload(batch)))]
    assert finish(loading, [Result(rows=other)]).text() == encode(BIG).text()


def chain(*rows: tuple[Any, ...], more: int | None = None, seal: int | None = None) -> tuple[Any, ...]:
    """Return the server's answer to a load that reads a few rows."""
    columns = [column for row in (*rows, *[(None,) * 3] * (CHAIN_ROWS - len(rows))) for column in row]
    return (b"v" * 16, more, None, seal, *columns)


@pytest.mark.parametrize(
    "found", [chain(), chain(*[(9 - row, b"t" * 16, b"payload") for row in range(CHAIN_ROWS)], more=1)]
)
def test_a_load_asks_for_every_row_where_the_first_statement_does_not_find_all(found: tuple[Any, ...]) -> None:
    batch = save(operations(), BIG, 1, "first")
    loading = operations().loading.load("tenant", "t")
    (few,) = next(loading).statements
    assert "RECURSIVE" not in few.sql
    (every,) = loading.send([Result(rows=[found])]).statements
    assert "RECURSIVE" in every.sql
    rows = [(2, _token(batch), _payload(batch), b"v" * 16, None, None)]
    assert finish(loading, [Result(rows=rows)]).text() == encode(BIG).text()


def test_a_load_of_a_shared_thread_reads_only_newer_saves() -> None:
    ops = operations()
    save(ops, BIG, 1, "first")
    batch = save(operations(), BIG, 2, "second")  # by another process
    loading = ops.loading.load("tenant", "t")
    next(loading)
    loading.send([Result()])
    finish(loading, [Result(rows=[chain((2, _token(batch), _payload(batch)))])])

    loading = ops.loading.load("tenant", "t")
    (since,) = next(loading).statements
    assert since.params.count(2) == 2
    nothing = (b"w" * 16, 2, 2, _token(batch), None, 1)
    assert finish(loading, [Result(rows=[nothing])]).text() == encode(BIG).text()


@pytest.mark.parametrize("found", [[], [(b"w" * 16, 1, 1, b"another token!!!", None, 1)]])
def test_a_load_that_cannot_build_on_its_cache_reads_the_rows(found: list[tuple[Any, ...]]) -> None:
    ops = operations()
    batch = save(ops, BIG, 1, "first")
    ops.context.cache.remember(KEY, snapshot := ops.context.cache.snapshot(KEY), snapshot._replace(shared=True))
    loading = ops.loading.load("tenant", "t")
    next(loading)
    (rows,) = loading.send([Result(rows=found)]).statements
    assert "c0.payload" in rows.sql
    other = [chain((2, _token(batch), _payload(batch)))]
    assert finish(loading, [Result(rows=other)]).text() == encode(BIG).text()


@pytest.mark.parametrize("option", [{"cache_bytes": 0}, {"cache_bytes": 2_000}])
def test_a_state_that_is_not_kept_is_read_by_its_rows_keys(option: dict[str, Any]) -> None:
    ops = operations(**option)
    batch = save(ops, BIG, 1, "first")
    loading = ops.loading.load("tenant", "t")
    (by_key,) = next(loading).statements
    assert "payload" in by_key.sql
    assert "RECURSIVE" not in by_key.sql
    assert finish(loading, [Result(rows=[(_payload(batch),)])]).text() == encode(BIG).text()


def _payload(batch: Batch) -> bytes:
    return max((p for s in batch.statements for p in s.params if isinstance(p, bytes)), key=len)


def _token(batch: Batch) -> bytes:
    return next(p for s in batch.statements for p in s.params if isinstance(p, bytes) and len(p) == 16)


def test_an_unexpected_duplicate_is_explained() -> None:
    operation = operations().saving.save("tenant", "t", new({"a": 1}))
    next(operation)
    operation.throw(Duplicate("locus_checkpoints", "named", "the thread has this id, which the save then replaces"))
    with pytest.raises(SchemaMismatch, match="'t'"):
        operation.throw(Duplicate("locus_checkpoints", "named", "twice"))


def test_a_missing_thread_row_is_restored_once() -> None:
    operation = operations().saving.save("tenant", "t", new({"a": 1}))
    next(operation)
    (restoring,) = operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice")).statements
    assert "MAX(c.seq)" in restoring.sql
    operation.send([Result(affected=1)])
    with pytest.raises(SchemaMismatch, match="damaged"):
        operation.throw(Duplicate("locus_checkpoints", "PRIMARY", "twice"))


def test_a_save_ends_however_often_the_thread_is_gone() -> None:
    ops = operations()
    save(ops, BIG, 1, "first")
    operation = ops.saving.save("tenant", "t", new({"messages": [*BIG["messages"], "more"]}, None))
    next(operation)
    operation.throw(Outdated("written to"))
    whole = operation.throw(Outdated("gone"))
    assert "ON DUPLICATE KEY UPDATE" in whole.statements[0].sql
    assert len(finish(operation, answers(whole, last_insert_id=1))) == 32


def test_a_copy_onto_an_existing_thread_is_explained() -> None:
    operation = operations().whole_threads.copy("tenant", "t", "u")
    next(operation)
    operation.throw(
        Duplicate("locus_checkpoints", "PRIMARY", "twice")
    )  # rows without a thread's row get one, so that they can be deleted
    with pytest.raises(ThreadExists, match="'u'"):
        operation.send([Result()])


def test_a_random_id_is_drawn_for_each_save() -> None:
    ops = operations()
    ids = set()
    for seq in range(1, 4):
        operation = ops.saving.save("tenant", "t", new({"a": seq}, None))
        ids.add(finish(operation, answers(next(operation), last_insert_id=seq)))
    assert len(ids) == 3


def test_invalid_arguments_send_no_statement() -> None:
    ops = operations()
    wrong: list[Driven] = [
        ops.saving.save("tenant", "", new({})),
        ops.loading.load("tenant", "t", ""),
        ops.queries.list_checkpoints("tenant", "t", -1),
        ops.whole_threads.copy("tenant", "t", "t"),
        ops.queries.search("tenant", 5),
        ops.queries.query_by_metadata("tenant", "a", float("nan")),
        ops.maintenance.vacuum("tenant", -1),
        operations(search=False).queries.search("tenant", "word"),
    ]
    for operation in wrong:
        with pytest.raises(InvalidInput):
            next(operation)


def sealed(checkpoint_id: str, metadata: str | None) -> tuple[bytes, int]:
    """Return the token and the seal of a row of the thread ``t``."""
    return bytes(16), row_seal(CLEAR, checkpoint_id, bytes(16), metadata)


def test_each_read_is_one_batch() -> None:
    ops = operations()
    at = datetime(2026, 1, 1)
    reads: list[tuple[Driven, list[tuple[Any, ...]]]] = [
        (ops.queries.exists("tenant", "t"), [(1,)]),
        (ops.queries.list_checkpoints("tenant", "t"), [("c",)]),
        (ops.queries.list_threads("tenant"), [("t",)]),
        (ops.queries.count("tenant"), [(3,)]),
        (ops.queries.get_metadata("tenant", "t"), [("c", '{"a":1}', at, *sealed("c", '{"a":1}'))]),
        (ops.queries.query_by_metadata("tenant", "a", 1), [("t", "c", '{"a":1}', at, *sealed("c", '{"a":1}'), 1)]),
        (ops.queries.list_with_metadata("tenant"), [("t", "c", None, at, *sealed("c", None))]),
        (ops.queries.history("tenant", "t"), [("c", None, at, 10, None, *sealed("c", None))]),
        (ops.queries.get_disk_usage("tenant"), [(1, 1, 1, 10, 5, 2)]),
    ]
    found = [(next(operation), finish(operation, [Result(rows=rows)])) for operation, rows in reads]
    assert all(len(batch.statements) == 1 for batch, _ in found)
    assert [value for _, value in found][:4] == [True, ["c"], ["t"], 3]
    assert found[4][1]["created_at"].tzinfo is not None
    assert found[5][1][0]["metadata"] == {"a": 1}
    assert found[8][1]["total_bytes"] == 17


def test_a_search_first_indexes_and_commits_new_saves() -> None:
    operation = operations().queries.search("tenant", "word")
    batch = next(operation)
    assert not batch.atomic
    found = finish(operation, [Result(affected=3), Result(rows=[("t", "c", datetime(2026, 1, 1), 1.5, "a word")])])
    assert found[0]["snippet"] == "a word"


@pytest.mark.parametrize("refusal", [ReadOnlyServer("replica"), PrivilegeMissing("UPDATE")])
def test_a_read_only_search_finds_indexed_states(refusal: Exception) -> None:
    operation = operations().queries.search("tenant", "word")
    next(operation)
    assert len(operation.throw(refusal).statements) == 1
    found = finish(operation, [Result(rows=[("t", "c", datetime(2026, 1, 1), 1.5, "a word")])])
    assert found[0]["checkpoint_id"] == "c"


def test_a_save_succeeds_though_the_housekeeping_after_it_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("locus_mysql.families.checkpoints.maintenance.one_in", lambda count: True)
    one_word = NewCheckpoint(lambda _: EncodedCheckpoint(encode({"a": 1})), lambda _: ("word", False), "c")
    operation = operations().saving.save("tenant", "t", one_word)
    operation.send(answers(next(operation)))
    with pytest.raises(StopIteration) as done:
        operation.throw(Unavailable("gone"))
    assert done.value.value == "c"
    assert "housekeeping" in caplog.text


def test_a_metadata_hit_that_only_shares_its_key_is_left_out() -> None:
    operation = operations().queries.query_by_metadata("tenant", "a", 1, 10)
    next(operation)
    at = datetime(2026, 1, 1)
    rows = [
        ("t", name, metadata, at, *sealed(name, metadata), seq)
        for name, metadata, seq in (("x", '{"a":true}', 2), ("y", '{"a":1.0}', 1))
    ]
    found = finish(operation, [Result(rows=rows)])
    assert [info["checkpoint_id"] for info in found] == ["y"]


def test_an_empty_row_in_a_lineage_is_a_corrupt_checkpoint() -> None:
    operation = operations().loading.load("tenant", "t", "c")
    next(operation)
    with pytest.raises(CorruptCheckpoint):
        operation.send([Result(rows=[chain((1, b"x" * 16, b""), seal=row_seal(CLEAR, "c", b"x" * 16, None))])])


def test_a_rewrite_gives_up_on_a_thread_that_is_always_written_to() -> None:
    ops = operations()
    batch = save(ops, {"a": 1}, 1, "c")
    token, at = _token(batch), datetime(2026, 1, 1)
    row = (1, token, _payload(batch), "c", 1, None, None, None, at, b"v" * 16, row_seal(CLEAR, "c", token, None))
    operation = ops.whole_threads.rewrite("tenant", "t", lambda _id, _text: new({"a": 2}))
    next(operation)

    def write_meanwhile() -> None:
        while True:
            operation.send([Result(rows=[row])])
            operation.throw(Outdated("no lock"))

    with pytest.raises(Unavailable, match="'t'"):
        write_meanwhile()


def test_a_store_checks_a_state_before_sending_statements() -> None:
    store = StoreOperations(MySQLConfig())
    with pytest.raises(InvalidInput, match="The state"):
        next(store.save("t", {"a": (1,)}))
