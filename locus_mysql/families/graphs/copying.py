"""Copies a thread: `copy_thread`. With encryption its checkpoints pass through this process. No I/O."""

from __future__ import annotations

from dataclasses import replace

from ...engine.operation import Operation
from ...engine.retry import next_page
from ...errors import CheckpointExists, InvalidInput, LocusMySQLError, ThreadExists
from .moving import Damaged, MovingOperations, StoredValues
from .operations import GraphOperations

#: Checkpoints that are read at once.
PAGE = 100


def copy_thread(operations: GraphOperations, tenant: str, source: str, destination: str) -> Operation[bool]:
    """Copy a thread with all its checkpoints and writes; False if there is none.

    One round trip, on the server. With encryption several for each checkpoint, as each is bound to its thread; a copy
    that fails is removed.

    Raises:
        ThreadExists: The destination has checkpoints. Nothing was changed.
        CorruptCheckpoint: With encryption: a checkpoint is damaged.
    """
    if operations.config.encryption is None:
        return (yield from operations.removing.copy_thread(tenant, source, destination))
    if source == destination:
        raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
    moving = MovingOperations(operations.config.model_copy(update={"tenant": tenant}))
    if (yield from moving.marks(destination)):
        raise _exists(destination)
    after, saved, stored = 0, False, StoredValues()
    try:
        while page := (yield from moving.page(source, after, PAGE, stored)):
            for kept in page:
                if isinstance(kept, Damaged):
                    raise kept.error
                yield from moving.save(replace(kept, thread_id=destination))
                saved = True
            after = next_page(after, page[-1].seq)
    except CheckpointExists as error:
        raise _exists(destination) from error
    except LocusMySQLError:
        if saved:
            yield from operations.removing.delete_thread(tenant, destination)
        raise
    return saved


def _exists(thread_id: str) -> ThreadExists:
    return ThreadExists(f"Thread {thread_id!r} has checkpoints already; delete it first or copy to another id.")
