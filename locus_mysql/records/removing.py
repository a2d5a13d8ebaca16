"""Removes one owner of any family with its parts: `remove_owner`. A generator that does no I/O."""

from __future__ import annotations

import os
from typing import Any

from ..engine.operation import Batch, Operation, Outdated
from ..errors import VersionConflict
from .ledger import FIND, RECORD
from .moving import Moving, plain
from .row_statements import HOLD_SEEN, REMOVE, REMOVE_SEEN

#: How often an owner is read again because another process wrote to it.
TRIES = 5


def remove_owner(moving: Moving, key: tuple[Any, ...]) -> Operation[bool]:
    """Remove an owner with its parts in one transaction; False if there is none. Two round trips.

    Raises:
        VersionConflict: The owner was written to whenever it was read.
    """
    sql = moving.sql
    for _ in range(TRIES):
        stored = yield from moving.live(key)
        if stored is None:
            return False
        seen = {one: plain(stored[one]) for one in moving.tables.seen}
        links, token = [moving.link_of(stored)], os.urandom(16)
        try:
            yield Batch.of(
                sql.owners(HOLD_SEEN, tenant=moving.tenant, **seen),
                sql.owners(REMOVE_SEEN, tenant=moving.tenant, **seen),
                *(table(REMOVE, links=links) for table in sql.parts.values()),
                RECORD(sql.dialect, tenant=moving.tenant, token=token),
                outcome_query=FIND(sql.dialect, tenant=moving.tenant, token=token),
            )
        except Outdated:
            continue
        return True
    name = moving.title(dict(zip(moving.tables.owner.key, key, strict=True)))
    raise VersionConflict(f"{name} was written to whenever it was read. Try again later.")
