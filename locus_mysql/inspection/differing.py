"""What changed between two states. Pure."""

from __future__ import annotations

from .records import Difference, StateView


def difference(before: StateView, after: StateView) -> Difference:
    """What changed from one state of a thread to another."""
    return Difference(before.thread_id, before.checkpoint, after.checkpoint, (), ())
