"""What an operation is asked to save: `NewCheckpoint`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .coding.codec import EncodedState
from .coding.delta import Delta


@dataclass(frozen=True, slots=True)
class Encoded:
    """A state as text, and what helps to encode the thread's next one.

    Args:
        state: The encoded state.
        memo: Kept with the state, as long as it is the thread's newest, and given to the next encoding.
        memo_bytes: Memory that the memo takes, roughly.
    """

    state: EncodedState
    memo: object = None
    memo_bytes: int = 0


class ParentRule(enum.Enum):
    """Which checkpoint a new one follows.

    A caller that keeps its state in this process goes on from what this process loaded or saved last, also if others
    wrote to the thread since: two agents that branch are branches. Of a client of the service the process knows
    nothing: another one may have answered its last request.
    """

    REMEMBERED = "the one that this process loaded or saved last; if it knows none of the thread, the newest"
    NEWEST = "the newest under the thread's lock"


#: A rule, or the id of the checkpoint.
Parent: TypeAlias = ParentRule | str


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """What to save.

    Args:
        encode: Encodes the state. It is given the memo of the thread's newest state, or None, and may raise
            `InvalidInput`.
        search_text: From the delta, the text to index and whether it only adds to the parent's.
        checkpoint_id: Its id; a random one if None. An id that exists moves to the new state.
        metadata: What it can be found by: a dict of JSON values.
        provisional: Whether a later save will supersede it and delete it.
        oldest_at: When the state's first exchange began, as text in UTC, if that is known.
        token: The token of its row, 16 random bytes; drawn if None.
        must_be_new: Whether a checkpoint of this id is left as it is, and the save refused.
        parent: Which checkpoint it follows. A lasting one follows, of a provisional one, the lasting one before that.
    """

    encode: Callable[[object], Encoded]
    search_text: Callable[[Delta], tuple[str, bool]]
    checkpoint_id: str | None = None
    metadata: object = None
    provisional: bool = False
    oldest_at: str | None = None
    token: bytes | None = None
    must_be_new: bool = False
    parent: Parent = ParentRule.REMEMBERED
