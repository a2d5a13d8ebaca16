"""What storages refuse, in the same words; and what they answer where there is no session."""

from __future__ import annotations

from ...errors import InvalidInput, NotFound
from .calls import (
    Clear,
    ClearNotes,
    Command,
    DeleteCheckpoint,
    End,
    Remove,
    RestoreCheckpoint,
    Touch,
)


def not_a_whole_number(key: str) -> InvalidInput:
    """A variable that is to be incremented holds something else."""
    return InvalidInput(
        f"Variable {key!r} does not hold a whole number of 64 bits, so it cannot be incremented. Nothing was changed. "
        "Set it to a number, or use another key."
    )


def out_of_range(key: str, by: int) -> InvalidInput:
    """The sum is too large."""
    return InvalidInput(
        f"Variable {key!r} plus {by} is beyond 64 bits, the limit of increment. Nothing was changed. Set it to a "
        "smaller number."
    )


def no_checkpoint(checkpoint_id: str) -> NotFound:
    """A checkpoint that is to be restored is not there."""
    return NotFound(
        f"The session has no checkpoint {checkpoint_id!r}. Nothing was changed. Its list of checkpoints has them all."
    )


def checkpoint_there(checkpoint_id: str) -> InvalidInput:
    """A checkpoint that is to be made is there."""
    return InvalidInput(f"The session has a checkpoint {checkpoint_id!r} already. Nothing was changed.")


def of_nothing(command: Command[object]) -> object:
    """What a command that writes, but begins no session, answers where there is none."""
    match command:
        case Remove() | Clear() | ClearNotes():
            return 0
        case Touch() | DeleteCheckpoint() | End():
            return False
        case RestoreCheckpoint(checkpoint_id):
            raise no_checkpoint(checkpoint_id)
    return None
