"""Agents for measurements: real Locus agents with a tool, whose model and tool answer with random words."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from locus.agent import Agent
from locus.core.messages import Message
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.compaction import ContextCompactor, is_summary_message
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

WORDS_PER_MESSAGE = 80
SUMMARY_WORDS = 300
UNCOMPACTED_WINDOW = 1_000_000_000
LARGE_OUTPUT_CHARS = 200_000

_SYLLABLES = ["ka", "lo", "mi", "ren", "tas", "vel", "dor", "pin", "su", "gra", "che", "no"]
# Size of a turn for Locus' compactor, in its "tokens". Far above what the compactor adds for the tool and the reply.
_TURN_TOKENS = 100_000
# A compaction keeps the first question, the summary and the newest question; they count as well.
_KEPT_BY_COMPACTION = 3


def prose(source: random.Random, words: int = WORDS_PER_MESSAGE) -> str:
    """Return random words, with as many distinct ones as English text has."""
    return " ".join("".join(source.choices(_SYLLABLES, k=source.randint(1, 4))) for _ in range(words))


@dataclass
class Assistant:
    """A user and an agent, which calls its tool in two turns of three and answers the third directly.

    With this pattern, the conversation has 10, 100, 1,000 and 5,000 messages after whole turns, besides the system
    message.

    Args:
        seed: Seed of the random words.
        large_outputs: The tool answers with 200 KB.
        turns_between_compactions: Number of turns after which Locus' own compactor replaces older messages by a
            summary.
    """

    seed: int = 1
    large_outputs: bool = False
    turns_between_compactions: int | None = None
    _source: random.Random = field(init=False, repr=False)
    _turns: count[int] = field(init=False, repr=False)
    _calls: count[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._source = random.Random(self.seed)
        self._turns = count()
        self._calls = count()

    def question(self) -> str:
        """Return the user's next message."""
        looks_up = next(self._turns) % 3 != 0
        return ("Look up: " if looks_up else "") + prose(self._source)

    def tool_output(self) -> str:
        """Return the tool's answer."""
        if not self.large_outputs:
            return prose(self._source)
        return prose(self._source, LARGE_OUTPUT_CHARS // 4)[:LARGE_OUTPUT_CHARS]

    def agent(self, checkpointer: BaseCheckpointer, **options: Any) -> Agent:
        """Make the agent. ``options`` are passed to Locus' ``Agent``."""

        @tool
        def look_up(topic: str) -> str:
            """Look a topic up."""
            return self.tool_output()

        compaction: dict[str, Any] = {"context_window": UNCOMPACTED_WINDOW}
        if self.turns_between_compactions is not None:
            compaction = {"conversation_manager": self._compactor(self.turns_between_compactions)}
        return Agent(
            model=FunctionModel(self._answer),
            tools=[look_up],
            checkpointer=checkpointer,
            system_prompt="Answer from what you look up.",
            max_tool_result_length=2 * LARGE_OUTPUT_CHARS,
            **compaction,
            **options,
        )

    def _answer(self, heard: Sequence[Message], tools: object) -> ModelResponse:
        newest = heard[-1]
        if newest.role.value == "user" and (newest.content or "").startswith("Look up: "):
            number = next(self._calls)
            return tool_call("look_up", call_id=f"call_{number}", topic=f"topic {number}")
        return text(prose(self._source))

    def _compactor(self, turns: int) -> ContextCompactor:
        def tokens(message: Message) -> int:
            return _TURN_TOKENS if message.role.value == "user" or is_summary_message(message) else 0

        return ContextCompactor(
            context_length=_TURN_TOKENS * (turns + _KEPT_BY_COMPACTION),
            reserved_tokens=0,
            trigger_fraction=1.0,
            tail_turns=1,
            summary_model=FunctionModel(lambda heard, tools: text(prose(self._source, SUMMARY_WORDS))),
            token_counter=tokens,
        )
