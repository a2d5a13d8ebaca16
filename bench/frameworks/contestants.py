"""What a framework's module provides, and the list of these modules: `FRAMEWORKS`.

To add a framework, write a module with a `FRAMEWORK` here and add its name to `FRAMEWORKS`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from locus_mysql import MySQLConfig

from ..agents import prose

#: The modules of this package, each with a `FRAMEWORK`.
FRAMEWORKS = (
    *("claude_agent_sdk", "google_adk", "openai_agents", "strands", "strands_messages"),
    "pydantic_ai",
)

#: The name of the conversation that is measured.
CONVERSATION = "conversation"

QUESTION_BYTES, ANSWER_BYTES = 200, 800


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation.

    Args:
        number: Its number, from 0.
        question: The user's message.
        answer: The agent's answer.
    """

    number: int
    question: str
    answer: str


class Contestant(ABC):
    """A store of one framework with one conversation, `CONVERSATION`.

    Args:
        config: An empty database, for stores on MySQL.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config

    @abstractmethod
    async def append(self, turn: Turn) -> None:
        """Store the next turn, as the framework does at the end of a turn. The first one begins the conversation."""

    @abstractmethod
    async def load(self) -> int:
        """Load the whole conversation as the framework does to resume it; return the number of its turns."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    def stored_bytes(self) -> int | None:
        """Return the stored bytes of a store that is not on MySQL; None for one whose bytes are in the database."""
        return None


@dataclass(frozen=True)
class Entrant:
    """A kind of contestant.

    Args:
        name: Its name.
        make: Makes it for a database.
        driver: The driver of its configuration, for those of this package.
    """

    name: str
    make: Callable[[MySQLConfig], Contestant]
    driver: str = "aiomysql"


@dataclass(frozen=True)
class Framework:
    """A framework and its contestants.

    Args:
        title: Its name, with the version.
        entrants: Its contestants. The first one is this package, whose counts are gated.
        remark: A remark on the other contestants, for readers of the report.
    """

    title: str
    entrants: Sequence[Entrant]
    remark: str


def frameworks() -> dict[str, Framework]:
    """Return all frameworks by the names of their modules."""
    return {name: import_module(f"{__package__}.{name}").FRAMEWORK for name in FRAMEWORKS}


def turn(number: int) -> Turn:
    """Return the turn of a number: the same for every contestant and in every run."""
    source = random.Random(number)

    def text(size: int) -> str:
        written = ""
        while len(written) < size:
            written += prose(source) + " "
        return written[:size]

    return Turn(number, text(QUESTION_BYTES), text(ANSWER_BYTES))
