"""Random operations of two transcript stores, with some answers lost, compared with a plain dict."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pymysql
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from locus_mysql.errors import NotFound, VersionConflict
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.statements.tables import table_names
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ...conftest import MakeConfig
from ...connecting import connect
from ...proxy import WireProxy

STORES = st.sampled_from([0, 1])
KEYS = st.builds(
    TranscriptKey,
    st.just("kind"),
    st.sampled_from(["one", "One"]),
    st.sampled_from(["name", "name "]),
    st.sampled_from(["", "part"]),
)
IDS = st.sampled_from(["a", "A", "b", "c", "d", None])
ITEMS = st.lists(st.tuples(IDS, st.integers(0, 99)), max_size=5)


@dataclass
class Kept:
    """A transcript in the model: its items, as pairs of id and content, and its state."""

    items: list[tuple[str | None, int]] = field(default_factory=list)
    state: Any = None
    revision: int = 0

    def add(self, items: Sequence[tuple[str | None, int]]) -> list[tuple[str | None, int]]:
        """Add the items whose ids are new; return these."""
        added = []
        for item_id, content in items:
            if item_id is None or all(item_id != known for known, _ in self.items):
                self.items.append((item_id, content))
                added.append((item_id, content))
        return added


def total(state: Any, items: Sequence[NewItem]) -> dict[str, int]:
    """Add up the contents of all items that were ever added with this fold."""
    return {"total": (state or {}).get("total", 0) + sum(int(item.content) for item in items)}


class Transcripts(RuleBasedStateMachine):
    """An asynchronous and a blocking store on the same tables, like those of two processes."""

    connection: ClassVar[pymysql.Connection[Any]]
    stores: ClassVar[tuple[TranscriptStore, SyncTranscriptStore]]
    runner: ClassVar[asyncio.Runner]
    proxy: ClassVar[WireProxy]

    @initialize()
    def begin(self) -> None:
        self.model: dict[TranscriptKey, Kept] = {}
        with self.connection.cursor() as cursor:
            for table in table_names("locus_").values():
                cursor.execute(f"DELETE FROM {table}")

    @rule(which=st.sampled_from(["drop_before", "drop_after_send"]))
    def lose_an_answer(self, which: str) -> None:
        """Drop the next command, or its answer."""
        getattr(self.proxy, which)()

    @rule(store=STORES, key=KEYS, items=ITEMS, how=st.sampled_from(["", "fold", "header"]))
    def append(self, store: int, key: TranscriptKey, items: Any, how: str) -> None:
        options = {"": {}, "fold": {"fold": total}, "header": {"header": Header({"total": 1_000})}}[how]
        written = self._call(store, "append", key, _new(items), **options)
        kept = self.model.setdefault(key, Kept())
        added = kept.add(items)
        assert written.added == len(added)
        if how == "fold":
            kept.state = total(kept.state, _new(added))
        elif how == "header":
            kept.state = {"total": 1_000}
        self._written(kept, written.revision, same=bool(items) and not added and how != "header")

    @rule(store=STORES, key=KEYS, items=ITEMS, off=st.sampled_from([0, 0, 1]))
    def append_at_a_revision(self, store: int, key: TranscriptKey, items: Any, off: int) -> None:
        known = self.model[key].revision if key in self.model else 0
        if off:
            with pytest.raises(VersionConflict):
                self._call(store, "append", key, _new(items), expected=known + off)
            return
        written = self._call(store, "append", key, _new(items), expected=known)
        kept = self.model.setdefault(key, Kept())
        added = kept.add(items)
        self._written(kept, written.revision, same=bool(items) and not added)

    @rule(store=STORES, keys=st.lists(KEYS, min_size=2, max_size=3, unique=True), items=ITEMS, wrong=st.booleans())
    def write_several(self, store: int, keys: list[TranscriptKey], items: Any, wrong: bool) -> None:
        """Write to several transcripts: either all writes take effect or none."""
        writes = [Write(key, tuple(_new(items)), fold=total) for key in keys[1:]]
        known = self.model[keys[0]].revision if keys[0] in self.model else 0
        writes.append(Write(keys[0], tuple(_new(items)), expected=known + 1 if wrong else known))
        if wrong:
            with pytest.raises(VersionConflict):
                self._call(store, "write", writes)
            return
        for write, written in zip(writes, self._call(store, "write", writes), strict=True):
            kept = self.model.setdefault(write.key, Kept())
            added = kept.add(items)
            assert written.added == len(added)
            if write.fold is not None:
                kept.state = total(kept.state, _new(added))
            self._written(kept, written.revision, same=bool(items) and not added)

    @rule(store=STORES, key=KEYS, item_id=st.sampled_from(["a", "A", "b"]), content=st.integers(100, 199))
    def replace(self, store: int, key: TranscriptKey, item_id: str, content: int) -> None:
        kept = self.model.get(key, Kept())
        places = [index for index, (known, _) in enumerate(kept.items) if known == item_id]
        if not places:
            with pytest.raises(NotFound):
                self._call(store, "replace", key, item_id, content)
            return
        revision = self._call(store, "replace", key, item_id, content)
        kept.items[places[0]] = (item_id, content)
        self._written(kept, revision)

    @rule(store=STORES, key=KEYS)
    def pop(self, store: int, key: TranscriptKey) -> None:
        item = self._call(store, "pop", key)
        kept = self.model.get(key, Kept())
        if not kept.items:
            assert item is None
            return
        assert (item.item_id, item.content) == kept.items.pop()
        self._reread(key)

    @rule(store=STORES, key=KEYS)
    def clear(self, store: int, key: TranscriptKey) -> None:
        kept = self.model.get(key, Kept())
        assert self._call(store, "clear", key) == len(kept.items)
        kept.items.clear()
        if key in self.model:
            self._reread(key)

    @rule(store=STORES, key=KEYS, parts=st.booleans())
    def delete(self, store: int, key: TranscriptKey, parts: bool) -> None:
        gone = [one for one in self.model if one == key or (parts and one[:3] == key[:3])]
        assert self._call(store, "delete", key, parts=parts) == len(gone)
        for one in gone:
            del self.model[one]

    @rule(store=STORES, key=KEYS, off=st.sampled_from([0, 1]))
    def delete_if(self, store: int, key: TranscriptKey, off: int) -> None:
        known = self.model[key].revision if key in self.model else 1
        deleted = self._call(store, "delete_if", key, expected=known + off)
        assert deleted is (off == 0 and key in self.model)
        if deleted:
            del self.model[key]

    @rule(store=STORES, key=KEYS, last=st.integers(0, 4), offset=st.integers(0, 3))
    def read(self, store: int, key: TranscriptKey, last: int, offset: int) -> None:
        kept = self.model.get(key)
        whole = self._call(store, "read", key)
        if kept is None:
            assert whole is None
            assert self._call(store, "open", key) is None
            return
        assert _pairs(whole.items) == kept.items
        tail = self._call(store, "read", key, last=last)
        assert _pairs(tail.items) == kept.items[len(kept.items) - min(last, len(kept.items)) :]
        page = self._call(store, "read", key, limit=last, offset=offset)
        assert _pairs(page.items) == kept.items[offset : offset + last]
        transcript, items = self._call(store, "open", key, last=2)
        assert _pairs(items) == kept.items[-2:]
        assert (transcript.header.state, transcript.revision) == (kept.state, kept.revision)
        assert (transcript.items, whole.revision) == (len(kept.items), kept.revision)

    @rule(store=STORES, item_id=st.sampled_from(["a", "A", "c"]))
    def find(self, store: int, item_id: str) -> None:
        holding = {key for key, kept in self.model.items() if any(item_id == known for known, _ in kept.items)}
        assert {one.key for one in self._call(store, "holding", "kind", item_id)} == holding
        for key in self.model:
            item = self._call(store, "find", key, item_id)
            assert (item is not None) == (key in holding)

    @rule(store=STORES, parts=st.booleans())
    def list(self, store: int, parts: bool) -> None:
        wanted = {key for key in self.model if parts or not key.part}
        listed = self._call(store, "list_transcripts", "kind", parts=parts, states=True)
        assert [one.key for one in listed] == sorted(wanted)
        assert [one.header.state for one in listed] == [self.model[one.key].state for one in listed]
        recent = self._call(store, "recent", "kind")
        assert [one.revision for one in recent] == sorted((one.revision for one in recent), reverse=True)
        assert {one.key for one in recent} == {key for key in self.model if not key.part}
        assert self._call(store, "count") == len(self.model)

    @invariant()
    def no_item_is_without_its_transcript(self) -> None:
        if not hasattr(self, "model"):
            return
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM locus_transcript_items")
            ((count,),) = cursor.fetchall()
        assert count == sum(len(kept.items) for kept in self.model.values())

    def teardown(self) -> None:
        for key in getattr(self, "model", {}):
            for store in (0, 1):
                self.read(store, key, 2, 1)

    def _written(self, kept: Kept, revision: int, *, same: bool = False) -> None:
        """Store a call's revision, which must be higher, or may be the same if nothing changed."""
        assert revision > kept.revision or (same and revision == kept.revision)
        kept.revision = revision

    def _reread(self, key: TranscriptKey) -> None:
        """Read and store the revision after a call that does not return it."""
        self._written(self.model[key], self._call(0, "get", key).revision)

    def _call(self, store: int, method: str, *args: Any, **options: Any) -> Any:
        outcome = getattr(self.stores[store], method)(*args, **options)
        return self.runner.run(outcome) if store == 0 else outcome


def _new(items: Sequence[tuple[str | None, int]]) -> list[NewItem]:
    return [NewItem(content, item_id) for item_id, content in items]


def _pairs(items: Sequence[Any]) -> list[tuple[str | None, int]]:
    return [(item.item_id, item.content) for item in items]


@pytest.mark.slow
def test_any_sequence_of_operations_from_two_stores_reads_what_a_dict_holds(
    database: str, make_config: MakeConfig, proxy: WireProxy
) -> None:
    connection = connect(make_config(), database)
    through = {"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED"}
    awaited, blocking = (make_config(driver=driver, **through) for driver in ("mysql-connector", "pymysql"))
    with asyncio.Runner() as runner, SyncTranscriptStore(blocking) as second:
        first = TranscriptStore(awaited)
        runner.run(first.count())  # after a first connection, failed connection attempts are retried
        second.count()

        class Machine(Transcripts):
            """The machine of this test's schema."""

        Machine.connection, Machine.stores, Machine.runner, Machine.proxy = connection, (first, second), runner, proxy
        try:
            run_state_machine_as_test(Machine, settings=settings(settings.get_profile("server")))
        finally:
            runner.run(first.close())
            connection.close()
