"""Where checkpoints that come in their order stand among those that a thread has: `Order`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import accumulate
from typing import Literal, TypeAlias

#: A checkpoint is there already; is not, and may become the newest; or is not, and would come behind newer ones.
Place: TypeAlias = Literal["there", "missing", "behind"]


class Order:
    """Tells what becomes of each checkpoint that comes, oldest first.

    What is written becomes a thread's newest. So what is missing may be written only if nothing in the thread is newer:
    what stands there behind all that came is known to be older by its time.

    Args:
        there: The checkpoints that the thread has, oldest first, with their times.
    """

    def __init__(self, there: Mapping[str, datetime]) -> None:
        self._places = {checkpoint_id: place for place, checkpoint_id in enumerate(there)}
        #: The latest time from each place on.
        self._latest = list(accumulate(reversed([*there.values()]), max))[::-1]
        self._met = 0  # how many stand before the place where the next one is looked for

    def place(self, checkpoint_id: str, created_at: datetime | None) -> Place:
        """What becomes of the next one.

        Args:
            checkpoint_id: Its id.
            created_at: When it was saved, if that is known.
        """
        place = self._places.get(checkpoint_id)
        if place is not None:
            self._met = max(self._met, place + 1)
            return "there"
        if self._met >= len(self._latest) or (created_at is not None and self._latest[self._met] <= created_at):
            return "missing"
        return "behind"

    def written(self, checkpoint_id: str) -> None:
        """One that was missing is there now, as the newest."""
        self._places[checkpoint_id] = len(self._places)
        self._met = len(self._latest)
