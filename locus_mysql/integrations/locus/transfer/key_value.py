"""Locus' key-value backends as a side of a copy: Redis, PostgreSQL, OpenSearch, Oracle and similar ones.

``StorageBackendAdapter`` (``locus.memory.backends.adapters`` of locus-sdk 3.0.1) keeps under one key each:

    {thread}:{checkpoint}     a state, with ``_checkpoint_id``, ``_checkpoint_timestamp`` and ``_metadata`` put into it
    {thread}:latest           a copy of the newest state
    {thread}:_checkpoints     a list of ids, times and metadata, newest first

The list loses checkpoints when several processes save at once. Where the backend can list its keys, those checkpoints
are found by their keys; so are threads, as the adapter itself lists keys, not threads.
"""

from __future__ import annotations

import inspect
import unicodedata
from bisect import bisect_left
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import Any

from locus.memory.backends.adapters import StorageBackendAdapter
from locus.memory.backends.mysql import MySQLBackend
from locus.memory.backends.opensearch import OpenSearchBackend

from ....errors import CorruptCheckpoint, UsageError
from ....transfer.thread_sides import CopySource, ListedCheckpoint, UnreadableCheckpoint
from .agent_checkpoints import AgentCheckpoint, load_each
from .checkpointers import (
    ALL,
    BEGINNING_OF_TIME,
    CheckpointerTarget,
    cannot_list,
    state_of,
    time_of,
    why_unreadable,
)
from .private_attributes import backend_of

LATEST, LIST = ":latest", ":_checkpoints"

UNLISTED = "checkpoints that lists have lost, as it cannot list its keys"
BEYOND = "what lies beyond the first 10,000 keys, as it lists no more"

#: Maximum number of keys that OpenSearch lists: ``index.max_result_window``.
_MOST_SEARCHED = 10_000


class KeyedSource(CopySource):
    """Reads one of these backends.

    Args:
        adapter: The checkpointer.
        owned: Whether it is closed when the copy ends.
    """

    def __init__(self, adapter: StorageBackendAdapter, *, owned: bool) -> None:
        self._adapter = adapter
        self._backend = backend_of(adapter)
        self._owned = owned
        self._keys: list[str] | None = None
        self._explained: dict[str, set[str]] = {}
        self.gaps = set()

    async def open(self) -> None:
        """Read one key to check that the server answers."""
        await self._backend.exists(LIST)

    async def count(self, pattern: str) -> int | None:
        """Return the number of lists."""
        if not hasattr(self._backend, "list_threads"):
            return None
        return sum(key.endswith(LIST) for key in await self._all_keys())

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads: those that have a list, then those that have only states."""
        if not hasattr(self._backend, "list_threads"):
            raise cannot_list(self._backend)
        keys = await self._all_keys()
        threads = [key.removesuffix(LIST) for key in keys if key.endswith(LIST) and key != LIST]
        known = {*threads}
        for thread_id in threads:
            yield thread_id
        for key in keys:
            if key.endswith((LIST, LATEST)) or any(key in self._explained.get(one, ()) for one in _stems(key)):
                continue
            checkpoint_id = _id_in(await self._read(key), key)
            thread_id = key[: -len(checkpoint_id) - 1] if checkpoint_id else ""
            if thread_id and thread_id not in known:
                known.add(thread_id)
                yield thread_id

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first: those of its list, and those that the list has lost."""
        index = await self._read(f"{thread_id}{LIST}")
        entries = index.get("checkpoints") if isinstance(index, dict) else None
        found: dict[str, ListedCheckpoint] = {}
        for entry in reversed(entries if isinstance(entries, list) else []):
            checkpoint_id = entry.get("checkpoint_id") if isinstance(entry, dict) else None
            if isinstance(checkpoint_id, str) and checkpoint_id:
                found[checkpoint_id] = ListedCheckpoint(checkpoint_id, time_of(entry.get("timestamp")))
        self._explained[thread_id] = {f"{thread_id}:{one}" for one in found}
        if hasattr(self._backend, "list_threads"):
            lost = await self._lost(thread_id)
            if lost:
                found = {one.checkpoint_id: one for one in sorted([*found.values(), *lost], key=_time_or_first)}
        else:
            self.gaps.add(UNLISTED)
        return list(found.values())

    async def _lost(self, thread_id: str) -> list[ListedCheckpoint]:
        """Find the checkpoints of a thread that its list has lost."""
        keys, begin = await self._all_keys(), f"{thread_id}:"
        lost = []
        for key in _beginning_with(keys, begin):
            if key.endswith((LIST, LATEST)) or key in self._explained[thread_id]:
                continue
            if any(key in self._explained.get(one, ()) for one in _stems(key)):
                continue
            data = await self._read(key)
            checkpoint_id = _id_in(data, key)
            if checkpoint_id and key == f"{begin}{checkpoint_id}":
                lost.append(ListedCheckpoint(checkpoint_id, time_of((data or {}).get("_checkpoint_timestamp"))))
                self._explained[thread_id].add(key)
        return lost

    def load(
        self, thread_id: str, wanted: Sequence[ListedCheckpoint]
    ) -> AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]:
        """Load some of the checkpoints, in their order."""
        return load_each(wanted, lambda one: self._load_one(thread_id, one))

    async def _load_one(
        self, thread_id: str, listed: ListedCheckpoint
    ) -> AgentCheckpoint | UnreadableCheckpoint | None:
        key = f"{thread_id}:{listed.checkpoint_id}"
        try:
            data = await self._backend.load(key)
            if data is None:
                return UnreadableCheckpoint(listed.checkpoint_id, "the source lists it and has no such key")
            named = data.get("_checkpoint_id", listed.checkpoint_id)
            if named != listed.checkpoint_id:
                return UnreadableCheckpoint(
                    listed.checkpoint_id, "another thread's checkpoint has the same key in the source"
                )
            return read_data(thread_id, listed, data)
        except (ValueError, TypeError, AttributeError, KeyError, CorruptCheckpoint) as error:
            return UnreadableCheckpoint(listed.checkpoint_id, why_unreadable(error))

    async def close(self) -> None:
        """Close it if it was opened for the copy."""
        if self._owned:
            await self._adapter.close()

    async def _read(self, key: str) -> dict[str, Any] | None:
        """Return the value of a key; None if there is none, or it cannot be read."""
        try:
            data = await self._backend.load(key)
        except ValueError:
            return None
        return data if isinstance(data, dict) else None

    async def _all_keys(self) -> list[str]:
        """Return all keys, sorted. They are read once."""
        if self._keys is None:
            limit = _MOST_SEARCHED if isinstance(self._backend, OpenSearchBackend) else ALL * 1_000
            limited = "limit" in inspect.signature(self._backend.list_threads).parameters
            found = await (self._backend.list_threads(limit=limit) if limited else self._backend.list_threads())
            if len(found) >= limit:
                self.gaps.add(BEYOND)
            self._keys = sorted({*found})
        return self._keys


