"""`CheckpointChanges`: deletes, copies and branches threads for the inspector and ``rm``."""

from __future__ import annotations

from ....engine.operation import Operation
from ....errors import Conflict, ThreadExists
from ..preconditions import NO_CHECKPOINT
from ..store import StoreOperations


class CheckpointChanges:
    """See `ThreadChanges`.

    Args:
        operations: The operations of the family's store.
    """

    can_branch = True

    def __init__(self, operations: StoreOperations) -> None:
        self._operations = operations
        self.has_history = operations.kind != "current"

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """See `ThreadChanges.delete`."""
        return (yield from self._operations.delete(thread_id, checkpoint_id))

    def copy(self, source: str, target: str) -> Operation[bool]:
        """See `ThreadChanges.copy`."""
        return (yield from self._operations.copy_thread(source, target))

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """See `ThreadChanges.branch`."""
        state = yield from self._operations.load(source, checkpoint_id)
        found = yield from self._operations.get_metadata(source, checkpoint_id)
        if state is None or found is None:
            return False
        try:
            yield from self._operations.save(target, state, metadata=found["metadata"], expected=NO_CHECKPOINT)
        except Conflict as error:
            raise ThreadExists(f"There is a thread {target!r} already. Choose another name.") from error
        return True
