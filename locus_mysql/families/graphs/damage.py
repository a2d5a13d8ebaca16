"""Adds the name of the checkpoint to errors about damaged rows."""

from __future__ import annotations

from types import TracebackType

from ...errors import CorruptCheckpoint, DecryptionFailed


class naming_checkpoint:  # used like a function; a generator would take three times as long
    """A context that adds the names of thread and checkpoint to an error about damaged rows.

    Args:
        thread_id: The thread.
        checkpoint_id: The checkpoint.

    Raises:
        CorruptCheckpoint: The rows are damaged.
    """

    __slots__ = ("_checkpoint_id", "_thread_id")

    def __init__(self, thread_id: str, checkpoint_id: str) -> None:
        self._thread_id = thread_id
        self._checkpoint_id = checkpoint_id

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, CorruptCheckpoint):
            raise (DecryptionFailed if isinstance(error, DecryptionFailed) else CorruptCheckpoint)(
                f"Checkpoint {self._checkpoint_id!r} of thread {self._thread_id!r} is damaged. {error}"
            ) from error
