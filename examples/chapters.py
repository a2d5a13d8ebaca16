"""What the demo can show, by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO, TypeAlias

from locus_mysql.config import MySQLConfig

#: Tells a chapter on a stream; True if every check held.
Tell: TypeAlias = Callable[[MySQLConfig, TextIO], Coroutine[Any, Any, bool]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the demo.

    Args:
        summary: What it shows.
        extra: The extra of this package that it needs.
        module: Where it is told, beside this module.
    """

    summary: str
    extra: str
    module: str

    def load(self) -> Tell:
        """What tells it; imports what it needs."""
        tell: Tell = import_module(f"{__package__}.{self.module}").tell
        return tell


#: The first one is shown where none is named.
CHAPTERS: Mapping[str, Chapter] = {
    "agents": Chapter("Locus agents that remember, with a scripted model", "locus", "agents.story"),
    "langgraph": Chapter("a LangGraph graph: interrupted, resumed elsewhere, rewound", "langgraph", "langgraph.story"),
    "memories": Chapter(
        "facts told in one conversation, used in another, found by likeness", "locus", "memories.story"
    ),
    "working": Chapter("a session that survives the death of its process, and of its Redis", "locus", "working.story"),
    "incident": Chapter(
        "what did it know then, and what changed? looked up in the terminal", "locus", "incident.story"
    ),
}
