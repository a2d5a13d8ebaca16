"""Copying checkpoints from any LangGraph saver into another: `copy_checkpoints`."""

from __future__ import annotations

from typing import NamedTuple


class CopySummary(NamedTuple):
    """What a copy did."""

    threads: int


def copy_checkpoints() -> CopySummary:
    """To come."""
    raise NotImplementedError


async def acopy_checkpoints() -> CopySummary:
    """To come."""
    raise NotImplementedError
