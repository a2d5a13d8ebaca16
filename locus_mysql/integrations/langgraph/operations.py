"""The savers' operations, as generators that do no I/O."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
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
from ...errors import CorruptCheckpoint, InvalidInput, SetupError
from ...families.graphs import keys
from ...families.graphs.arguments import check_id
from ...families.graphs.records import LoadedVersion
from ...families.graphs.surface import VersionsOfTenants
from ...families.graphs.values import Encoded, Grown
from ...runtime.arguments import check_thread_id
from .coding import (
    checkpoint_tuple,
    filter_text,
    fits,
    new_version,
    new_writes,
    pending_writes,
)
from .errors import WrongType
from .messages import MessagePieces

#: Checkpoints, and threads, that `list` reads at a time.
PAGE = 100


class Listing:
    """One listing of checkpoints, page by page.

    Args:
        config: Thread, namespace and checkpoint to list; None, or an empty one, for all threads.
        filter: What metadata has to contain.
        before: Only checkpoints with an id less than this one's, which need not exist.
        limit: At most this many; None for all.
    """

    def __init__(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        configurable = config["configurable"] if config else {}
        self.thread_id = configurable["thread_id"] if config else None
        self.ns = configurable.get("checkpoint_ns")
        self.checkpoint_id = get_checkpoint_id(config) if config else None
        self.matching = filter_text(filter)
        self.remaining = limit
        self.before_id = (None if before is None else get_checkpoint_id(before)) or None
        self.done = limit is not None and limit <= 0
        self.threads: list[Any] = [] if self.thread_id is None else [self.thread_id]
        self.more_threads = self.thread_id is None
        self.behind: tuple[str, str] | None = None
        self.before_seq: int | None = None
        # Whether the server cannot search the metadata of the thread, as somebody changed it by hand.
        self.unsearchable = False
        self._unreadable: list[CorruptCheckpoint] = []

    def next_thread(self) -> None:
        """Go on to the next thread."""
        self.threads.pop(0)
        self.before_seq = None
        self.unsearchable = False
        if not self.threads and not self.more_threads and not self._unreadable:
            self.done = True

    def leave_out(self, thread_id: Any, error: CorruptCheckpoint) -> None:
        """Go on to the next thread, as this one cannot be read; the error is raised at the end."""
        self._unreadable.append(error)
        self.done = False
        if self.threads and self.threads[0] == thread_id:
            self.next_thread()

    def end(self) -> None:
        """End the listing.

        Raises:
            CorruptCheckpoint: Threads could not be read. Names the first of them.
        """
        self.done = True
        if len(self._unreadable) == 1:
            raise self._unreadable[0]
        if self._unreadable:
            raise CorruptCheckpoint(
                f"{len(self._unreadable)} threads cannot be read; all others were listed. The first one: "
                f"{self._unreadable[0]}"
            ) from self._unreadable[0]

    def found(self, count: int) -> None:
        """Take off what a page brought."""
        if self.remaining is not None:
            self.remaining -= count
            self.done = self.remaining <= 0

    @property
    def page(self) -> int:
        """How many to read next."""
        return PAGE if self.remaining is None else min(PAGE, self.remaining)


class GraphOperations(VersionsOfTenants):
    """What the savers do. The serialiser is the first argument, as a saver may be cloned with another.

    Args:
        config: The options.
        tenant_of: Tells the tenant from a thread id.
    """

    def __init__(self, config: MySQLConfig, tenant_of: Callable[[str], str] | None) -> None:
        super().__init__(config, tenant_of)
        self._pieces = MessagePieces(config.cache_bytes)

    def get_tuple(self, serde: SerializerProtocol, config: RunnableConfig) -> Operation[CheckpointTuple | None]:
        """A checkpoint, or the newest; None if there is none. One round trip."""
        tenant, thread_id, ns = self._place(config)
        checkpoint_id = get_checkpoint_id(config) or None
        version = yield from self.versions.loading.load(tenant, thread_id, ns, checkpoint_id)
        if version is None:
            return None
        return checkpoint_tuple(serde, version, config["configurable"]["thread_id"])

    def next_page(self, serde: SerializerProtocol, listing: Listing) -> Operation[list[CheckpointTuple]]:
        """The next checkpoints of a listing; it says itself when it is done. One round trip.

        Raises:
            CorruptCheckpoint: Checkpoints cannot be read. Where all threads are listed, this comes behind all that can.
        """
        if not listing.threads and listing.more_threads:
            places = yield from self.versions.page_of_threads(self.tenancy.of(), PAGE, listing.behind)
            listing.threads = [thread_id for _, thread_id in places]
            listing.more_threads = len(places) == PAGE
            listing.behind = places[-1] if places else None
        if not listing.threads:
            listing.end()
            return []
        given = listing.threads[0]
        try:
            found = yield from self._next_of_thread(given, listing)
            tuples = [checkpoint_tuple(serde, version, given) for version in found]
        except CorruptCheckpoint as error:
            named = error if repr(given) in str(error) else CorruptCheckpoint(f"Thread {given!r}: {error}")
            if listing.thread_id is not None:
                raise named from error.__cause__
            listing.leave_out(given, named)
            return []
        listing.found(len(tuples))
        return tuples

    def _next_of_thread(self, given: Any, listing: Listing) -> Operation[list[LoadedVersion]]:
        """The next checkpoints of a thread that fit; takes the thread off the list behind the last one."""
        thread_id = check_thread_id(str(given))
        tenant = self.tenancy.of(None if listing.thread_id is None else thread_id)
        limit = listing.page
        found, last_seq = None, 0
        if listing.matching is None or not listing.unsearchable:
            try:
                found, last_seq = yield from self._page(tenant, thread_id, limit, listing, listing.matching)
            except (Outdated, SetupError):  # errors 3141 and 3157: JSON that no server reads, or nested too deeply
                if listing.matching is None:
                    raise
                listing.unsearchable = True
        if found is None:
            limit = PAGE
            found, last_seq = yield from self._page(tenant, thread_id, limit, listing, None)
        listing.before_seq = last_seq
        if len(found) < limit:
            listing.next_thread()
        if listing.matching is not None:
            found = [version for version in found if fits(version, listing.matching)]
        return found[: listing.page]

    def _page(
        self, tenant: str, thread_id: str, limit: int, listing: Listing, matching: str | None
    ) -> Operation[tuple[list[LoadedVersion], int]]:
        """Checkpoints of a thread behind those that were read."""
        return self.versions.loading.page(
            tenant,
            thread_id,
            limit,
            ns=listing.ns,
            checkpoint_id=listing.checkpoint_id,
            before_id=listing.before_id,
            before_seq=listing.before_seq,
            matching=matching,
        )

    def put(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Operation[RunnableConfig]:
        """Store a checkpoint. One round trip; another one if this process neither saved nor loaded its parent."""
        tenant, thread_id, ns = self._place(config)
        check_id(checkpoint["id"], "Checkpoint id")

        def dump(channel: str, value: Any) -> Encoded | Grown:
            return self._pieces.dump(serde, (tenant, thread_id, ns, channel), value)

        new = new_version(serde, dump, config, checkpoint, metadata, new_versions, os.urandom(16))
        base = yield from self.versions.saving.find_base(tenant, thread_id, ns, new.parent_id)
        yield from self.versions.saving.save(tenant, thread_id, new, base)
        given = config["configurable"]["thread_id"]
        return {"configurable": {"thread_id": given, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    def put_writes(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Operation[None]:
        """Store writes of a task at a checkpoint, which need not be there yet. One round trip."""
        tenant, thread_id, ns = self._place(config)
        check_id(task_id, "Task id")
        version_key = keys.version_key(ns, check_id(config["configurable"]["checkpoint_id"], "Checkpoint id"))
        rows = new_writes(serde, writes, task_id, task_path)
        yield from self.versions.saving.put_writes(tenant, thread_id, version_key, task_id, rows, replace=False)

    def delete_thread(self, thread_id: Any) -> Operation[None]:
        """Delete a thread with all in it. One round trip."""
        thread_id = check_thread_id(str(thread_id))
        yield from self.versions.removing.delete_thread(self.tenancy.of(thread_id), thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> Operation[None]:
        """Delete the checkpoints of runs, in all threads of the tenant."""
        yield from self.versions.removing.delete_runs(self.tenancy.of(), [str(run_id) for run_id in run_ids])

    def copy_thread(self, source_thread_id: Any, target_thread_id: Any) -> Operation[None]:
        """Copy a thread with all its checkpoints and writes, on the server. One round trip."""
        source, target = check_thread_id(str(source_thread_id)), check_thread_id(str(target_thread_id))
        yield from self.versions.removing.copy_thread(self.tenancy.of(source), source, target)

    def prune(self, thread_ids: Sequence[str], strategy: str) -> Operation[None]:
        """Delete all but the newest checkpoint of each namespace, or everything. One round trip for each thread.

        Raises:
            WrongType: The ids are one text.
            InvalidInput: There is no such strategy.
        """
        if isinstance(thread_ids, str):
            raise WrongType(f"thread_ids must be a list of thread ids, not a str: use [{thread_ids!r:.60}].")
        if strategy not in {"keep_latest", "delete"}:
            raise InvalidInput(f"Strategy {strategy!r:.50} is none: use 'keep_latest' or 'delete'.")
        for given in thread_ids:
            thread_id = check_thread_id(str(given))
            tenant = self.tenancy.of(thread_id)
            if strategy == "delete":
                yield from self.versions.removing.delete_thread(tenant, thread_id)
            else:
                yield from self.versions.removing.prune(tenant, thread_id, 1, calls=True)

    def delta_channel_history(
        self, serde: SerializerProtocol, config: RunnableConfig, channels: Sequence[str]
    ) -> Operation[dict[str, DeltaChannelHistory]]:
        """What channels that are stored as their writes got since they were last stored whole. Two round trips."""
        if not channels:
            return {}
        tenant, thread_id, ns = self._place(config)
        checkpoint_id = get_checkpoint_id(config)
        if not checkpoint_id:
            newest = yield from self.versions.loading.load(tenant, thread_id, ns)
            if newest is None:
                return {name: {"writes": []} for name in channels}
            checkpoint_id = newest.checkpoint_id
        found = yield from self.versions.loading.channel_history(tenant, thread_id, ns, checkpoint_id, channels)
        result: dict[str, DeltaChannelHistory] = {}
        for name, history in found.items():
            result[name] = {"writes": [write for step in history.writes for write in pending_writes(serde, step)]}
            if history.seed is not None:
                result[name]["seed"] = serde.loads_typed(history.seed)
        return result

    def _place(self, config: RunnableConfig) -> tuple[str, str, str]:
        """Tenant, thread and namespace."""
        configurable = config["configurable"]
        thread_id = check_thread_id(str(configurable["thread_id"]))
        return self.tenancy.of(thread_id), thread_id, configurable.get("checkpoint_ns") or ""
