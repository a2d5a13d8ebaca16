"""Listing checkpoints page by page, of one thread or of all: `Listing`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...engine.operation import Operation, Outdated
from ...errors import CorruptCheckpoint, SetupError
from ...families.graphs.operations import GraphOperations
from ...families.graphs.records import LoadedGraphCheckpoint
from ...runtime.arguments import check_text, check_thread_id
from ...runtime.tenancy import Tenancy
from . import coding

#: Checkpoints in a page, and threads whose ids are read at a time.
PAGE = 100


class Listing:
    """One call of ``list``: run `next_page` until `done`.

    If all threads are listed, those that cannot be read are reported at the end, as one error.

    Args:
        graphs: Reads threads and checkpoints.
        tenancy: Finds the tenant.
        serde: Decodes values.
        config: Thread, namespace and checkpoint to list; None, or an empty one, for all threads.
        filter: What metadata has to contain.
        before: Only checkpoints with an id less than this one's, which need not exist.
        limit: At most this many; None for all.
    """

    def __init__(
        self,
        graphs: GraphOperations,
        tenancy: Tenancy,
        serde: SerializerProtocol,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._graphs = graphs
        self._tenancy = tenancy
        self._serde = serde
        configurable = config["configurable"] if config else {}
        self._thread_id = configurable["thread_id"] if config else None
        self._ns = configurable.get("checkpoint_ns")
        self._checkpoint_id = _checkpoint_id(config)
        self._matching = coding.filter_text(filter)
        self._before_id = _checkpoint_id(before) or None
        self._remaining = limit
        #: Whether there are no more pages.
        self.done = limit is not None and limit <= 0
        # Threads whose ids have been read, the one being listed first; and where the next page of ids begins.
        self._threads: list[Any] = [] if self._thread_id is None else [self._thread_id]
        self._more_threads = self._thread_id is None
        self._after_thread: tuple[str, str] | None = None
        # Of the thread being listed: the seq of the last checkpoint, and whether the server can search its metadata,
        # which it cannot if they were changed by hand.
        self._before_seq: int | None = None
        self._searchable = True
        self._unreadable: list[CorruptCheckpoint] = []

    def next_page(self) -> Operation[list[CheckpointTuple]]:
        """Read the next checkpoints; a page may be empty. One round trip, and one for each 100 threads.

        Raises:
            CorruptCheckpoint: Checkpoints cannot be read. Where all threads are listed, this is raised after the last
                page.
        """
        if not self._threads and self._more_threads:
            ids = yield from self._graphs.page_of_threads(self._tenancy.of(), PAGE, self._after_thread)
            self._threads = [thread_id for _, thread_id in ids]
            self._more_threads = len(ids) == PAGE
            self._after_thread = ids[-1] if ids else None
        if not self._threads:
            self.done = True
            self._raise_unreadable()
            return []
        given = self._threads[0]
        try:
            page = yield from self._checkpoints_of_thread(given)
            tuples = [coding.checkpoint_tuple(self._serde, loaded, given) for loaded in page]
        except CorruptCheckpoint as error:
            named = error if repr(given) in str(error) else CorruptCheckpoint(f"Thread {given!r}: {error}")
            if self._thread_id is not None:
                raise named from error.__cause__
            self._skip(given, named)
            return []
        if self._remaining is not None:
            self._remaining -= len(tuples)
            self.done = self._remaining <= 0
        return tuples

    def _checkpoints_of_thread(self, given: Any) -> Operation[list[LoadedGraphCheckpoint]]:
        """The next matching checkpoints of a thread; after its last one, those of the next thread."""
        thread_id = check_thread_id(str(given))
        tenant = self._tenancy.of(None if self._thread_id is None else thread_id)
        limit, page, last_seq = self._limit, None, 0
        if self._matching is None or self._searchable:
            try:
                page, last_seq = yield from self._page(tenant, thread_id, limit, self._matching)
            except (Outdated, SetupError):  # errors 3141 and 3157: JSON that no server reads, or nested too deeply
                if self._matching is None:
                    raise
                self._searchable = False
        if page is None:
            limit = PAGE
            page, last_seq = yield from self._page(tenant, thread_id, limit, None)
        self._before_seq = last_seq
        if len(page) < limit:
            self._next_thread()
        if self._matching is not None:
            page = [loaded for loaded in page if coding.matches(loaded, self._matching)]
        return page[: self._limit]

    def _page(
        self, tenant: str, thread_id: str, limit: int, matching: str | None
    ) -> Operation[tuple[list[LoadedGraphCheckpoint], int]]:
        return self._graphs.loading.page(
            tenant,
            thread_id,
            limit,
            ns=self._ns,
            checkpoint_id=self._checkpoint_id,
            before_id=self._before_id,
            before_seq=self._before_seq,
            matching=matching,
        )

    @property
    def _limit(self) -> int:
        return PAGE if self._remaining is None else min(PAGE, self._remaining)

    def _next_thread(self) -> None:
        self._threads.pop(0)
        self._before_seq = None
        self._searchable = True
        if not self._threads and not self._more_threads and not self._unreadable:
            self.done = True

    def _skip(self, thread_id: Any, error: CorruptCheckpoint) -> None:
        """Continue with the next thread, as this one cannot be read; the error is raised at the end."""
        self._unreadable.append(error)
        self.done = False
        if self._threads and self._threads[0] == thread_id:
            self._next_thread()

    def _raise_unreadable(self) -> None:
        if len(self._unreadable) == 1:
            raise self._unreadable[0]
        if self._unreadable:
            raise CorruptCheckpoint(
                f"{len(self._unreadable)} threads cannot be read; all others were listed. The first one: "
                f"{self._unreadable[0]}"
            ) from self._unreadable[0]


def _checkpoint_id(config: RunnableConfig | None) -> str | None:
    """Return the id of the checkpoint that a config names; None if it names none."""
    checkpoint_id = get_checkpoint_id(config) if config else None
    return None if checkpoint_id is None else check_text(checkpoint_id, "Checkpoint id")
