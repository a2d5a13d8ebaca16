"""Content for each family that encrypts: how a test writes it, and how it reads all of it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from locus_mysql import MySQLConfig
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore
from locus_mysql.inspection.inspector import Inspector

from ...either_side import AnyStore
from .conftest import MARKER


@dataclass(frozen=True)
class Sample:
    """A family's content.

    Args:
        family: The name of the family.
        classes: The asynchronous and the blocking store.
        fill: Writes content with `MARKER` under a name; each name has content of its own, some of it long.
        read: Returns all content of a name.
        inspect: Returns what the inspector shows of the content of a name.
        rows: The number of encrypted values that one `fill` stores.
    """

    family: str
    classes: tuple[Callable[[Any], Any], Callable[[Any], Any]]
    fill: Callable[[AnyStore, str], Awaitable[None]]
    read: Callable[[AnyStore, str], Awaitable[object]]
    inspect: Callable[[Inspector, str], Awaitable[object]]
    rows: int

    def open(self, config: MySQLConfig, side: str) -> AnyStore:
        """Return a store."""
        driver, _, way = side.rpartition("-")
        given = config.model_copy(update={"driver": driver})
        return AnyStore(self.classes[way == "sync"](given))


def text(*names: object) -> str:
    """Return a text with the marker that is different for other names."""
    return f"{MARKER} {' '.join(map(str, names))} " + "word " * 60


def _transcript(name: str) -> TranscriptKey:
    return TranscriptKey("kind", "collection", name)


async def _fill_transcript(store: AnyStore, name: str) -> None:
    key = _transcript(name)
    await store.append(key, [NewItem({"text": text(name, 1)}), NewItem({"text": text(name, 2)})])
    await store.append(key, [NewItem(text(name, 3), "a"), NewItem(text(name, 4), "b")], header=Header(text(name, 5)))
    await store.append(key, [NewItem(text(name, 6))], fold=lambda state, items: [state, len(items)])
    await store.replace(key, "a", text(name, 7))


async def _read_transcript(store: AnyStore, name: str) -> object:
    transcript, items = await store.open(_transcript(name))
    return transcript.header, [(item.seq, item.item_id, item.content) for item in items]


async def _inspect_transcript(inspector: Inspector, name: str) -> object:
    await inspector.threads("transcripts")
    view = await inspector.state("transcripts", f"kind/collection/{name}")
    assert view is not None
    assert view.damage is None
    return view.state


SAMPLES = {
    sample.family: sample
    for sample in (
        Sample(
            "transcripts",
            (TranscriptStore, SyncTranscriptStore),
            _fill_transcript,
            _read_transcript,
            _inspect_transcript,
            6,
        ),
    )
}
