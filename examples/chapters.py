"""The chapters of the demo by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO, TypeAlias

from locus_mysql.config import MySQLConfig

#: Runs a chapter with its output on a stream; returns True if every check held.
Tell: TypeAlias = Callable[[MySQLConfig, TextIO], Coroutine[Any, Any, bool]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the demo.

    Args:
        summary: A summary for ``--list``.
        extra: The extra of this package that it needs.
        module: The module with its scenes, relative to this package.
        group: Whether it needs a group of three servers, of which it kills one.
    """

    summary: str
    extra: str
    module: str
    group: bool = False

    def load(self) -> Tell:
        """The function that runs the chapter; its module is imported now."""
        tell: Tell = import_module(f"{__package__}.{self.module}").tell
        return tell


#: The first one is the default.
CHAPTERS: Mapping[str, Chapter] = {
    "agents": Chapter("Locus agents that remember, with a scripted model", "locus", "agents.story"),
    "langgraph": Chapter("a LangGraph graph: interrupted, resumed elsewhere, rewound", "langgraph", "langgraph.story"),
    "memories": Chapter(
        "facts from one conversation, found by similarity and used in another", "locus", "memories.story"
    ),
    "working": Chapter("a session that survives the death of its process, and of its Redis", "locus", "working.story"),
    "claude": Chapter("a Claude Agent SDK session that outlives its process", "claude-agent-sdk", "claude.story"),
    "openai": Chapter("an OpenAI Agents SDK session that outlives its process", "openai-agents", "openai_agents.story"),
    "pydantic": Chapter("a Pydantic AI conversation: killed, shared and forked", "pydantic-ai", "pydantic_ai.story"),
    "harness": Chapter(
        "a Pydantic AI Harness run: killed in a tool call, continued, its memory kept",
        "pydantic-ai-harness",
        "pydantic_ai_harness.story",
    ),
    "strands": Chapter("a Strands agent that outlives its process, and two on one session", "strands", "strands.story"),
    "adk": Chapter("a Google ADK agent that outlives its process", "adk", "adk.story"),
    "engines": Chapter("one program on MySQL, and on OceanBase by its DSN", "locus", "engines.story"),
    "incident": Chapter(
        "what did it know then, and what changed? looked up in the terminal", "locus", "incident.story"
    ),
    "failover": Chapter(
        "a conversation goes on while the primary of a group is killed", "locus", "failover.story", group=True
    ),
}


if __name__ == "__main__":  # ci/demo asks which extra a chapter needs
    print(*(chapter.extra for name, chapter in CHAPTERS.items() if name in sys.argv[1:2]))
