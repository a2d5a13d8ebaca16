"""Every operation on checkpoints: `CheckpointOperations`."""

from __future__ import annotations

from .querying import QueryOperations
from .saving import SavingOperations


class CheckpointOperations(SavingOperations, QueryOperations):
    """The operations of one configuration, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The statements.
    """
