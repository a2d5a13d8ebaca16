"""The savers' operations, as generators that do no I/O, and their lists page by page: `Listing`."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...config import MySQLConfig
from ...engine.operation import Operation, Outdated
from ...engine.retry import Backoff
from ...errors import CorruptCheckpoint, InvalidInput, SetupError
from ...families.graphs.operations import GraphsOfTenants, copy_thread
from ...families.graphs.records import LoadedGraphCheckpoint
from ...families.graphs.statements import tables
from ...families.graphs.statements.tables import check_id
from ...families.graphs.statements.threads import ThreadPosition
from ...families.graphs.values import EncodedValue, Grown
from ...lru_cache import CachePart, LRUCache
from ...runtime.arguments import check_text, check_thread_id
from ...runtime.database import Database
from . import coding
from .messages import MessagePieces

#: Checkpoints in a page, and threads whose ids are read at a time.
PAGE = 100


class WrongType(InvalidInput, TypeError):
    """An argument has a type that the method does not accept."""


class Listing:
    """One call of ``list``: run `next_page` until `done`.

    If all threads are listed, those that cannot be read are reported at the end, as one error.

    Args:
        operations: The saver's operations.
        config: Thread, namespace and checkpoint to list; None, or an empty one, for all threads.
        filter: What metadata has to contain.
        before: Only checkpoints with an id less than this one's, which need not exist.
        limit: At most this many; None for all.
    """

    def __init__(
        self,
        operations: LangGraphOperations,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._graphs, self._tenancy, self._serde = operations.graphs, operations.tenancy, operations.serde
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
        self._after_thread: ThreadPosition | None = None
        # Of the thread being listed: the seq of the last checkpoint, and whether the server can search its metadata,
        # which it cannot if they were changed by hand.
        self._before_seq: int | None = None
        self._searchable = True
        self._unreadable: list[CorruptCheckpoint] = []
        self._backoff = Backoff("A page of checkpoints ended where the page before it had ended")

    def next_page(self) -> Operation[list[CheckpointTuple]]:
        """Read the next checkpoints; a page may be empty. One round trip, and one for each 100 threads.

        Raises:
            CorruptCheckpoint: Checkpoints cannot be read. Where all threads are listed, this is raised after the last
                page.
        """
        if not self._threads and self._more_threads:
            ids = yield from self._graphs.page_of_threads(self._tenancy.of(), PAGE, self._after_thread)
            self._threads = [one.thread_id for one in ids]
            self._more_threads = len(ids) == PAGE
            self._after_thread = ids[-1] if ids else None
        if not self._threads:
            self.done = True
            self._raise_unreadable()
            return []
        given = self._threads[0]
        self._backoff.compare((given, self._before_seq))
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


class LangGraphOperations(GraphsOfTenants):
    """The operations of one saver. Clones with other serialisers share the caches.

    Args:
        config: The options.
        tenant_of: ``(thread_id) -> tenant``.
    """

    def __init__(self, config: MySQLConfig, tenant_of: Callable[[str], str] | None) -> None:
        super().__init__(config, tenant_of)
        #: Turns values into bytes and back.
        self.serde: SerializerProtocol = BaseCheckpointSaver.serde
        self._pieces = MessagePieces(LRUCache(config.cache_bytes))

    def attach(self, database: Database) -> None:
        """See `HasCaches.attach`."""
        super().attach(database)
        self._pieces = MessagePieces(CachePart(database.states, ("messages", self.config.table_prefix)))

    def with_serde(self, serde: SerializerProtocol) -> Self:
        """Return the same operations with another serialiser."""
        clone = copy.copy(self)
        clone.serde = serde
        return clone

    def setup(self) -> Operation[None]:
        """Create missing tables. The first call of any method does the same."""
        return
        yield

    def get_tuple(self, config: RunnableConfig) -> Operation[CheckpointTuple | None]:
        """Return a checkpoint, or the newest of a thread; None if it does not exist. One round trip."""
        tenant, thread_id, ns = self._key(config)
        loaded = yield from self.graphs.loading.load(tenant, thread_id, ns, get_checkpoint_id(config) or None)
        if loaded is None:
            return None
        return coding.checkpoint_tuple(self.serde, loaded, config["configurable"]["thread_id"])

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Operation[RunnableConfig]:
        """Store a checkpoint and return its config.

        One round trip; another one if this process neither saved nor loaded the parent.
        """
        tenant, thread_id, ns = self._key(config)
        check_id(checkpoint["id"], "Checkpoint id")

        def encode(channel: str, value: Any) -> EncodedValue | Grown:
            return self._pieces.dump(self.serde, (tenant, thread_id, ns, channel), value)

        new = coding.new_checkpoint(self.serde, encode, config, checkpoint, metadata, new_versions, os.urandom(16))
        base = yield from self.graphs.saving.find_base(tenant, thread_id, ns, new.parent_id)
        yield from self.graphs.saving.save(tenant, thread_id, new, base)
        given = config["configurable"]["thread_id"]
        return {"configurable": {"thread_id": given, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> Operation[None]:
        """Store the writes of a task at a checkpoint, which need not exist yet. One round trip."""
        tenant, thread_id, ns = self._key(config)
        check_id(task_id, "Task id")
        checkpoint_key = tables.checkpoint_key(ns, check_id(config["configurable"]["checkpoint_id"], "Checkpoint id"))
        rows = coding.new_writes(self.serde, writes, task_id, task_path)
        yield from self.graphs.saving.put_writes(tenant, thread_id, checkpoint_key, task_id, rows, replace=False)

    def delete_thread(self, thread_id: str) -> Operation[None]:
        """Delete a thread with all its checkpoints and writes. One round trip."""
        thread_id = check_thread_id(str(thread_id))
        yield from self.graphs.removing.delete_thread(self.tenancy.of(thread_id), thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> Operation[None]:
        """Delete the checkpoints of runs, in all threads of the tenant.

        Content that other checkpoints need stays in the tables, but is not listed any more.
        """
        yield from self.graphs.removing.delete_runs(self.tenancy.of(), [str(run_id) for run_id in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> Operation[None]:
        """Copy a thread with all its checkpoints and writes, on the server. One round trip.

        Raises:
            ThreadExists: The target has checkpoints; nothing was changed.
        """
        source, target = check_thread_id(str(source_thread_id)), check_thread_id(str(target_thread_id))
        yield from copy_thread(self.graphs, self.tenancy.of(source), source, target)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> Operation[None]:
        """Delete all but the newest checkpoint of each namespace (``keep_latest``), or everything (``delete``).

        If the newest checkpoint needs older ones for a `DeltaChannel`, these stay in the tables, but are not listed any
        more. Otherwise it has no parent afterwards. Finished calls of subgraphs are deleted with the checkpoint that
        called them; subgraphs that keep their state between calls keep their newest checkpoint. One round trip for
        each thread.

        Raises:
            TypeError: ``thread_ids`` is one text.
            ValueError: There is no such strategy.
        """
        if isinstance(thread_ids, str):
            raise WrongType(f"thread_ids must be a list of thread ids, not a str: use [{thread_ids!r:.60}].")
        if strategy not in {"keep_latest", "delete"}:
            raise InvalidInput(f"Unknown strategy {strategy!r:.50}: use 'keep_latest' or 'delete'.")
        for given in thread_ids:
            thread_id = check_thread_id(str(given))
            tenant = self.tenancy.of(thread_id)
            if strategy == "delete":
                yield from self.graphs.removing.delete_thread(tenant, thread_id)
            else:
                yield from self.graphs.removing.prune(tenant, thread_id, 1, calls=True)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Operation[Mapping[str, DeltaChannelHistory]]:
        """Return, for each channel, its newest value stored whole before a checkpoint, and all writes since.

        One round trip for 256 ancestors, and one for the values found.
        """
        if not channels:
            return {}
        for name in channels:
            check_text(name, "A channel's name")
        tenant, thread_id, ns = self._key(config)
        checkpoint_id = get_checkpoint_id(config)
        if not checkpoint_id:
            newest = yield from self.graphs.loading.load(tenant, thread_id, ns)
            if newest is None:
                return {name: {"writes": []} for name in channels}
            checkpoint_id = newest.checkpoint_id
        found = yield from self.graphs.loading.channel_history(tenant, thread_id, ns, checkpoint_id, channels)
        result: dict[str, DeltaChannelHistory] = {}
        for name, history in found.items():
            writes = [write for step in history.writes for write in coding.pending_writes(self.serde, step)]
            result[name] = {"writes": writes}
            if history.seed is not None:
                result[name]["seed"] = self.serde.loads_typed(history.seed)
        return result

    def _key(self, config: RunnableConfig) -> tuple[str, str, str]:
        """Tenant, thread and namespace."""
        configurable = config["configurable"]
        thread_id = check_thread_id(str(configurable["thread_id"]))
        return self.tenancy.of(thread_id), thread_id, configurable.get("checkpoint_ns") or ""
