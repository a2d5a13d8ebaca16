"""A model of Strands Agents that gives scripted answers."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any

from strands.models import Model


class ScriptedModel(Model):
    """Answers each call with the next of some answers.

    Args:
        answers: Texts, or calls of tools as ``{"name": …, "input": …}``.
    """

    def __init__(self, answers: Sequence[str | dict[str, Any]]) -> None:
        self._answers = list(answers)
        self.received: list[list[Any]] = []

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[Any, None]:
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterable[Any]:
        self.received.append(copy.deepcopy(messages))
        answer = self._answers.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(answer, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer}}}
        else:
            call = {"name": answer["name"], "toolUseId": f"call-{len(self._answers)}"}
            yield {"contentBlockStart": {"start": {"toolUse": call}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(answer["input"])}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(answer, str) else "tool_use"}}


def texts_of(messages: Sequence[Any]) -> list[str]:
    """Return the texts of messages, without calls of tools."""
    return [block["text"] for message in messages for block in message["content"] if "text" in block]
