"""Transcripts, as programs without a framework use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_mysql.transcripts import NewItem, SyncTranscriptStore, TranscriptKey, TranscriptStore

from .workload import Call, Stores, Workload, taken

KEY = TranscriptKey("faults", "collection", "name")
OTHER = KEY._replace(name="other")


def _total(state: Any, items: Any) -> Any:
    return (state or 0) + sum(item.content for item in items)


def _contents(read: Any) -> Any:
    return None if read is None else [(item.item_id, item.content) for item in read.items]


class Transcripts(Workload):
    """Items with and without an id, as a repeated packet would add those without one again."""

    title, family = "transcripts", "transcripts"
    stores = Stores(TranscriptStore, SyncTranscriptStore)

    def calls(self) -> Sequence[Call]:
        more = [NewItem(1, "one"), NewItem(3, "three"), NewItem(4)]
        return [
            lambda: self._append(KEY, [NewItem(1, "one"), NewItem(2)]),
            lambda: self._append(KEY, more),
            lambda: taken(self.store.replace(KEY, "one", 5), lambda replaced: None),
            lambda: taken(self.store.read(KEY, last=2), _contents),
            lambda: taken(self.store.pop(KEY), lambda item: item.content),
            lambda: self._append(OTHER, more),
            lambda: self._append(OTHER._replace(part="part"), more),
            lambda: self.store.clear(OTHER),
            lambda: self.store.delete(OTHER._replace(part="part")),
        ]

    async def stored(self) -> Any:
        found = []
        for key in (KEY, OTHER, OTHER._replace(part="part")):
            transcript = await self.store.get(key)
            items = _contents(await self.store.read(key))
            found.append((None if transcript is None else transcript.header.state, items))
        return found

    def _append(self, key: TranscriptKey, items: Sequence[NewItem]) -> Any:
        return taken(self.store.append(key, items, fold=_total), lambda written: written.added)
