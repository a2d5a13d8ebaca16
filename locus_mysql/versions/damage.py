"""Errors about damaged rows, and which checkpoint they are about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CorruptCheckpoint


@contextmanager
def naming_checkpoint(thread_id: str, checkpoint_id: str) -> Iterator[None]:
    """Add the names of thread and checkpoint to an error about damaged rows.

    Args:
        thread_id: The thread.
        checkpoint_id: The checkpoint.

    Raises:
        CorruptCheckpoint: The rows are damaged.
    """
    try:
        yield
    except CorruptCheckpoint as error:
        raise CorruptCheckpoint(f"Checkpoint {checkpoint_id!r} of thread {thread_id!r} is damaged. {error}") from error
