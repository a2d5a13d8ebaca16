"""Locus' `HTTPCheckpointer` as a source of a copy. This package's own service also lists threads and histories."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from locus.memory.backends.http import HTTPCheckpointer

from ....errors import CorruptCheckpoint
from .checkpointers import CheckpointerSource, cannot_list, time_of
from .paging import PageProgress
from .sides import Given, Listed, Unreadable

#: Threads, or checkpoints, that are asked for at a time.
_PAGE = 200

#: What no path can name, as HTTP clients take dots out of paths.
_UNNAMEABLE = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class _Told:
    """What a history tells of a checkpoint."""

    metadata: dict[str, Any]
    parent_id: str | None


class HTTPSource(CheckpointerSource):
    """Reads a service by HTTP.

    Args:
        checkpointer: The checkpointer.
        owned: Whether it is closed when the copy ends.
    """

    def __init__(self, checkpointer: HTTPCheckpointer, *, owned: bool) -> None:
        super().__init__(checkpointer, owned=owned)
        self._http = checkpointer
        self._tells = False

    async def open(self) -> None:
        """Make sure that it answers, and see whether it lists threads."""
        await super().open()
        answer = await self._ask("/threads", limit=1)
        self._tells = isinstance(answer, dict) and isinstance(answer.get("threads"), list)

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """The ids of threads that match a glob."""
        if not self._tells:
            raise cannot_list(self.checkpointer)
        async for one in self._pages("/threads", "threads", "thread_id", pattern=pattern):
            yield one["thread_id"]

    async def listed(self, thread_id: str) -> list[Listed]:
        """A thread's checkpoints, oldest first."""
        if not self._tells or thread_id in _UNNAMEABLE:
            return await super().listed(thread_id)
        path = f"/threads/{quote(thread_id, safe='')}/history"
        newest_first = [
            Listed(one["checkpoint_id"], time_of(one["created_at"]), _Told(one["metadata"], one["parent_id"]))
            async for one in self._pages(path, "checkpoints", "checkpoint_id")
        ]
        return newest_first[::-1]

    async def give(self, thread_id: str, listed: Listed) -> Given | Unreadable:
        """A checkpoint."""
        if not isinstance(listed.place, _Told):
            return await super().give(thread_id, listed)
        state = await self.load(thread_id, listed.checkpoint_id)
        if isinstance(state, Unreadable):
            return state
        return Given(
            listed.checkpoint_id,
            thread_id,
            state,
            listed.place.metadata,
            listed.saved_at,
            listed.place.parent_id,
            knows_parent=True,
        )

    async def _pages(self, path: str, name: str, key: str, **query: str) -> AsyncGenerator[dict[str, Any], None]:
        """What a list holds, page by page, each entry once.

        Args:
            path: The list's.
            name: What its entries are called in an answer.
            key: The field that tells one entry from another.
            query: Further parts of the query.

        Raises:
            CorruptCheckpoint: The list never ends, or is no list.
        """
        progress = PageProgress(f"The list at {path}")
        cursor: str | None = None
        while True:
            answer = await self._ask(path, **query, limit=_PAGE, **({} if cursor is None else {"cursor": cursor}))
            entries = _entries(answer, name, key, path)
            for one, new in zip(entries, progress.new_of([one[key] for one in entries]), strict=True):
                if new:
                    yield one
            cursor = (answer or {}).get("cursor")
            if cursor is None:
                return
            progress.check(str(cursor))

    async def _ask(self, path: str, **query: Any) -> Any:
        """The answer as JSON; None if there is no such thing."""
        client = await self._http._get_client()
        response = await client.get(path, params=query)
        if response.status_code in {404, 405}:
            return None
        response.raise_for_status()
        return response.json()


def _entries(answer: Any, name: str, key: str, path: str) -> list[dict[str, Any]]:
    """The entries of a page; none if there is no such list."""
    if answer is None:
        return []
    entries = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not all(
        isinstance(one, dict) and isinstance(one.get(key), str) for one in entries
    ):
        raise CorruptCheckpoint(f"The service answers {path} with something else than a list of {name}.")
    return entries
