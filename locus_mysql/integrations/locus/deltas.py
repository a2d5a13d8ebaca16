"""Storage for Locus' `DeltaCheckpointer`: `MySQLDeltaStorage`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Unpack

from locus.memory.delta import CheckpointMetadata, DeltaCheckpoint, DeltaStorage

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Operation
from ...errors import CorruptCheckpoint
from ...families.graphs.operations import AsyncGraphs, GraphsOfTenants
from ...families.graphs.records import Base, LoadedGraphCheckpoint, NewGraphCheckpoint, NewValue
from ...families.graphs.statements.tables import check_id
from ...families.graphs.values import EncodedValue
from ...runtime.arguments import check_limit, check_thread_id
from ...runtime.database import Where, share
from ...runtime.exact_json import decode_json, encode_json
from ...runtime.stores import awaited_method

#: The name of this encoder in checkpoints.
CODEC = "locus-delta"

#: The namespace of all its checkpoints.
_NAMESPACE = "locus-delta"

_DATA = "data"


class DeltaOperations(GraphsOfTenants):
    """The storage's operations. All checkpoints are kept: Locus' deltas need those before them."""

    def __init__(self, config: MySQLConfig, tenant_of: Callable[[str], str] | None) -> None:
        super().__init__(config.for_store(keep_checkpoints=None), tenant_of)

    def store(self, thread_id: str, checkpoint_id: str, checkpoint: DeltaCheckpoint) -> Operation[None]:
        """Store a checkpoint as the newest; one of the same id takes the new content and keeps its position."""
        check_thread_id(thread_id)
        check_id(checkpoint_id, "Checkpoint id")
        data = NewValue(_DATA, None, EncodedValue("bytes", checkpoint.data))

        def values(base: Base | None) -> Sequence[NewValue]:
            return [data]

        new = NewGraphCheckpoint(
            codec=CODEC,
            ns=_NAMESPACE,
            checkpoint_id=checkpoint_id,
            parent_id=checkpoint.metadata.parent_id,
            head=_encode_head(checkpoint),
            values=values,
            metadata=None,
            run_id=None,
            needs=0,
            replace=True,
            token=os.urandom(16),
        )
        yield from self.graphs.saving.save(self.tenancy.of(thread_id), thread_id, new, None)

    def retrieve(self, thread_id: str, checkpoint_id: str) -> Operation[DeltaCheckpoint | None]:
        """Return a checkpoint; None if it does not exist."""
        check_thread_id(thread_id)
        check_id(checkpoint_id, "Checkpoint id")
        tenant = self.tenancy.of(thread_id)
        found = yield from self.graphs.loading.load(tenant, thread_id, _NAMESPACE, checkpoint_id)
        if found is None:
            return None
        metadata, is_delta = _decode_head(found)
        return DeltaCheckpoint(metadata=metadata, data=found.values()[_DATA].data, is_delta=is_delta)

    def list_checkpoints(self, thread_id: str, limit: int = 10) -> Operation[list[CheckpointMetadata]]:
        """Return the descriptions of a thread's checkpoints, newest first."""
        check_thread_id(thread_id)
        found, _ = yield from self.graphs.loading.page(
            self.tenancy.of(thread_id), thread_id, check_limit(limit), ns=_NAMESPACE
        )
        return [_decode_head(loaded)[0] for loaded in found]

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if there was one."""
        check_thread_id(thread_id)
        tenant = self.tenancy.of(thread_id)
        removing = self.graphs.removing
        if checkpoint_id is None:
            return (yield from removing.delete_thread(tenant, thread_id))
        check_id(checkpoint_id, "Checkpoint id")
        return (yield from removing.delete_checkpoint(tenant, thread_id, _NAMESPACE, checkpoint_id))


class MySQLDeltaStorage(AsyncGraphs[DeltaOperations], DeltaStorage):
    """Storage for the checkpoints and deltas of Locus' `DeltaCheckpointer`. `MySQLCheckpointer` needs no such storage.

    As with Locus' own storages, a delta cannot be loaded after the checkpoint that it builds on was deleted.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that contain it.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        tenant_of: Callable[[str], str] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(DeltaOperations(config, tenant_of), database, owned=owned)

    store = awaited_method(DeltaOperations.store)
    retrieve = awaited_method(DeltaOperations.retrieve)
    list_checkpoints = awaited_method(DeltaOperations.list_checkpoints)
    delete = awaited_method(DeltaOperations.delete)


def _encode_head(checkpoint: DeltaCheckpoint) -> EncodedValue:
    metadata = checkpoint.metadata
    fields = {
        "checkpoint_id": metadata.checkpoint_id,
        "thread_id": metadata.thread_id,
        "parent_id": metadata.parent_id,
        "is_full": metadata.is_full,
        "chain_depth": metadata.chain_depth,
        "created_at": metadata.created_at.isoformat(),
        "size_bytes": metadata.size_bytes,
        "compressed_size_bytes": metadata.compressed_size_bytes,
        "is_delta": checkpoint.is_delta,
    }
    return EncodedValue("json", encode_json(fields))


def _decode_head(loaded: LoadedGraphCheckpoint) -> tuple[CheckpointMetadata, bool]:
    """Return the description of a checkpoint, and whether it is a delta.

    Raises:
        CorruptCheckpoint: Another class saved it.
    """
    if loaded.codec != CODEC:
        raise CorruptCheckpoint(
            f"Thread {loaded.thread_id!r} has checkpoints that another store saved. Give each its own tenant, "
            "table_prefix or thread ids."
        )
    fields = decode_json(loaded.head.data)
    is_delta = bool(fields.pop("is_delta"))
    created_at = datetime.fromisoformat(fields.pop("created_at"))
    return CheckpointMetadata(**fields, created_at=created_at), is_delta
