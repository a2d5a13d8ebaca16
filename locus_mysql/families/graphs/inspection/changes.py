"""`GraphChanges`: deletes and copies threads of graphs for the inspector and ``rm``."""

from __future__ import annotations

from ....config import MySQLConfig
from ....engine.operation import Operation
from ....errors import InvalidInput
from ..copying import copy_thread
from ..operations import GraphOperations
from .threads import ROOTS


class GraphChanges:
    """See `ThreadChanges`.

    Args:
        config: The options.
    """

    can_branch = False
    has_history = True

    def __init__(self, config: MySQLConfig) -> None:
        self._tenant = config.tenant
        self._operations = GraphOperations(config)
        self._removing = self._operations.removing

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """See `ThreadChanges.delete`."""
        if checkpoint_id is None:
            return (yield from self._removing.delete_thread(self._tenant, thread_id))
        for ns in (namespace,) if namespace else ROOTS:
            if (yield from self._removing.delete_checkpoint(self._tenant, thread_id, ns, checkpoint_id)):
                return True
        return False

    def copy(self, source: str, target: str) -> Operation[bool]:
        """See `ThreadChanges.copy`."""
        return (yield from copy_thread(self._operations, self._tenant, source, target))

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Refuse: a state of a graph depends on the states before it."""
        raise InvalidInput("A graph's thread can only be copied as a whole.")
        yield