class KeyedTarget(CheckpointerTarget):
    """Writes one of these backends.

    Args:
        adapter: The checkpointer.
        owned: Whether it is closed when the copy ends.
        dry: Whether nothing may be written.
    """

    def __init__(self, adapter: StorageBackendAdapter, *, owned: bool, dry: bool) -> None:
        super().__init__(adapter, owned=owned, dry=dry)
        self._backend = backend_of(adapter)
        self._folds_case = isinstance(self._backend, MySQLBackend)

    async def open(self) -> None:
        """Read one key: some backends create their table then, and would create it repeatedly on concurrent reads."""
        if not self.dry:
            await self._backend.exists(LIST)

    def location_of(self, thread_id: str) -> str | None:
        """Return the key of the thread's list, as the server compares it: MySQL by default without case and accents."""
        if not self._folds_case:
            return None
        letters = unicodedata.normalize("NFKD", thread_id.casefold())
        return "".join(letter for letter in letters if not unicodedata.combining(letter))

    async def taken(self, thread_id: str, checkpoint_id: str) -> bool:
        """Return whether the key is another thread's, as ``a:b:c`` is of thread ``a`` and of thread ``a:b``."""
        if checkpoint_id in {"latest", "_checkpoints"}:
            return True
        if ":" not in thread_id and ":" not in checkpoint_id:
            return False
        data = await self._backend.load(f"{thread_id}:{checkpoint_id}")
        return data is not None and data.get("_checkpoint_id") != checkpoint_id

    async def metadata(self, thread_id: str, checkpoint_id: str) -> dict[str, Any] | None:
        """Load the metadata with the state: the adapter returns those of the key."""
        data = await self._backend.load(f"{thread_id}:{checkpoint_id}")
        return None if data is None else data.get("_metadata")

    def thread(self, thread_id: str) -> Any:
        """Return a thread.

        Raises:
            UsageError: Its key would be another thread's list.
        """
        if thread_id.endswith((LATEST, LIST)):
            raise UsageError(f"Thread {thread_id!r} cannot be stored there: its keys would be those of another thread.")
        return super().thread(thread_id)


def read_data(thread_id: str, listed: ListedCheckpoint, data: dict[str, Any]) -> AgentCheckpoint:
    """Return a checkpoint from the value of its key.

    Raises:
        ValueError: The value is not a state.
    """
    own = dict(data)
    metadata = own.pop("_metadata", None)
    own.pop("_checkpoint_id", None)
    stamp = time_of(own.pop("_checkpoint_timestamp", None))
    return AgentCheckpoint(
        listed.checkpoint_id,
        thread_id,
        state_of(own),
        metadata if isinstance(metadata, dict) else {},
        listed.saved_at or stamp,
    )


def _id_in(data: Mapping[str, Any] | None, key: str) -> str | None:
    """Return the id of the checkpoint under a key; None if the value is none."""
    checkpoint_id = (data or {}).get("_checkpoint_id")
    if not isinstance(checkpoint_id, str) or not checkpoint_id or not key.endswith(f":{checkpoint_id}"):
        return None
    return checkpoint_id


def _stems(key: str) -> list[str]:
    """Return the possible threads of a key: the text before each of its colons."""
    return [key[:index] for index, character in enumerate(key) if character == ":"]


def _beginning_with(keys: Sequence[str], begin: str) -> Sequence[str]:
    """Return those of sorted keys that begin with a text."""
    first = last = bisect_left(keys, begin)
    while last < len(keys) and keys[last].startswith(begin):
        last += 1
    return keys[first:last]


def _time_or_first(listed: ListedCheckpoint) -> datetime:
    return listed.saved_at or BEGINNING_OF_TIME
