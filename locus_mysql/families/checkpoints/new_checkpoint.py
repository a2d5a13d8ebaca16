"""A checkpoint to be saved: `NewCheckpoint`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .coding.codec import EncodedState
from .coding.delta import Delta


@dataclass(frozen=True, slots=True)
class EncodedCheckpoint:
    """A state as text, and data that speeds up encoding the thread's next state.

    Args:
        state: The encoded state.
        memo: Kept with the state, as long as it is the thread's newest, and given to the next encoding.
        memo_bytes: Approximate memory of the memo.
    """

    state: EncodedState
    memo: object = None
    memo_bytes: int = 0


class ParentRule(enum.Enum):
    """Rules that choose the parent of a new checkpoint.

    A caller that keeps its state in this process continues the checkpoint that this process loaded or saved last, even
    if other processes wrote to the thread since: two agents then create two branches. For a client of the service, this
        process's cache does not count: another process may have answered the client's last request.
    """

    REMEMBERED = "the checkpoint that this process loaded or saved last; if it knows none of the thread, the newest"
    NEWEST = "the newest under the thread's lock"


#: A rule, or the id of the checkpoint.
Parent: TypeAlias = ParentRule | str


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint to save.

    Args:
        encode: Encodes the state. Receives the memo of the thread's newest state, or None, and may raise
            `InvalidInput`.
        search_text: From the delta, the text to index and whether it only adds to the parent's.
        checkpoint_id: Its id; a random one if None. An existing id moves to the new state.
        metadata: A dict of JSON values for queries.
        provisional: Whether a later save will supersede it and delete it.
        oldest_at: When the state's first exchange began, as text in UTC, if that is known.
        token: The token of its row, 16 random bytes; generated if None.
        must_be_new: Whether the save is refused if a checkpoint of this id exists.
        parent: Which checkpoint it follows. A lasting one follows, of a provisional one, the lasting one before that.
    """

    encode: Callable[[object], EncodedCheckpoint]
    search_text: Callable[[Delta], tuple[str, bool]]
    checkpoint_id: str | None = None
    metadata: object = None
    provisional: bool = False
    oldest_at: str | None = None
    token: bytes | None = None
    must_be_new: bool = False
    parent: Parent = ParentRule.REMEMBERED
