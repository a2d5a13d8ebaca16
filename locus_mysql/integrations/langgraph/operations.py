"""The savers' operations, as generators that do no I/O."""

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
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...families.graphs import keys
from ...families.graphs.arguments import check_id
from ...families.graphs.base import GraphsOfTenants
from ...families.graphs.copying import copy_thread
from ...families.graphs.values import EncodedValue, Grown
from ...runtime.arguments import check_text, check_thread_id
from . import coding
from .errors import WrongType
from .listing import Listing
from .messages import MessagePieces


class GraphOperations(GraphsOfTenants):
    """The operations of one saver. Clones with other serialisers share the caches.

    Args:
        config: The options.
        tenant_of: ``(thread_id) -> tenant``.
    """

    def __init__(self, config: MySQLConfig, tenant_of: Callable[[str], str] | None) -> None:
        super().__init__(config, tenant_of)
        #: Turns values into bytes and back.
        self.serde: SerializerProtocol = BaseCheckpointSaver.serde
        self._pieces = MessagePieces(config.cache_bytes)

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

    def listing(
        self,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Listing:
        """Begin to list checkpoints; see `Listing`."""
        return Listing(self.graphs, self.tenancy, self.serde, config, filter, before, limit)

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
        checkpoint_key = keys.checkpoint_key(ns, check_id(config["configurable"]["checkpoint_id"], "Checkpoint id"))
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
        found = yield from self.graphs.ancestry.channel_history(tenant, thread_id, ns, checkpoint_id, channels)
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
