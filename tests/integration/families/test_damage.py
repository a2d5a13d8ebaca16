"""Stored columns damaged by SQL, one by one: a read returns what was written, leaves it out, or raises an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from locus_mysql import SyncCheckpointStore
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore

from ..conftest import MakeConfig
from ..damaging import Damage, damages

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("dicts", "transcripts")]

#: What a read returns: values by what identifies them.
Facts: TypeAlias = Mapping[Any, Any]


@dataclass(frozen=True)
class Family:
    """A family whose tables are damaged.

    Args:
        open: Opens a store.
        fill: Writes to it.
        reads: Returns each read of it.
        table: The table that is damaged, without the prefix.
        covered: The columns of which some damage must be noticed.
        hiding: The columns by which rows are found, so that damage may hide a row.
    """

    open: Callable[..., Any]
    fill: Callable[[Any], None]
    reads: Callable[[Any], list[Callable[[], Facts]]]
    table: str
    covered: set[str]
    hiding: set[str]


THREADS, TURNS = ("t", "u"), ("1", "2", "3")


def fill_threads(store: SyncCheckpointStore) -> None:
    for thread_id in THREADS:
        for turn in TURNS:
            store.save(thread_id, state_of(thread_id, turn), turn, metadata={"kind": thread_id, "turn": turn})


def state_of(thread_id: str, turn: str) -> dict[str, Any]:
    return {"of": thread_id, "log": [f"{thread_id} {number} " * 60 for number in range(int(turn) * 4)], "turn": turn}


def reads_of_threads(store: SyncCheckpointStore) -> list[Callable[[], Facts]]:
    def loaded(thread_id: str, turn: str | None) -> Facts:
        state = store.load(thread_id, turn)
        return {} if state is None else {("state", thread_id, turn or state["turn"]): state}

    def described(thread_id: str, turn: str) -> Facts:
        found = store.get_metadata(thread_id, turn)
        return {} if found is None else {("metadata", thread_id, found["checkpoint_id"]): found["metadata"]}

    def listed(thread_id: str) -> Facts:
        return {("metadata", thread_id, one["checkpoint_id"]): one["metadata"] for one in store.history(thread_id)}

    def found() -> Facts:
        every = [one for thread_id in THREADS for one in store.query_by_metadata("kind", thread_id)]
        return {("metadata", one["thread_id"], one["checkpoint_id"]): one["metadata"] for one in every}

    each = [(thread_id, turn) for thread_id in THREADS for turn in TURNS]
    return [
        *(lambda place=place: loaded(*place) for place in (*each, *((thread_id, None) for thread_id in THREADS))),
        *(lambda place=place: described(*place) for place in each),
        *(lambda thread_id=thread_id: listed(thread_id) for thread_id in THREADS),
        found,
    ]


KEYS = [TranscriptKey("kind", "collection", name) for name in ("a", "b")]


def fill_transcripts(store: SyncTranscriptStore) -> None:
    for key in KEYS:
        items = [NewItem({"text": f"{key.name} {number} " * 40}, str(number)) for number in range(3)]
        header = Header({"of": key.name}, f"tag {key.name}", f"scope {key.name}")
        store.append(key, [*items, NewItem(f"no id, {key.name}")], header=header)


def reads_of_transcripts(store: SyncTranscriptStore) -> list[Callable[[], Facts]]:
    def header(key: TranscriptKey) -> Facts:
        found = store.get(key)
        return {} if found is None else {("header", key): found.header}

    def items(key: TranscriptKey) -> Facts:
        found = store.read(key)
        return {} if found is None else {("item", key, one.item_id): one.content for one in found.items}

    return [lambda read=read, key=key: read(key) for read in (header, items) for key in KEYS]


_FOUND_BY = {"tenant", "thread_id", "seq", "expires_at", "kind", "collection", "name", "part", "sid"}
_THREADS = (SyncCheckpointStore, fill_threads, reads_of_threads)
_TRANSCRIPTS = (SyncTranscriptStore, fill_transcripts, reads_of_transcripts)
FAMILIES = {
    "checkpoints": Family(
        *_THREADS,
        "store_checkpoints",
        {"checkpoint_id", "token", "payload", "metadata", "seal", "base_seq"},
        {*_FOUND_BY, "checkpoint_id", "metadata_keys"},
    ),
    "threads": Family(*_THREADS, "store_threads", set(), {*_FOUND_BY, "last_seq", "first_seq"}),
    "transcripts": Family(*_TRANSCRIPTS, "transcripts", {"tag", "scope", "state", "seal"}, _FOUND_BY),
    "items": Family(*_TRANSCRIPTS, "transcript_items", {"item_id", "content"}, _FOUND_BY),
}


@pytest.fixture
def sound_tables() -> None:
    """Skip the check of the tables: these tests damage them on purpose."""


@pytest.mark.parametrize("name", FAMILIES)
def test_no_damage_to_a_column_gives_another_value(
    make_config: MakeConfig, run_sql: Callable[..., Any], database: str, name: str
) -> None:
    family = FAMILIES[name]
    noticed: dict[str, int] = {}
    with family.open(make_config(driver="pymysql", cache_bytes=0)) as store:
        family.fill(store)
        written = [read() for read in family.reads(store)]
        known = {place: value for facts in written for place, value in facts.items()}
        for damage in damages(run_sql, database, f"locus_{family.table}"):
            noticed.setdefault(damage.column, 0)
            for read, before in zip(family.reads(store), written, strict=True):
                noticed[damage.column] += _noticed(read, before, known, damage, family)
        assert [read() for read in family.reads(store)] == written
    assert {column for column in family.covered if not noticed[column]} == set()


def _noticed(read: Callable[[], Facts], before: Facts, known: Facts, damage: Damage, family: Family) -> bool:
    """Check what a read of damaged tables returns; return whether it noticed the damage."""
    try:
        found = read()
    except CorruptCheckpoint:
        return True
    assert {place: known.get(place) for place in found} == found, damage
    missing = before.keys() - found.keys()
    assert not missing or len(before) > 1 or damage.column in family.hiding, (damage, missing)
    return bool(missing)
