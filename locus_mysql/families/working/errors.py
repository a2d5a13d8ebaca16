"""Errors that all storages raise with the same messages, and results of commands without a session."""

from __future__ import annotations

from ...errors import InvalidInput, NotFound
from . import calls


def not_a_whole_number(key: str) -> InvalidInput:
    """The error for an increment of a variable that holds no whole number."""
    return InvalidInput(
        f"Variable {key!r} does not hold a whole number of 64 bits, so it cannot be incremented. Nothing was changed. "
        "Set it to a number, or use another key."
    )


def out_of_range(key: str, by: int) -> InvalidInput:
    """The error for a sum beyond 64 bits."""
    return InvalidInput(
        f"Variable {key!r} plus {by} is beyond 64 bits, the limit of increment. Nothing was changed. Set it to a "
        "smaller number."
    )


def no_checkpoint(checkpoint_id: str) -> NotFound:
    """The error for restoring a checkpoint that does not exist."""
    return NotFound(
        f"The session has no checkpoint {checkpoint_id!r}. Nothing was changed. list_checkpoints returns the existing "
        "ones."
    )


def checkpoint_exists(checkpoint_id: str) -> InvalidInput:
    """The error for creating a checkpoint whose id exists."""
    return InvalidInput(f"The session has a checkpoint {checkpoint_id!r} already. Nothing was changed.")


def of_nothing(command: calls.Command[object]) -> object:
    """The result, without a session, of a command that writes but begins none."""
    match command:
        case calls.Remove() | calls.Clear() | calls.ClearNotes():
            return 0
        case calls.Touch() | calls.DeleteCheckpoint() | calls.End():
            return False
        case calls.RestoreCheckpoint(checkpoint_id):
            raise no_checkpoint(checkpoint_id)
    return None
