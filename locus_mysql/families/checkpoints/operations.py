"""Every operation on checkpoints: `CheckpointOperations`."""

from __future__ import annotations

from .moving import MovingOperations
from .querying import QueryOperations


class CheckpointOperations(MovingOperations, QueryOperations):
    """The operations of one configuration, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The statements.
    """
