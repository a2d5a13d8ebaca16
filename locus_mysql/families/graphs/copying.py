"""Copies a thread: `copy_thread`. With encryption its rows pass through this process. No I/O."""

from __future__ import annotations

from ...engine.operation import Operation
from ...errors import InvalidInput
from ...records import copying
from ...records.moving import Moving
from .operations import GraphOperations
from .tables import tables


def copy_thread(operations: GraphOperations, tenant: str, source: str, destination: str) -> Operation[bool]:
    """Copy a thread with all its checkpoints and writes; False if there is none.

    One round trip, on the server. With encryption several, as each row is bound to its thread; the copy is visible when
    it is complete.

    Raises:
        ThreadExists: The destination has checkpoints. Nothing was changed.
        CorruptCheckpoint: With encryption: a row is damaged. Nothing was changed.
        VersionConflict: With encryption: the thread was changed whenever it was read. Nothing was changed.
    """
    if operations.config.encryption is None:
        return (yield from operations.removing.copy_thread(tenant, source, destination))
    if source == destination:
        raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
    config = operations.config.model_copy(update={"tenant": tenant})
    rows = Moving(tables(config.table_prefix), config)
    return (yield from copying.copy_thread(rows, source, destination, config.ttl_s))
