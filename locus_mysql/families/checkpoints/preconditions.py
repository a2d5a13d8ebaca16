"""Preconditions of a write besides the rows it builds on: `Precondition`; and the warning if one fails. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...dialect import Statement
from ...engine.operation import Batch, Operation
from ...errors import Conflict
from ...runtime.arguments import check_checkpoint_id
from .statements import threads
from .statements.tables import CheckpointDialect, ThreadKey


class NoCheckpoint(enum.Enum):
    """The type of `NO_CHECKPOINT`."""

    NO_CHECKPOINT = "no checkpoint"


#: For ``save(..., expected=NO_CHECKPOINT)``: the thread must have no checkpoint yet. It is not a text,
#: because any text may be a checkpoint's id.
NO_CHECKPOINT: Final = NoCheckpoint.NO_CHECKPOINT

#: A caller's expectation: a checkpoint's id, or that there is none; None expects nothing.
Expected: TypeAlias = str | Literal[NoCheckpoint.NO_CHECKPOINT] | None


@dataclass(frozen=True, slots=True)
class Precondition:
    """The conditions under which a write is executed.

    Args:
        newest_id: The newest checkpoint has this id; `NO_CHECKPOINT`: there is none.
        newest_token: The newest checkpoint's row has this token; `NO_CHECKPOINT`: there is none.
    """

    newest_id: Expected = None
    newest_token: bytes | Literal[NoCheckpoint.NO_CHECKPOINT] | None = None

    def __bool__(self) -> bool:
        return self.newest_id is not None or self.newest_token is not None

    def guards(self, sql: CheckpointDialect, key: ThreadKey) -> Iterable[Statement]:
        """Return statements that undo the batch otherwise. The thread must be locked, and a seq of a save reserved."""
        if self.newest_id is not None:
            checkpoint_id = None if self.newest_id is NO_CHECKPOINT else self.newest_id
            yield threads.NEWEST_HAS_ID(sql, key, checkpoint_id=checkpoint_id)
        if self.newest_token is not None:
            token = None if self.newest_token is NO_CHECKPOINT else self.newest_token
            yield threads.NEWEST_HAS_TOKEN(sql, key, token=token)


NOTHING_EXPECTED: Final = Precondition()


def expecting(expected: Expected) -> Precondition:
    """Return the condition that a caller gave.

    Raises:
        InvalidInput: It is neither a checkpoint's id nor `NO_CHECKPOINT`.
    """
    if expected is None or expected is NO_CHECKPOINT:
        return Precondition(expected)
    return Precondition(check_checkpoint_id(expected))


class ThreadBranched(UserWarning):
    """A save went to a new thread, because another process had saved to its own (``on_conflict="branch"``).

    Args:
        thread_id: The thread that the run loaded.
        branch: The thread that it was saved to, and that its later saves go to.
        expected: The id of the checkpoint that the run assumed to be the newest, if there is one.
        newest: The id of the checkpoint that is the newest of the thread.
    """

    def __init__(self, thread_id: str, branch: str, expected: str | None, newest: str | None) -> None:
        super().__init__(thread_id, branch, expected, newest)
        self.thread_id = thread_id
        self.branch = branch
        self.expected = expected
        self.newest = newest

    def __str__(self) -> str:
        return (
            f"Another process saved to thread {self.thread_id!r} meanwhile (its newest checkpoint is {self.newest!r}), "
            f"so this turn was saved to thread {self.branch!r}."
        )


def check(sql: CheckpointDialect, key: ThreadKey, condition: Precondition) -> Operation[None]:
    """After a write was undone, raise the error of its precondition, if that was the reason.

    Raises:
        Conflict: The thread's newest checkpoint is not the one that the condition names.
    """
    expected = condition.newest_token
    find = threads.NEWEST(sql, key)
    name = threads.NAME_OF(sql, key, token=expected if isinstance(expected, bytes) else b"")
    results = yield Batch.of(find, name)
    newest_id, newest_token = results.row(find) or (None, None)
    if condition.newest_id is not None:
        wanted = None if condition.newest_id is NO_CHECKPOINT else condition.newest_id
        if newest_id != wanted:
            raise Conflict(key.thread_id, wanted, newest_id)
    if expected is not None and newest_token != (None if expected is NO_CHECKPOINT else expected):
        named = results.row(name)
        raise Conflict(key.thread_id, None if named is None else named.checkpoint_id, newest_id)
