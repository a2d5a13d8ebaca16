"""Locus' `HTTPCheckpointer` as a source of a copy. This package's own service also lists threads and histories."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from locus.memory.backends.http import HTTPCheckpointer

from ....errors import CorruptCheckpoint
from ....transfer.page_progress import PageProgress
from ....transfer.thread_sides import ListedCheckpoint, UnreadableCheckpoint
from .agent_checkpoints import AgentCheckpoint
from .checkpointers import CheckpointerSource, cannot_list, time_of
from .private_attributes import client_of

#: Threads, or checkpoints, per page.
_PAGE = 200

#: Ids that cannot be part of a path, because HTTP clients remove dots from paths.
_UNNAMEABLE = frozenset({".", ".."})


@dataclass(frozen=True, slots=True)
class _HistoryEntry:
    """A checkpoint in a history."""

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
        self._lists_threads = False

    async def open(self) -> None:
        """Check its health, and whether it lists threads."""
        await super().open()
        answer = await self._ask("/threads", limit=1)
        self._lists_threads = isinstance(answer, dict) and isinstance(answer.get("threads"), list)

    async def threads(self, pattern: str) -> AsyncGenerator[str, None]:
        """List the ids of threads that match a glob."""
        if not self._lists_threads:
            raise cannot_list(self.checkpointer)
        async for one in self._pages("/threads", "threads", "thread_id", pattern=pattern):
            yield one["thread_id"]

    async def checkpoints(self, thread_id: str) -> list[ListedCheckpoint]:
        """List a thread's checkpoints, oldest first."""
        if not self._lists_threads or thread_id in _UNNAMEABLE:
            return await super().checkpoints(thread_id)
        path = f"/threads/{quote(thread_id, safe='')}/history"
        newest_first = [
            ListedCheckpoint(
                one["checkpoint_id"], time_of(one["created_at"]), _HistoryEntry(one["metadata"], one["parent_id"])
            )
            async for one in self._pages(path, "checkpoints", "checkpoint_id")
        ]
        return newest_first[::-1]

    async def load_one(self, thread_id: str, listed: ListedCheckpoint) -> AgentCheckpoint | UnreadableCheckpoint:
        """Load a checkpoint."""
        if not isinstance(listed.locator, _HistoryEntry):
            return await super().load_one(thread_id, listed)
        state = await self.load_state(thread_id, listed.checkpoint_id)
        if isinstance(state, UnreadableCheckpoint):
            return state
        return AgentCheckpoint(
            listed.checkpoint_id,
            thread_id,
            state,
            listed.locator.metadata,
            listed.saved_at,
            listed.locator.parent_id,
            knows_parent=True,
        )

    async def _pages(self, path: str, name: str, key: str, **query: str) -> AsyncGenerator[dict[str, Any], None]:
        """Read a list page by page, each entry once.

        Args:
            path: The path of the list.
            name: The field of an answer that holds the entries.
            key: The field of an entry that identifies it.
            query: Further parameters.

        Raises:
            CorruptCheckpoint: The list never ends, or the answer is not a list.
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
        """Return the answer as JSON; None if the service has no such path."""
        client = await client_of(self._http)
        response = await client.get(path, params=query)
        if response.status_code in {404, 405}:
            return None
        response.raise_for_status()
        return response.json()


def _entries(answer: Any, name: str, key: str, path: str) -> list[dict[str, Any]]:
    """Return the entries of a page; none if there is no such list."""
    if answer is None:
        return []
    entries = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not all(
        isinstance(one, dict) and isinstance(one.get(key), str) for one in entries
    ):
        raise CorruptCheckpoint(f"The service answers {path} with something else than a list of {name}.")
    return entries
