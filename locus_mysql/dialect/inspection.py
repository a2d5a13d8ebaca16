"""Rows that the inspection statements of several families return."""

from __future__ import annotations

from typing import NamedTuple


class ThreadMarker(NamedTuple):
    """A thread, and a value that every write to it changes."""

    thread_id: str
    marker: str | bytes


class CreatedRow(NamedTuple):
    """The number of items created on a day; without a day, the number of all that were examined."""

    day: str | None
    items: int


class ThreadId(NamedTuple):
    """The id of a thread."""

    thread_id: str
