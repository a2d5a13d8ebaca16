"""Writing any number of items as they were, in as many packets as they need: `write_whole`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import StateTooLarge
from ...runtime.database import Database
from ...runtime.exporting import Tally
from .moving import KeptItem
from .namespaces import labels_of
from .store import MemoryProcedures


async def write_whole(
    database: Database,
    procedures: MemoryProcedures,
    items: Sequence[KeptItem],
    done: Tally,
    tell: Callable[[str], None],
    *,
    overwrite: bool = False,
) -> None:
    """Write items as they were, in as many packets as they need.

    Args:
        database: Where to.
        procedures: Of the tables, and of the tenant whose they will be.
        items: The items.
        done: What became of them is added here.
        tell: Told of those that are left alone.
        overwrite: Whether those that are there as something else are written over.

    Raises:
        StateTooLarge: One of them needs a larger packet than the server accepts.
    """
    config = procedures.config
    if not items:
        return
    try:
        restoring = procedures.moving.restore(config.tenant, items, overwrite=overwrite)
        some = await database.asynchronous.run(restoring, procedures.schema, config.ddl_mode)
    except StateTooLarge:
        if len(items) == 1:
            raise
        half = len(items) // 2
        for part in (items[:half], items[half:]):
            await write_whole(database, procedures, part, done, tell, overwrite=overwrite)
        return
    done.written += some.written
    done.present += some.present
    done.differing += len(some.differing)
    for path, key in some.differing:
        tell(f"Item {key.decode()!r} in {labels_of(path)!r} is there as something else.")
