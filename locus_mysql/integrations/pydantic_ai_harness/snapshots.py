"""The snapshots of a run, as generators that do no I/O: `SnapshotOperations`.

The histories of a run's snapshots mostly continue each other. So each message is stored once, as an item of the run's
part `messages` that points at the message before it; a snapshot is an item of the part `snapshots` that points at its
last message. The state of that part has the newest snapshots, and the keys by which repeated saves are recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai_harness.step_persistence import ContinuableSnapshot

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import Backoff
from ...errors import CorruptCheckpoint, NotFound, VersionConflict
from ...families.transcripts.operations import TranscriptOperations
from ...families.transcripts.records import Header, Item, NewItem, TranscriptKey, Write
from ...runtime.lru_cache import LRUCache
from .records import Link, item_id, links_of, parent_of, snapshot_fields, snapshot_of

#: The kind of these transcripts. A run's id is their name.
KIND = "pydantic-ai-steps"

#: Runs whose newest snapshot a process remembers.
KNOWN_RUNS = 1_000


@dataclass
class Frontier:
    """What a save needs of the snapshots that a run has.

    Args:
        revision: The revision of the part; 0 if the run has no snapshot.
        state: Its state: the newest snapshot, the newest complete one, and keys of saves.
        items: The stored snapshots, oldest first; only read where their number is limited.
    """

    revision: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    items: Sequence[Item] = ()

    def has(self, key: str) -> bool:
        """Return whether the save of a key with a sequence number is a repeated or an outdated one."""
        number, highest = sequence_of(key), self.state.get("sequence")
        if number is None or highest is None:
            return False
        return number < highest or (number == highest and key in self.state["keys"])

    def following(self, key: str | None, stored: dict[str, Any]) -> dict[str, Any]:
        """Return the state after a snapshot was saved."""
        state = {**self.state, "latest": stored}
        if stored["snapshot"]["state"] == "complete":
            state["complete"] = stored
        number = None if key is None else sequence_of(key)
        if number is not None:
            keys = self.state["keys"] if number == self.state.get("sequence") else []
            state |= {"sequence": number, "keys": [*keys, key]}
        return state

    def outdated(self, keep: int, is_complete: bool) -> list[int]:
        """Return the seqs of the snapshots to remove when another one is saved.

        Args:
            keep: The number of snapshots to keep, with the new one. The newest complete one is kept too.
            is_complete: Whether the new one is complete.
        """
        first = max(0, len(self.items) + 1 - keep)
        complete = [item for item in self.items if item.content["snapshot"]["state"] == "complete"]
        kept = None if is_complete or not complete else complete[-1].seq
        return [item.seq for item in self.items[:first] if item.seq != kept]


class SnapshotOperations:
    """Stores the snapshots of runs.

    Args:
        config: The options.
        transcripts: The operations on transcripts.
        keep: The maximum number of snapshots to keep of a run; None: all.
    """

    def __init__(self, config: MySQLConfig, transcripts: TranscriptOperations, keep: int | None) -> None:
        self.config = config
        self._transcripts = transcripts
        self._keep = keep
        self._known: LRUCache[Frontier] = LRUCache(KNOWN_RUNS)

    def save(self, snapshot: ContinuableSnapshot) -> Operation[None]:
        """Store a snapshot; see `RunOperations.save_snapshot`."""
        run_id, key, links = snapshot.run_id, snapshot.idempotency_key, links_of(snapshot.messages)
        stored = {
            "snapshot": snapshot_fields(snapshot),
            "head": links[-1].item_id if links else None,
            "count": len(links),
        }
        known = self._known.get(run_id) if self._keep is None else None
        sends_all, backoff = False, Backoff(f"The snapshots of run {run_id!r} changed while one was stored")
        while True:
            backoff.check()
            frontier = known or (yield from self._frontier(run_id))
            if key is not None and (frontier.has(key) or (yield from self._is_stored(run_id, key))):
                if known is None:
                    return
                known = None  # the run may have been deleted since this process read it
                continue
            new = links if sends_all else _unknown(links, frontier.state)
            saved = self._snapshot_write(run_id, key, stored, frontier)
            messages = yield from self._messages_write(run_id, links, new, frontier, saved)
            try:
                written = yield from self._transcripts.write([saved, messages])
            except VersionConflict:  # another process saved a snapshot of the run meanwhile
                known = None
            except NotFound:  # messages were removed meanwhile
                known, sends_all = None, True
            else:
                break
        if self._keep is None and saved.header is not None:
            self._known.put(run_id, Frontier(written[0].revision, saved.header.state))

    def latest(self, run_id: str, *, include_interrupted: bool) -> Operation[ContinuableSnapshot | None]:
        """Return the newest snapshot; see `RunOperations.latest_snapshot`."""
        revision = 0
        while True:
            found = yield from self._transcripts.get(_snapshots(run_id))
            state = {} if found is None else found.header.state
            stored = state.get("latest" if include_interrupted else "complete")
            if found is None or stored is None:
                return None
            history = yield from self._history(run_id, stored["head"], stored["count"])
            if history is not None:
                return snapshot_of(stored["snapshot"], history)
            if found.revision == revision:
                raise CorruptCheckpoint(f"Messages of run {run_id!r} are missing.")
            revision = found.revision

    def list_all(self, run_id: str) -> Operation[list[ContinuableSnapshot]]:
        """Return all snapshots, oldest first. Two round trips."""
        snapshots = yield from self._transcripts.read(_snapshots(run_id))
        messages = yield from self._transcripts.read(_messages(run_id))
        by_id = {} if messages is None else {item.item_id: item for item in messages.items}
        found: list[ContinuableSnapshot] = []
        for item in () if snapshots is None else snapshots.items:
            stored, history = item.content, list[Item]()
            head: str | None = stored["head"]
            while head is not None:
                if head not in by_id:
                    break  # the snapshot was removed since it was read, with its messages
                history.append(by_id[head])
                head = parent_of(history[-1])
            if len(history) == stored["count"]:
                found.append(snapshot_of(stored["snapshot"], history[::-1]))
        return found

    def _frontier(self, run_id: str) -> Operation[Frontier]:
        if self._keep is None:
            found = yield from self._transcripts.get(_snapshots(run_id))
            return Frontier() if found is None else Frontier(found.revision, found.header.state or {})
        opened = yield from self._transcripts.open(_snapshots(run_id))
        if opened is None:
            return Frontier()
        transcript, items = opened
        return Frontier(transcript.revision, transcript.header.state or {}, items)

    def _is_stored(self, run_id: str, key: str) -> Operation[bool]:
        """Return whether the run has a snapshot with a key that has no sequence number."""
        if sequence_of(key) is not None:
            return False
        return (yield from self._transcripts.find(_snapshots(run_id), item_id(key))) is not None

    def _history(self, run_id: str, head: str | None, count: int) -> Operation[list[Item] | None]:
        """Return the messages up to one, oldest first; None if one is missing.

        One round trip, more if the run has histories that do not continue each other.
        """
        chain: list[Item] = []
        while head is not None:
            read = yield from self._transcripts.read(_messages(run_id), until=head, last=count - len(chain))
            if read is None or not read.items or read.items[-1].item_id != head:
                return None
            for item in reversed(read.items):
                if item.item_id == head:
                    chain.append(item)
                    head = parent_of(item)
        return chain[::-1]

    def _snapshot_write(self, run_id: str, key: str | None, stored: dict[str, Any], frontier: Frontier) -> Write:
        is_complete = stored["snapshot"]["state"] == "complete"
        return Write(
            _snapshots(run_id),
            [NewItem(stored, None if key is None else item_id(key))],
            Header(frontier.following(key, stored)),
            expected=frontier.revision,
            remove=[] if self._keep is None else frontier.outdated(self._keep, is_complete),
        )

    def _messages_write(
        self, run_id: str, links: Sequence[Link], new: Sequence[Link], frontier: Frontier, saved: Write
    ) -> Operation[Write]:
        """Return the write that adds new messages and removes those that only removed snapshots have."""
        write = Write(_messages(run_id), [link.item() for link in new], needs=new[0].parent_id if new else None)
        ids = {link.item_id for link in links}
        removed = set(saved.remove)
        if all(item.content["head"] in {None, *ids} for item in frontier.items if item.seq in removed):
            return write
        opened = yield from self._transcripts.open(_messages(run_id))
        if opened is None:
            return write
        transcript, items = opened
        parents = {item.item_id: parent_of(item) for item in items}
        used: set[str | None] = set(ids)
        for snapshot in frontier.items:
            head: str | None = None if snapshot.seq in removed else snapshot.content["head"]
            while head is not None and head not in used:
                used.add(head)
                head = parents.get(head)
        unused = [item.seq for item in items if item.item_id not in used]
        return replace(write, remove=unused, expected=transcript.revision)


def sequence_of(key: str) -> int | None:
    """Return the number before the first colon of a key; None if there is none."""
    prefix, colon, _ = key.partition(":")
    try:
        number = int(prefix)
    except ValueError:
        return None
    return number if colon and number >= 0 else None


def _unknown(links: Sequence[Link], state: dict[str, Any]) -> Sequence[Link]:
    """Return the messages behind the last one that is stored for certain."""
    heads = {stored["head"] for stored in (state.get("latest"), state.get("complete")) if stored is not None}
    for index in range(len(links), 0, -1):
        if links[index - 1].item_id in heads:
            return links[index:]
    return links


def _snapshots(run_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", run_id, "snapshots")


def _messages(run_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", run_id, "messages")
