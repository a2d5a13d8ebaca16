"""Locus' object storages as a side of a copy: `S3Backend` and `OCIBucketBackend`.

Both (``s3.py`` and ``oci_bucket.py`` in ``locus.memory.backends`` of locus-sdk 3.0.1) keep a checkpoint as two objects:

    {prefix}{thread}/{checkpoint}.json         its state
    {prefix}{thread}/{checkpoint}.meta.json    its ids, its time and its metadata

They order checkpoints by the times of the objects, which S3 has to the second only; OCI's lists only the first page of
names; and for both a thread's id ends at its first ``/``. So this module lists names, and reads the ids
from the second object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ....transfer.page_progress import PageProgress
from ....transfer.thread_sides import ListedCheckpoint, UnreadableCheckpoint
from . import private_attributes as private
from .agent_checkpoints import LOADED_AT_ONCE, AgentCheckpoint
from .checkpointers import BEGINNING_OF_TIME, CheckpointerSource, CheckpointerTarget, time_of
from .private_attributes import BucketBackend

#: Suffixes of the names of a checkpoint's objects. The text before the suffix is the stem.
_STATE, _ABOUT = ".json", ".meta.json"


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint, without its state."""

    thread_id: str
    checkpoint_id: str
    saved_at: datetime | None
    metadata: dict[str, Any]


class Bucket:
    """Lists the checkpoints of a storage by the names of its objects. The storage is only read.

    Args:
        backend: The storage.
    """

    def __init__(self, backend: BucketBackend) -> None:
        self._backend = backend
        self._prefix = private.bucket_prefix(backend)

    async def threads(self) -> AsyncGenerator[str, None]:
        """List the ids of its threads, each once."""
        folders, known = set[str](), set[str]()
        async with aclosing(self._stems(self._prefix)) as stems:
            async for stem in stems:
                folder, _ = self._parts(stem)
                if not folder or folder in folders:
                    continue
                folders.add(folder)
                stored = await self.read(stem) if "/" in folder else None  # ids of checkpoints may have slashes too
                thread_id = folder if stored is None else stored.thread_id
                if thread_id not in known:
                    known.add(thread_id)
                    yield thread_id

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first; the locator of each is its metadata."""
        async with aclosing(self._stems(private.bucket_prefix(self._backend, thread_id))) as names:
            stems = [stem async for stem in names]
        found: list[StoredCheckpoint | None] = []
        for start in range(0, len(stems), LOADED_AT_ONCE):
            found += await asyncio.gather(*map(self.read, stems[start : start + LOADED_AT_ONCE]))
        listed = [
            ListedCheckpoint(one.checkpoint_id, one.saved_at, one.metadata)
            for one in found
            if one is not None and one.thread_id == thread_id
        ]
        return sorted(listed, key=lambda one: one.saved_at or BEGINNING_OF_TIME)

    async def has_other(self, thread_id: str, checkpoint_id: str) -> bool:
        """Return whether the objects of a checkpoint would have the names of another checkpoint's objects."""
        if checkpoint_id.endswith(_ABOUT.removesuffix(_STATE)):
            return True
        if "/" not in thread_id and "/" not in checkpoint_id:
            return False
        stored = await self.read(f"{private.bucket_prefix(self._backend, thread_id)}{checkpoint_id}")
        return stored is not None and (stored.thread_id, stored.checkpoint_id) != (thread_id, checkpoint_id)

    async def read(self, stem: str) -> StoredCheckpoint | None:
        """Read ids, time and metadata from the objects of a stem, or ids from their names; None if there are none."""
        content = await self._json(f"{stem}{_ABOUT}") or await self._json(f"{stem}{_STATE}")
        if content is None:
            return None
        thread_id, checkpoint_id = content.get("thread_id"), content.get("checkpoint_id")
        if not isinstance(thread_id, str) or not isinstance(checkpoint_id, str):
            thread_id, checkpoint_id = self._parts(stem)
        metadata = content.get("metadata")
        return StoredCheckpoint(
            thread_id,
            checkpoint_id,
            time_of(content.get("created_at")) or time_of(content.get("updated_at")),
            metadata if isinstance(metadata, dict) else {},
        )

    async def _json(self, name: str) -> dict[str, Any] | None:
        """Read an object, an empty dict if it is damaged; None if there is no such object."""
        try:
            found = await private.read_object(self._backend, name)
        except ValueError:
            return {}
        return found if isinstance(found, dict | None) else {}

    async def _stems(self, begin: str) -> AsyncGenerator[str, None]:
        """List the stems of checkpoints whose names begin with a prefix, in their order."""
        progress = PageProgress("The storage")
        more: str | None = None
        while True:
            names, more = await asyncio.to_thread(private.object_names, self._backend, begin, more)
            for name, new in zip(names, progress.new_of(names), strict=True):
                if new and name.endswith(_STATE) and not name.endswith(_ABOUT):
                    yield name.removesuffix(_STATE)
            if more is None:
                return
            progress.check(more)

    def _parts(self, stem: str) -> tuple[str, str]:
        """Return the ids of the thread and of the checkpoint, as far as the names contain them."""
        thread_id, _, checkpoint_id = stem.removeprefix(self._prefix).rpartition("/")
        return thread_id, checkpoint_id


class BucketSource(CheckpointerSource):
    """Reads one of these storages.

    Args:
        backend: The storage.
        owned: Whether it is closed when the copy ends.
    """

    def __init__(self, backend: BucketBackend, *, owned: bool) -> None:
        super().__init__(backend, owned=owned)
        self._bucket = Bucket(backend)

    def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of its threads."""
        return self._bucket.threads()

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        return await self._bucket.checkpoints(thread_id)

    async def load_one(self, thread_id: str, listed: ListedCheckpoint) -> AgentCheckpoint | UnreadableCheckpoint:
        """Load a checkpoint."""
        state = await self.load_state(thread_id, listed.checkpoint_id)
        if isinstance(state, UnreadableCheckpoint):
            return state
        return AgentCheckpoint(listed.checkpoint_id, thread_id, state, listed.locator, listed.saved_at)


class BucketTarget(CheckpointerTarget):
    """Writes one of these storages.

    Args:
        backend: The storage.
        owned: Whether it is closed when the copy ends.
        dry: Whether nothing may be written.
    """

    def __init__(self, backend: BucketBackend, *, owned: bool, dry: bool) -> None:
        super().__init__(backend, owned=owned, dry=dry)
        self._bucket = Bucket(backend)
        self._backend = backend

    async def open(self) -> None:
        """Check that there is a bucket; some backends create it."""
        if not self.dry:
            await private.ensure_bucket(self._backend)

    async def ids(self, thread_id: str) -> list[str]:
        """List the ids of a thread's checkpoints, oldest first."""
        return [one.checkpoint_id for one in await self._bucket.checkpoints(thread_id)]

    async def taken(self, thread_id: str, checkpoint_id: str) -> bool:
        """Return whether its objects' names may be another thread's, as ``a/b/c`` is of thread ``a`` and of ``a/b``."""
        return await self._bucket.has_other(thread_id, checkpoint_id)
