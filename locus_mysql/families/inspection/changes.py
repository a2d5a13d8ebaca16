"""Deletes and copies the threads of any family, from the declaration of its tables: `OwnerChanges`. No I/O."""

from __future__ import annotations

from typing import Any

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...records.maintenance import Maintenance, Owned
from ...records.moving import Moving
from ...records.tables import Tables
from ...records.transfer import copy_owner
from .owner_rows import Naming


class OwnerChanges:
    """Deletes and copies owners, for the inspector, the API and ``rm``. Each method is an operation.

    Args:
        tables: The family's tables.
        config: The options.
    """

    #: Whether a new thread can begin with a single state of another one.
    can_branch = False

    #: Whether threads have older checkpoints, which can be deleted one by one.
    has_history = False

    def __init__(self, tables: Tables, config: MySQLConfig) -> None:
        self.naming = Naming(tables)
        self._moving = Moving(tables, config)

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """Delete a thread or one of its checkpoints; False if it does not exist.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the whole thread.
            namespace: The checkpoint's namespace, of a graph.
        """
        key = self.naming.key_of(thread_id)
        stored = None if key is None or checkpoint_id is not None else (yield from self._moving.live(key))
        if stored is None:
            return False
        owner = Owned({"tenant": self._moving.tenant, **stored}, thread_id, live=True)
        return bool((yield from Maintenance(self._moving.tables).remove([owner])).owners)

    def copy(self, source: str, target: str) -> Operation[bool]:
        """Copy a whole thread; False if it does not exist.

        Raises:
            ThreadExists: The target exists.
        """
        key, new = self.naming.key_of(source), self.naming.key_of(target)
        owner = self._moving.tables.owner
        if new is None:
            raise InvalidInput(f"{target!r} is no id of a {owner.noun}. Write it as {'/'.join(owner.key)}.")

        def change(row: dict[str, Any], now: str) -> None:
            row.update(zip(owner.key, new, strict=True))
            self._renew(row, now)

        return key is not None and (yield from copy_owner(self._moving, key, new, change))

    def _renew(self, row: dict[str, Any], now: str) -> None:
        """Set the time of the last write in the row of a copy, to the server's time as text."""
        if self._moving.tables.owner.updated:
            row[self._moving.tables.owner.updated] = now

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Save a state of a thread as the first of a new one; False if it does not exist.

        Raises:
            ThreadExists: The target has checkpoints.
            InvalidInput: The family cannot branch, as its owners have one state.
        """
        raise InvalidInput(f"A {self._moving.tables.owner.noun} can only be copied as a whole.")
        yield
