"""The order of imported checkpoints relative to those stored in a thread: `Order`. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import accumulate
from typing import Literal, TypeAlias

#: The checkpoint is stored; is missing and may become the newest; or is missing and older than stored ones.
Arrival: TypeAlias = Literal["stored", "missing", "behind"]


class Order:
    """Decides which arriving checkpoints may be written. They arrive oldest first.

    A checkpoint that is written becomes the newest of its thread. So a missing one may be written only if the thread
    has no newer ones: it is compared by time with the stored checkpoints after the last arrival.

    Args:
        stored: The checkpoints that the thread has, oldest first, with their times.
    """

    def __init__(self, stored: Mapping[str, datetime]) -> None:
        self._positions = {checkpoint_id: position for position, checkpoint_id in enumerate(stored)}
        #: The latest time at or after each position.
        self._latest = list(accumulate(reversed([*stored.values()]), max))[::-1]
        self._met = 0  # the number of stored checkpoints up to the last one that arrived

    def classify(self, checkpoint_id: str, created_at: datetime | None) -> Arrival:
        """Classify the next checkpoint.

        Args:
            checkpoint_id: Its id.
            created_at: When it was saved, if that is known.
        """
        position = self._positions.get(checkpoint_id)
        if position is not None:
            self._met = max(self._met, position + 1)
            return "stored"
        if self._met >= len(self._latest) or (created_at is not None and self._latest[self._met] <= created_at):
            return "missing"
        return "behind"

    def written(self, checkpoint_id: str) -> None:
        """Note that a missing checkpoint was written, as the newest."""
        self._positions[checkpoint_id] = len(self._positions)
        self._met = len(self._latest)
