"""Appending to transcripts, reading, popping, clearing, deleting and listing them, and writes on conditions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from locus_mysql.engine.operation import Duplicate, Outdated
from locus_mysql.errors import CorruptCheckpoint, InvalidInput, NotFound, VersionConflict
from locus_mysql.families.transcripts.operations import TranscriptOperations
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.store import SyncTranscriptStore

from ...conftest import MakeConfig
from .conftest import Make

pytestmark = pytest.mark.kept_tables("transcripts")

KEY = TranscriptKey("test", "project", "session")


def items(*numbers: int) -> list[NewItem]:
    return [NewItem({"n": number}, f"id {number}") for number in numbers]


def numbers(read: Any) -> list[int]:
    return [item.content["n"] for item in read.items]


def count(before: Any, added: Sequence[NewItem]) -> dict[str, int]:
    return {"items": (before or {"items": 0})["items"] + len(added)}


async def test_any_json_value_is_returned_equal(store: Any) -> None:
    values = [None, True, 2**64, 1e300, "", "x" * 200_000, "\ud800", {"b": 1, "a": [[], {}]}, "😀\0", "~" * 500]
    values += ["abc" * length for length in (50, 60, 21_843, 23_000)]  # below, within and above what is compressed
    await store.append(KEY, [NewItem(value) for value in values])
    read = await store.read(KEY)
    assert [item.content for item in read.items] == values
    assert list(read.items[7].content) == ["b", "a"]
    assert await store.find(KEY, "id") is None


async def test_a_write_to_several_counts_only_new_items_in_each_state(store: Any) -> None:
    other = KEY._replace(part="other")
    await store.write([Write(KEY, items(1), fold=count)])
    first, second = await store.write([Write(KEY, items(1), fold=count), Write(other, items(1), fold=count)])
    assert (first.added, second.added) == (0, 1)
    assert (await store.get(KEY)).header.state == {"items": 1}
    assert (await store.get(other)).header.state == {"items": 1}


async def test_a_write_requires_a_tag(store: Any) -> None:
    with pytest.raises(VersionConflict):
        await store.append(KEY, items(1), expected_tag="a")
    await store.append(KEY, items(1), header=Header({"x": 1}, "a", "ada"), expected=0)
    await store.append(KEY, items(2), header=Header({"x": 2}, "b", "ada"), expected_tag="a")
    with pytest.raises(VersionConflict):
        await store.append(KEY, items(3), header=Header(), expected_tag="a")
    transcript, read = await store.open(KEY)
    assert (transcript.header, len(read)) == (Header({"x": 2}, "b", "ada"), 2)
    await store.append(KEY, items(3))
    assert (await store.get(KEY)).header == Header({"x": 2}, "b", "ada")


async def test_a_tag_changes_beside_a_state_that_is_not_sent_again(store: Any, make_store: Make) -> None:
    large = {"text": [str(number) for number in range(5_000)]}
    await store.append(KEY, header=Header(large, "0", "scope"))
    other = make_store()
    assert (await other.get(KEY)).header.state == large
    for writer, number in ((store, 1), (other, 2), (store, 3)):
        (written,) = await writer.write([Write(KEY, items(number), fold=lambda state, _: state, tag=str(number))])
        assert written.added == 1
    assert (await store.get(KEY)).header == Header(large, "3", "scope")  # the load verified the header's seal too
    with pytest.raises(InvalidInput):
        await store.write([Write(KEY, items(4), tag="4")])


async def test_a_repeated_write_of_several_transcripts_changes_none_of_them_if_asked(store: Any) -> None:
    state = TranscriptKey("test", "app", "state")

    def writes(number: int, value: int) -> list[Write]:
        return [Write(KEY, items(number), fold=count), Write(state, fold=lambda _, __: value)]

    await store.write(writes(1, 1), once=True)
    await store.write(writes(2, 2), once=True)
    assert [one.added for one in await store.write(writes(1, 1), once=True)] == [0, 0]
    assert (await store.get(state)).header.state == 2
    await store.write(writes(1, 1))
    assert (await store.get(state)).header.state == 1
    assert (await store.get(KEY)).header.state == {"items": 2}


async def test_a_transcript_can_outlive_the_others(make_store: Make) -> None:
    store, other = make_store(ttl_s=1_000), TranscriptKey("test", "app", "kept")
    await store.write([Write(KEY, items(1)), Write(other, items(1), expires=False)])
    assert (await store.get(KEY)).expires_at is not None
    assert (await store.get(other)).expires_at is None


async def test_transcripts_are_listed_by_key_and_by_time(store: Any, make_store: Make) -> None:
    for name, scope in (("b", "ada"), ("a", "bob"), ("c", "ada")):
        await store.append(KEY._replace(name=name), items(1), header=Header({"of": name}, scope=scope))
        await store.append(KEY._replace(name=name, part="sub"), items(1))
    await store.append(KEY._replace(collection="other"), items(1))
    await store.append(KEY._replace(kind="else"), items(1))
    await make_store(tenant="acme").append(KEY, items(1))

    async def names(listing: Any) -> list[str]:
        return [one.key.name for one in await listing]

    assert await names(store.list_transcripts("test", "project")) == ["a", "b", "c"]
    assert await names(store.list_transcripts("test", "project", parts=True)) == ["a", "a", "b", "b", "c", "c"]
    assert len(await store.list_transcripts("test")) == 4
    page = await store.list_transcripts("test", "project", parts=True, limit=3)
    behind = await store.list_transcripts("test", "project", parts=True, after=page[-1].key, states=True)
    assert [tuple(one.key[2:]) for one in [*page, *behind]] == [(name, part) for name in "abc" for part in ("", "sub")]
    assert behind[-2].header.state == {"of": "c"}
    assert [one.key.part for one in await store.list_transcripts("test", "project", name="b", parts=True)] == [
        "",
        "sub",
    ]
    assert await names(store.recent("test", "project")) == ["c", "a", "b"]
    assert await names(store.recent("test", scope="ada", limit=1)) == ["c"]
    assert await names(store.recent("test", scope="ada")) == ["c", "b"]


@pytest.mark.parametrize("side", ["pymysql-sync"])
async def test_a_damaged_state_is_reported(
    store: Any, make_store: Make, run_sql: Callable[..., Any], database: str
) -> None:
    await store.append(KEY, items(1), header=Header({"a": 1}, "tag"))
    run_sql(f"UPDATE {database}.locus_transcripts SET tag = 'gat'")
    with pytest.raises(CorruptCheckpoint, match="does not fit its seal"):
        await store.get(KEY)
    with pytest.raises(CorruptCheckpoint, match="does not fit its seal"):
        await make_store().append(KEY, items(2), fold=count)


@pytest.mark.parametrize("side", ["mysql-connector-async", "pymysql-sync"])
async def test_each_operation_needs_as_few_round_trips_as_documented(store: Any, make_store: Make) -> None:
    other = make_store()

    async def trips(which: Any, call: str, *args: Any, **options: Any) -> int:
        before = which.store.database.stats().round_trips
        await getattr(which, call)(*args, **options)
        return int(which.store.database.stats().round_trips - before)

    await store.append(KEY, items(*range(1_000)), fold=count)
    await other.append(KEY._replace(part="sub"), items(1))
    assert await trips(store, "append", KEY, items(1_001), fold=count) == 1
    assert await trips(other, "append", KEY, items(1_002), fold=count) == 2
    assert await trips(other, "append", KEY, items(1_003), fold=count) == 1
    assert await trips(other, "append", KEY, items(1_004, 1_005)) == 1
    assert await trips(other, "append", KEY, items(1_005, 1_006)) == 4
    for call, arguments in {"get": {}, "read": {}, "open": {"last": 5}, "clear": {}, "delete": {}}.items():
        assert await trips(other, call, KEY, **arguments) == 1, call
    await other.append(KEY, items(1))
    assert await trips(other, "pop", KEY) == 2


@pytest.mark.parametrize("side", ["pymysql-sync"])
async def test_items_of_a_long_transcript_are_in_their_order_and_no_others_are_read(
    store: Any, run_sql: Callable[..., Any], database: str
) -> None:
    for first in range(1, 3_001, 500):  # the ids are in the opposite order
        await store.append(KEY, [NewItem(seq, f"{9_000 - seq}") for seq in range(first, first + 500)])

    def rows_read() -> int:
        ((rows,),) = run_sql(
            "SELECT COUNT_READ FROM performance_schema.table_io_waits_summary_by_table"
            " WHERE OBJECT_SCHEMA = %s AND OBJECT_NAME = 'locus_transcript_items'",
            database,
        )
        return int(rows)

    operations = TranscriptOperations(store.store.config)
    reads: list[tuple[Callable[[], Any], Sequence[int]]] = [
        (lambda: store.store.read(KEY), range(1, 3_001)),
        (lambda: store.store.read(KEY, last=20), range(2_981, 3_001)),
        (lambda: store.store.read(KEY, limit=20), range(1, 21)),
        (lambda: store.store.read(KEY, after=2_980), range(2_981, 3_001)),
        (lambda: store.store.read(KEY, before=1_000, last=20), range(980, 1_000)),
        (lambda: store.store.read(KEY, until="8500"), range(1, 501)),
        (lambda: store.store._run(operations.window(KEY, [(3, 4), (1_000, None)])), [3, 4, *range(1_000, 3_001)]),
    ]
    for read, expected in reads:
        before = rows_read()
        assert [item.seq for item in read().items] == list(expected)
        assert rows_read() - before <= len(expected) + 10, expected


def interrupted(operation: Any, before: int, act: Callable[[], object]) -> Any:
    """Execute an operation, and call ``act`` before its batch with this number."""
    batch = next(operation)
    for number in itertools.count(1):
        if number == before:
            act()
        try:
            try:
                results = yield batch
            except (Duplicate, Outdated) as error:
                batch = operation.throw(error)
            else:
                batch = operation.send(results)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("how", ["delete", "clear", "pop"])
@pytest.mark.parametrize("before", [2, 3])  # the batch that finds stored items; the one that adds the rest
def test_an_item_that_is_deleted_while_it_is_left_out_is_not_lost(
    make_config: MakeConfig, how: str, before: int
) -> None:
    config = make_config(driver="pymysql")
    with SyncTranscriptStore(config) as store, SyncTranscriptStore(config) as other:
        other.append(KEY, items(1))
        operation = TranscriptOperations(config).append(KEY, items(1, 2))
        store._run(interrupted(operation, before, lambda: getattr(other, how)(KEY)))
        assert numbers(store.read(KEY)) == [1, 2]


async def test_a_write_removes_items_and_needs_one(store: Any, make_store: Make) -> None:
    await store.append(KEY, [NewItem(number, str(number)) for number in range(5)])
    assert [item.content for item in (await store.read(KEY, until="3", last=2)).items] == [2, 3]
    assert (await store.read(KEY, until="9")).items == []
    for other in (store, make_store()):
        with pytest.raises(NotFound):
            await other.write([Write(KEY, [NewItem(9)], needs="9")])
    await store.write([Write(KEY, [NewItem(5, "5")], Header("state"), remove=[1, 3], needs="4")])
    transcript, items = await make_store().open(KEY)
    assert [item.content for item in items] == [1, 3, 4, 5]
    assert (transcript.items, transcript.last_seq, transcript.header.state) == (4, 6, "state")
    with pytest.raises(NotFound):
        await store.write([Write(KEY, [NewItem(9)], needs="0")])
    assert (await store.append(KEY, [NewItem(0, "0")])).added == 1


async def test_a_write_deletes_a_transcript_with_others(store: Any, make_store: Make) -> None:
    other = KEY._replace(name="other")
    first, second = await store.write([Write(KEY, [NewItem(1, "1")], Header(1, "tag")), Write(other, [NewItem(2)])])
    with pytest.raises(VersionConflict):
        await make_store().write(
            [Write(KEY, delete=True, expected_tag="wrong"), Write(other, delete=True, expected=second.revision)]
        )
    await make_store().write([Write(KEY, delete=True, expected_tag="tag"), Write(other, header=Header(2))])
    assert [one and one.header.state for one in await store.get_all([KEY, other])] == [None, 2]
    assert await store.get_all([]) == []
    assert (await store.append(KEY, [NewItem(3, "1")], expected=0)).revision > first.revision
    with pytest.raises(InvalidInput):
        await store.write([Write(KEY, [NewItem(4)], delete=True)])
