"""The chapters of the demo by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TextIO, TypeAlias

from locus_mysql.config import MySQLConfig

#: Runs a chapter with its output on a stream; returns True if every check held.
RunDemo: TypeAlias = Callable[[MySQLConfig, TextIO], Coroutine[Any, Any, bool]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter of the demo.

    Args:
        summary: A summary for ``--list``.
        extra: The extra of this package that it needs.
        module: The module with its sections, relative to this package.
        group: Whether it needs a group of three servers, of which it kills one.
    """

    summary: str
    extra: str
    module: str
    group: bool = False

    def load(self) -> RunDemo:
        """The function that runs the chapter; its module is imported now."""
        run_demo: RunDemo = import_module(f"{__package__}.{self.module}").run_demo
        return run_demo


#: The first one is the default.
CHAPTERS: Mapping[str, Chapter] = {
    "agents": Chapter("Locus agents that remember, with a scripted model", "locus", "agents.demo"),
    "langgraph": Chapter("a LangGraph graph: interrupted, resumed elsewhere, rewound", "langgraph", "langgraph.demo"),
    "turns": Chapter("the double click, the closed browser tab and the crashed worker", "langgraph", "turns.demo"),
    "memories": Chapter(
        "facts from one conversation, found by similarity and used in another", "locus", "memories.demo"
    ),
    "working": Chapter("a session that survives the death of its process, and of its Redis", "locus", "working.demo"),
    "claude": Chapter("a Claude Agent SDK session that outlives its process", "claude-agent-sdk", "claude.demo"),
    "openai": Chapter("an OpenAI Agents SDK session that outlives its process", "openai-agents", "openai_agents.demo"),
    "pydantic": Chapter("a Pydantic AI conversation: killed, shared and forked", "pydantic-ai", "pydantic_ai.demo"),
    "strands": Chapter("a Strands agent that outlives its process, and two on one session", "strands", "strands.demo"),
    "adk": Chapter("a Google ADK agent that outlives its process", "adk", "adk.demo"),
    "engines": Chapter("one program on MySQL, and on OceanBase by its DSN", "locus", "engines.demo"),
    "incident": Chapter("what did it know then, and what changed? looked up in the terminal", "locus", "incident.demo"),
    "year": Chapter(
        "a team's year: upgrades, rotated keys, a backup, another server; nothing is lost", "langgraph", "year.demo"
    ),
    "failover": Chapter(
        "a conversation goes on while the primary of a group is killed", "locus", "failover.demo", group=True
    ),
}


if __name__ == "__main__":  # ci/demo asks which extra a chapter needs
    print(*(chapter.extra for name, chapter in CHAPTERS.items() if name in sys.argv[1:2]))
