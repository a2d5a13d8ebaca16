"""A JSON value of any size and depth as a tree that can be folded and searched. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

#: Limits of the tree: number of nodes, depth, characters of each text. The JSON file has the rest.
MOST_NODES, MOST_LEVELS, MOST_CHARACTERS = 2_000, 24, 1_000

#: Number of levels unfolded at first.
OPEN_LEVELS = 1

Kind: TypeAlias = Literal["object", "array", "text", "number", "boolean", "null", "more"]


@dataclass(slots=True)
class Branch:
    """A node of the tree.

    Attributes:
        name: The key or index; empty for the root.
        kind: The type of its value; ``more`` stands for omitted nodes.
        text: The value, if it is a scalar.
        count: Its number of child values.
        below: The children in the tree.
        open: Whether it is unfolded.
        hit: Whether the node itself contains the searched text.
    """

    name: str
    kind: Kind
    text: str = ""
    count: int = 0
    below: list[Branch] = field(default_factory=list)
    open: bool = False
    hit: bool = False


@dataclass(slots=True)
class _Budget:
    nodes: int = MOST_NODES


def tree(value: Any, find: str = "") -> Branch:
    """Return the tree of a value.

    Args:
        value: A JSON value.
        find: A text to search for in keys and texts, ignoring case. The path to each hit is unfolded.
    """
    return _branch("", value, find.casefold(), 0, _Budget())


def hits(branch: Branch) -> int:
    """Return the number of nodes that contain the searched text."""
    return branch.hit + sum(map(hits, branch.below))


def _branch(name: str, value: Any, find: str, level: int, budget: _Budget) -> Branch:
    budget.nodes -= 1
    if isinstance(value, str) or not isinstance(value, Mapping | Sequence):
        kind, text = _leaf(value)
        branch = Branch(name, kind, text if len(text) <= MOST_CHARACTERS else _cut(text))
        branch.hit = bool(find) and (find in name.casefold() or find in text.casefold())
        return branch
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    branch = Branch(name, "object" if isinstance(value, Mapping) else "array", count=len(value))
    branch.hit = bool(find) and isinstance(value, Mapping) and find in name.casefold()
    branch.below = list(_below(pairs, len(value), find, level, budget))
    branch.open = level < OPEN_LEVELS or any(one.open or one.hit for one in branch.below if find)
    return branch


def _below(pairs: Iterable[tuple[Any, Any]], count: int, find: str, level: int, budget: _Budget) -> Iterator[Branch]:
    if level >= MOST_LEVELS:
        if count:
            yield Branch("", "more", "deeper than is shown here")
        return
    for at, (key, one) in enumerate(pairs):
        if budget.nodes <= 0:
            yield Branch("", "more", f"{count - at} more")
            return
        yield _branch(str(key), one, find, level + 1, budget)


def _leaf(value: Any) -> tuple[Kind, str]:
    if value is None:
        return "null", "null"
    if isinstance(value, bool):
        return "boolean", "true" if value else "false"
    if isinstance(value, int | float):
        return "number", json.dumps(value)
    return "text", str(value)


def _cut(text: str) -> str:
    return f"{text[:MOST_CHARACTERS]}\u2026 ({len(text):,} characters; the JSON has them all)"
