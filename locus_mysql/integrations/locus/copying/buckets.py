"""Locus' object storages as a side of a copy: `S3Backend` and `OCIBucketBackend`.

Both (``s3.py`` and ``oci_bucket.py`` in ``locus.memory.backends`` of locus-sdk 3.0.1) keep a checkpoint as two objects:

    {prefix}{thread}/{checkpoint}.json         its state
    {prefix}{thread}/{checkpoint}.meta.json    its ids, its time and its metadata

They order checkpoints by the times of the objects, which S3 tells to the second only; OCI's leaves out what follows the
first page of a list; and for both a thread's id ends at its first ``/``. So names are listed here, and the second
object tells the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias

from locus.memory.backends.oci_bucket import OCIBucketBackend
from locus.memory.backends.s3 import S3Backend

from .checkpointers import CheckpointerSource, CheckpointerTarget, time_of
from .paging import PageProgress
from .sides import ASKED_AT_ONCE, Given, Listed, Unreadable

#: A storage.
BucketBackend: TypeAlias = S3Backend | OCIBucketBackend

#: How the names of a checkpoint's objects end, behind what they have in common, its stem.
_STATE, _ABOUT = ".json", ".meta.json"

#: Names that are asked for at a time; neither service gives more.
_PAGE = 1_000

_BEGINNING_OF_TIME = datetime(1000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint, as its objects tell of it."""

    thread_id: str
    checkpoint_id: str
    saved_at: datetime | None
    metadata: dict[str, Any]


class Bucket:
    """The checkpoints of a storage, by the names of its objects. It is only read.

    Args:
        backend: The storage.
    """

    def __init__(self, backend: BucketBackend) -> None:
        self._backend = backend
        self._prefix = backend._thread_prefix("").removesuffix("/")

    async def threads(self) -> AsyncGenerator[str, None]:
        """The ids of its threads, each once."""
        folders, known = set[str](), set[str]()
        async with aclosing(self._stems(self._prefix)) as stems:
            async for stem in stems:
                folder, _ = self._parts(stem)
                if not folder or folder in folders:
                    continue
                folders.add(folder)
                kept = await self.kept(stem) if "/" in folder else None  # an id of a checkpoint may hold it too
                thread_id = folder if kept is None else kept.thread_id
                if thread_id not in known:
                    known.add(thread_id)
                    yield thread_id

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first; the place of each is its metadata."""
        async with aclosing(self._stems(self._backend._thread_prefix(thread_id))) as found:
            stems = [stem async for stem in found]
        kept: list[Kept | None] = []
        for start in range(0, len(stems), ASKED_AT_ONCE):
            kept += await asyncio.gather(*map(self.kept, stems[start : start + ASKED_AT_ONCE]))
        listed = [
            Listed(one.checkpoint_id, one.saved_at, one.metadata)
            for one in kept
            if one is not None and one.thread_id == thread_id
        ]
        return sorted(listed, key=lambda one: one.saved_at or _BEGINNING_OF_TIME)

    async def has_other(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether the objects of a checkpoint would be in the place of another one's."""
        if checkpoint_id.endswith(_ABOUT.removesuffix(_STATE)):
            return True
        if "/" not in thread_id and "/" not in checkpoint_id:
            return False
        kept = await self.kept(f"{self._backend._thread_prefix(thread_id)}{checkpoint_id}")
        return kept is not None and (kept.thread_id, kept.checkpoint_id) != (thread_id, checkpoint_id)

    async def kept(self, stem: str) -> Kept | None:
        """What the objects of a stem tell, or else their names; None if there are none."""
        told = await self._json(f"{stem}{_ABOUT}") or await self._json(f"{stem}{_STATE}")
        if told is None:
            return None
        thread_id, checkpoint_id = told.get("thread_id"), told.get("checkpoint_id")
        if not isinstance(thread_id, str) or not isinstance(checkpoint_id, str):
            thread_id, checkpoint_id = self._parts(stem)
        metadata = told.get("metadata")
        return Kept(
            thread_id,
            checkpoint_id,
            time_of(told.get("created_at")) or time_of(told.get("updated_at")),
            metadata if isinstance(metadata, dict) else {},
        )

    async def _json(self, name: str) -> dict[str, Any] | None:
        """What an object holds, nothing if it is damaged; None if there is no such object."""
        try:
            found = await self._backend._get_json(name)
        except ValueError:
            return {}
        return found if isinstance(found, dict | None) else {}

    async def _stems(self, begin: str) -> AsyncGenerator[str, None]:
        """The stems of checkpoints whose names begin so, in their order."""
        progress = PageProgress("The storage")
        more: str | None = None
        while True:
            names, more = await asyncio.to_thread(_page, self._backend, begin, more)
            for name, new in zip(names, progress.new_of(names), strict=True):
                if new and name.endswith(_STATE) and not name.endswith(_ABOUT):
                    yield name.removesuffix(_STATE)
            if more is None:
                return
            progress.check(more)

    def _parts(self, stem: str) -> tuple[str, str]:
        """The ids of the thread and of the checkpoint, as far as their names tell."""
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
        """The ids of its threads."""
        return self._bucket.threads()

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        return await self._bucket.listed(thread_id)

    async def give(self, thread_id: str, listed: Listed) -> Given | Unreadable:
        """A checkpoint."""
        state = await self.load(thread_id, listed.checkpoint_id)
        if isinstance(state, Unreadable):
            return state
        return Given(listed.checkpoint_id, thread_id, state, listed.place, listed.saved_at)


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
        """Make sure that there is a bucket; some make theirs then."""
        if not self.dry:
            await self._backend._ensure_bucket()

    async def ids(self, thread_id: str) -> list[str]:
        """The ids of a thread's checkpoints, oldest first."""
        return [one.checkpoint_id for one in await self._bucket.listed(thread_id)]

    async def taken(self, thread_id: str, checkpoint_id: str) -> bool:
        """Whether the name is another thread's, as ``a/b/c`` is of thread ``a`` and of thread ``a/b``."""
        return await self._bucket.has_other(thread_id, checkpoint_id)


def _page(backend: BucketBackend, begin: str, place: str | None) -> tuple[list[str], str | None]:
    """Names of objects that begin so, and the place where the next page begins; None if there is none."""
    client = backend._get_client()
    if isinstance(backend, S3Backend):
        further = {} if place is None else {"ContinuationToken": place}
        answer = client.list_objects_v2(Bucket=backend.bucket, Prefix=begin, MaxKeys=_PAGE, **further)
        names = [one["Key"] for one in answer.get("Contents", ())]
        return names, answer["NextContinuationToken"] if answer.get("IsTruncated") else None
    further = {} if place is None else {"start": place}
    data = client.list_objects(
        namespace_name=backend.config.namespace,
        bucket_name=backend.config.bucket_name,
        prefix=begin,
        limit=_PAGE,
        retry_strategy=backend._get_retry_strategy(),
        **further,
    ).data
    return [one.name for one in data.objects or ()], data.next_start_with
