"""Copies, exports and searches of long transcripts, and copies that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import InvalidInput, ThreadExists, Unavailable, VersionConflict
from locus_mysql.families.registry import find_family
from locus_mysql.families.transcripts import inspection
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.inspection import Inspector
from locus_mysql.records.moving import Moving
from locus_mysql.records.owner_reader import OwnerReader
from locus_mysql.records.owner_writer import OwnerWriter

from ...conftest import MakeConfig
from ...engines import RECOGNISED

pytestmark = pytest.mark.kept_tables("transcripts")

LONG = TranscriptKey("test", "project", "long")

Copy = Callable[[str, str], bool]


@pytest.fixture
def config(make_config: MakeConfig) -> MySQLConfig:
    return make_config(driver="pymysql")


@pytest.fixture
def store(config: MySQLConfig) -> Iterator[Any]:
    with SyncTranscriptStore(config) as store:
        yield store


@pytest.fixture
def copy(store: Any, config: MySQLConfig) -> Copy:
    changes: Any = find_family("transcripts").changes(config)
    return lambda source, target: bool(store._run(changes.copy(source, target)))


def fill(store: Any, number: int) -> None:
    """Store items, the last of which is removed."""
    for start in range(0, number + 1, 5_000):
        items = [NewItem(one, f"item {one}") for one in range(start, min(start + 5_000, number + 1))]
        store.append(LONG, items, header=Header({"title": "Long"}, "tag", "ada"))
    store.pop(LONG)


def test_more_than_ten_thousand_items_are_copied_with_their_positions(store: Any, copy: Copy) -> None:
    fill(store, 10_100)
    assert copy("test/project/long", "test/project/other")
    (there, items), (here, expected) = store.open(LONG._replace(name="other")), store.open(LONG)
    assert items == expected
    assert (there.header, there.items, there.size_bytes) == (here.header, here.items, here.size_bytes)
    assert there.last_seq == here.last_seq == 10_101
    with pytest.raises(ThreadExists):
        copy("test/project/long", "test/project/other")


def test_a_copy_of_a_transcript_that_is_written_to_whenever_it_is_read_is_refused(
    store: Any, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_rows", 10)
    fill(store, 35)
    reading, calls = OwnerReader._continue, list[int]()

    def written_to(self: Any, owner: Any) -> Any:
        calls.append(1)
        if len(calls) < 50:
            store.append(LONG, [NewItem("late")], header=Header({"title": "Late"}))
        return (yield from reading(self, owner))

    monkeypatch.setattr(OwnerReader, "_continue", written_to)
    with pytest.raises(VersionConflict, match="written to whenever it was read"):
        copy("test/project/long", "test/project/other")
    assert store.get(LONG._replace(name="other")) is None
    calls += [0] * 50
    assert copy("test/project/long", "test/project/other")
    assert store.open(LONG._replace(name="other"))[1] == store.open(LONG)[1]


def test_a_copy_that_fails_is_not_visible(store: Any, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moving, "max_rows", 10)
    fill(store, 35)
    once, calls = OwnerWriter._once, list[int]()

    def failing(self: Any, *steps: Any) -> Any:
        calls.append(len(steps))
        if len(calls) == 3:
            raise Unavailable("the server is gone")
        yield from once(self, *steps)

    monkeypatch.setattr(OwnerWriter, "_once", failing)
    with pytest.raises(Unavailable):
        copy("test/project/long", "test/project/other")
    assert store.get(LONG._replace(name="other")) is None
    assert copy("test/project/long", "test/project/other")
    assert store.open(LONG._replace(name="other"))[1] == store.open(LONG)[1]


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("other/project/copy", "other software reads"),
        ("test/project/a~1b~1c", "another number of parts"),
        ("test/project/x~1copy", "holds its own name"),
        ("copy", "is no id of a transcript"),
    ],
)
def test_a_copy_that_nothing_could_use_is_refused(store: Any, copy: Copy, target: str, problem: str) -> None:
    key = TranscriptKey("test", "project", "ada/session")
    store.append(key, [NewItem(1)], header=Header({"record": [{"id": "ada/session"}]}))
    with pytest.raises(InvalidInput, match=problem):
        copy("test/project/ada~1session", target)
    assert store.count() == 1
    assert not copy("test/project/none", "test/project/other")


def test_a_branch_of_a_transcript_is_refused(store: Any, config: MySQLConfig) -> None:
    changes: Any = find_family("transcripts").changes(config)
    with pytest.raises(InvalidInput, match="only be copied as a whole"):
        store._run(changes.branch("test/project/session", "1", "test/project/other"))


async def test_a_search_reads_a_bounded_number_of_bytes(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "SEARCHED_BYTES", 100_000)
    with SyncTranscriptStore(make_config(driver="pymysql", compression="none")) as store:
        for name in ("old", "new"):
            said = [{"role": "user", "content": f"word{number} " + "x" * 900} for number in range(90)]
            store.append(TranscriptKey("test", "", name), [NewItem(one) for one in said])
    async with Inspector(make_config(driver="aiomysql")) as inspector:
        before = inspector.database.stats().round_trips
        hits = await inspector.search("word80", family="transcripts")
        assert [hit.thread_id for hit in hits] == ["test//new", "test//old"]
        assert (
            inspector.database.stats().round_trips - before <= 5 + RECOGNISED
        )  # also the login, and whether the tables exist
        (hit,) = await inspector.search("word5", family="transcripts")
        assert hit.thread_id == "test//new"


async def test_a_search_reads_no_item_that_is_larger_than_its_limit(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "SEARCHED_BYTES", 100_000)
    with SyncTranscriptStore(make_config(driver="pymysql", compression="none")) as store:
        for word, size in (("vast", 75_000), ("large", 15_000), ("small", 5)):
            store.append(TranscriptKey("test", "", word), [NewItem({"role": "user", "content": word + " x" * size})])
    async with Inspector(make_config(driver="aiomysql")) as inspector:
        for word, found in (("vast", []), ("large", ["test//large"]), ("small", ["test//small"])):
            assert [hit.thread_id for hit in await inspector.search(word, family="transcripts")] == found
