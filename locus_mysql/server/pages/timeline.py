"""The drawing of a thread's checkpoints as a tree: the lane of each, and the lines that pass it. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...families.inspection.records import CheckpointRow

#: Number of lanes. Further branches share the last one.
LANES = 8


@dataclass(frozen=True, slots=True)
class Node:
    """A checkpoint in the drawing. Lanes are counted from the left, from 0.

    Attributes:
        row: The checkpoint.
        lane: The lane of its dot.
        above: Whether its continuation is above it, in its lane.
        below: Whether a line leads from it to its parent.
        passing: Lanes whose lines pass by it.
        joining: Lanes of further branches that begin at it.
    """

    row: CheckpointRow
    lane: int
    above: bool
    below: bool
    passing: Sequence[int]
    joining: Sequence[int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawing, newest first.

    Attributes:
        nodes: Its rows.
        lanes: Its number of lanes.
        branches: Its number of leaves, checkpoints without a continuation. Each of a graph's subgraphs adds one.
    """

    nodes: Sequence[Node]
    lanes: int
    branches: int


def timeline(rows: Sequence[CheckpointRow]) -> Timeline:
    """Draw checkpoints, newest first. Each lane waits for the parent of the checkpoint above.

    A parent is older, so it comes after its continuations; one that does not is drawn as a leaf.
    """
    waiting: list[tuple[str, str] | None] = []
    nodes = []
    branches = 0
    for row in rows:
        key = (row.namespace, row.checkpoint_id)
        lanes = [lane for lane, wanted in enumerate(waiting) if wanted == key]
        above = bool(lanes)
        if not lanes:
            branches += 1
            lanes = [_free(waiting)]
        lane, *joining = lanes
        for other in joining:
            waiting[other] = None
        waiting[lane] = None
        passing = [other for other, wanted in enumerate(waiting) if wanted is not None]
        waiting[lane] = None if row.parent_id is None else (row.namespace, row.parent_id)
        nodes.append(
            Node(
                row=row,
                lane=_drawn(lane),
                above=above,
                below=waiting[lane] is not None,
                passing=_all_drawn(passing),
                joining=_all_drawn(joining),
            )
        )
    subgraphs = len({row.namespace for row in rows}) - 1
    return Timeline(nodes, min(len(waiting), LANES), branches - max(subgraphs, 0))


def _free(waiting: list[tuple[str, str] | None]) -> int:
    """Return the first free lane."""
    for lane, wanted in enumerate(waiting):
        if wanted is None:
            return lane
    waiting.append(None)
    return len(waiting) - 1


def _drawn(lane: int) -> int:
    return min(lane, LANES - 1)


def _all_drawn(lanes: Sequence[int]) -> list[int]:
    return sorted({_drawn(lane) for lane in lanes})
