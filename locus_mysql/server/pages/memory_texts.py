"""The text of an item of long-term memory, and namespaces as a tree. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...families.inspection.memory_records import NamespaceRow

#: Fields with the text of an item, in the order of preference.
TEXTS = ("text", "content", "memory", "fact", "summary", "message", "description", "value")

#: The beginning of a text in JSON that may be cut off.
_BEGINNING = re.compile(r'"(' + "|".join(TEXTS) + r')"\s*:\s*"((?:[^"\\]|\\.)*)')


def text_of(value: Any) -> str:
    """Return the text of an item's value; empty if none of its fields is known to contain it."""
    for _ in range(3):  # LangMem keeps the content below another content
        if isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            return ""
        value = next((value[name] for name in TEXTS if isinstance(value.get(name), str | Mapping)), None)
    return value if isinstance(value, str) else ""


def text_of_preview(preview: str) -> str:
    """Return the text in the beginning of a value; the beginning itself if it contains none that is known."""
    try:
        found = text_of(json.loads(preview))
    except (ValueError, RecursionError):
        match = _BEGINNING.search(preview)
        found = "" if match is None else _decoded(match[2])
    return found or preview


def _decoded(escaped: str) -> str:
    """Return a text of JSON that may end within an escape."""
    for cut in range(7):
        try:
            text = str(json.loads(f'"{escaped[: len(escaped) - cut]}"'))
        except ValueError:
            continue
        return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text  # the first half of a character
    return escaped


@dataclass(slots=True)
class NamespaceNode:
    """A label in the tree of namespaces.

    Attributes:
        namespace: The labels up to this one.
        row: The namespace's items; None if only namespaces below it have some.
        below: The nodes below it.
    """

    namespace: tuple[str, ...]
    row: NamespaceRow | None = None
    below: list[NamespaceNode] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Return the last label."""
        return self.namespace[-1] if self.namespace else ""


def namespace_tree(rows: Sequence[NamespaceRow], prefix: tuple[str, ...]) -> NamespaceNode:
    """Return the namespaces below a prefix as a tree.

    Args:
        rows: The namespaces with items, sorted.
        prefix: The prefix, which all of them begin with.
    """
    root = NamespaceNode(prefix)
    nodes = {prefix: root}
    for row in rows:
        for depth in range(len(prefix) + 1, len(row.namespace) + 1):
            path = row.namespace[:depth]
            if path not in nodes:
                nodes[path] = NamespaceNode(path)
                nodes[path[:-1]].below.append(nodes[path])
        nodes[row.namespace].row = row
    return root
