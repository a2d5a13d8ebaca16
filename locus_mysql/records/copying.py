"""Copies an owner of any family within its tenant: `copy_owner`. Generators that do no I/O."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from ..engine.operation import Operation
from ..errors import CorruptCheckpoint, ThreadExists, VersionConflict
from ..transfer.engine import TransferReport
from .moving import Moving, Restart, plain
from .owner_reader import OwnerReader
from .owner_writer import OwnerWriter


def copy_owner(
    moving: Moving, key: tuple[Any, ...], new_key: tuple[Any, ...], change: Callable[[dict[str, Any], str], None]
) -> Operation[bool]:
    """Copy an owner within its tenant; False if there is none. The copy is visible when it is complete.

    Args:
        moving: The family and the tenant.
        key: The owner's key.
        new_key: That of the copy.
        change: Changes the copied row of the owner, at least its key; it receives the server's time as text too.

    Raises:
        ThreadExists: There is an owner with the new key.
        CorruptCheckpoint: A row is damaged. No copy is left.
        VersionConflict: The owner was written to whenever it was read. No copy is left.
    """
    stored = yield from moving.at([new_key])
    if stored.owners.get(new_key, (None, False))[1]:
        raise _exists(moving, new_key)
    report = TransferReport()
    writer = OwnerWriter(moving, report, rename=lambda row: change(row, stored.now))
    pages = yield from OwnerReader(moving).alone(key)
    if pages is None:
        return False
    for page in pages:
        read = yield from page
        if read.damaged:
            yield from writer.write([Restart()])
            if read.last is not None and read.last.void:
                raise VersionConflict(f"{read.damaged[0]} No copy is left.")
            raise CorruptCheckpoint(read.damaged[0])
        yield from writer.write(read.records)
    yield from writer.finish()
    if report.differing or report.present:
        raise _exists(moving, new_key)
    return report.copied > 0


def copy_thread(moving: Moving, source: str, destination: str, ttl_s: float | None, **changed: Any) -> Operation[bool]:
    """Copy a thread within its tenant; see `copy_owner`.

    Args:
        moving: The family and the tenant.
        source: The thread.
        destination: The copy.
        ttl_s: The seconds after which the copy expires; None for never.
        changed: Columns of the thread's row that the copy has other values of.
    """

    def change(row: dict[str, Any], now: str) -> None:
        end = None if ttl_s is None else datetime.fromisoformat(now) + timedelta(seconds=ttl_s)
        row.update(changed, thread_id=destination, updated_at=now, expires_at=plain(end))

    return (yield from copy_owner(moving, (source,), (destination,), change))


def _exists(moving: Moving, key: tuple[Any, ...]) -> ThreadExists:
    name = moving.described(dict(zip(moving.tables.owner.key, key, strict=True)))
    return ThreadExists(f"There is a {name} already. Delete it first, or choose another name.")
