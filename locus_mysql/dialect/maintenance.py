"""Rows that the maintenance statements of several families return."""

from __future__ import annotations

from typing import NamedTuple


class ExpiredCount(NamedTuple):
    """The number of expired entities of a family, such as sessions."""

    expired: int
