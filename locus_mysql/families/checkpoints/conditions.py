"""What a write relies on beside the rows it builds on: `Condition`. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ...dialect import Statement
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...runtime.arguments import check_checkpoint_id
from .leases import Lease
from .thread_cache import ThreadKey


class NoCheckpoint(enum.Enum):
    """The type of `NO_CHECKPOINT`."""

    NO_CHECKPOINT = "no checkpoint"


#: For ``save(..., expected=NO_CHECKPOINT)``: the thread must have no checkpoint yet. No text can stand for that, as any
#: text may be a checkpoint's id.
NO_CHECKPOINT: Final = NoCheckpoint.NO_CHECKPOINT

#: What a caller may expect: a checkpoint's id, or that there is none; None expects nothing.
Expected: TypeAlias = str | Literal[NoCheckpoint.NO_CHECKPOINT] | None


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be so for a write to be carried out.

    Args:
        newest_id: The newest checkpoint has this id; `NO_CHECKPOINT`: there is none.
        newest_token: The newest checkpoint's row has this token; `NO_CHECKPOINT`: there is none.
        lease: The write belongs to this turn.
    """

    newest_id: Expected = None
    newest_token: bytes | Literal[NoCheckpoint.NO_CHECKPOINT] | None = None
    lease: Lease | None = None

    def __bool__(self) -> bool:
        return self.newest_id is not None or self.newest_token is not None or self.lease is not None

    def guards(self, sql: CheckpointDialect, key: ThreadKey) -> Iterable[Statement]:
        """Statements that undo the batch if it is not so. The thread must be locked, for a save with a seq taken."""
        if self.newest_id is not None:
            yield sql.turns.newest_has_id(*key, None if self.newest_id is NO_CHECKPOINT else self.newest_id)
        if self.newest_token is not None:
            yield sql.turns.newest_has_token(*key, None if self.newest_token is NO_CHECKPOINT else self.newest_token)
        if self.lease is not None:
            yield sql.turns.fence(*key, self.lease.token)


NOTHING_EXPECTED: Final = Condition()


def expecting(expected: Expected) -> Condition:
    """The condition that a caller gave.

    Raises:
        InvalidInput: It is neither a checkpoint's id nor `NO_CHECKPOINT`.
    """
    if expected is None or expected is NO_CHECKPOINT:
        return Condition(expected)
    return Condition(check_checkpoint_id(expected))
