"""The direct encoding of an agent's state, beside the one by way of `to_checkpoint`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from locus.core.state import AgentState, ToolExecution

from locus_mysql.checkpoints.codec import EncodedState, decode_json, encode
from locus_mysql.checkpoints.delta import StoredRow, assemble, encode_delta
from locus_mysql.checkpoints.digests import hash_logs
from locus_mysql.integrations import state_texts
from locus_mysql.integrations.state_texts import decode_state, encode_state, only_calls

CALL = ToolCall(id="c1", name="add", arguments={"a": 1, "b": [1.5, None, {"deep": "\u00e9"}]})
MESSAGES = (
    Message.system("You add."),
    Message.user("1 + 1? \U0001f600 \u2028 \x00"),
    Message.assistant(None, tool_calls=[CALL]),
    Message(role="tool", content="2", tool_call_id="c1", name="add", metadata={"at": datetime(2026, 1, 1, tzinfo=UTC)}),
    Message(role="user", content="", metadata={"nan": float("nan"), "set": {1}, "big": 10**100, "bytes": b"x"}),
)
STATES = [
    AgentState(),
    AgentState(messages=MESSAGES, confidence=0.5, confidence_history=(0.1, 0.5), metadata={"k": [1, 2]}),
    AgentState(
        messages=MESSAGES * 3,
        tool_executions=(ToolExecution(tool_name="add", tool_call_id="c1", arguments={}, duration_ms=float("nan")),),
    ),
    AgentState(messages=(Message.user("lone \ud800 surrogate"),)),
]


class Tagged(AgentState):
    """A state that writes its checkpoints its own way."""

    def to_checkpoint(self) -> dict[str, Any]:
        return {**super().to_checkpoint(), "agent_id": "tagged"}


def text(state: EncodedState) -> bytes:
    return assemble([StoredRow(1, b"", encode_delta(state, hash_logs(state, {}), ()).payload)])[0].text()


@pytest.mark.parametrize("state", STATES, ids=["empty", "messages", "executions", "surrogate"])
def test_a_state_encoded_directly_says_the_same_as_its_checkpoint(state: AgentState) -> None:
    directly, by_dicts = decode_json(text(encode_state(state))), decode_json(text(encode(state.to_checkpoint())))
    assert repr(dict(sorted(directly.items()))) == repr(dict(sorted(by_dicts.items())))


def test_a_state_with_a_checkpoint_form_of_its_own_is_saved_in_that_form() -> None:
    assert decode_json(text(encode_state(Tagged(messages=MESSAGES))))["agent_id"] == "tagged"


def test_only_a_method_that_does_no_more_than_call_pydantic_is_gone_round() -> None:
    class Migrating:
        @classmethod
        def plain(cls, data: dict[str, Any]) -> Any:
            return cls.model_validate(data)  # type: ignore[attr-defined]  # never called

        @classmethod
        def from_checkpoint(cls, data: dict[str, Any]) -> Any:
            data.setdefault("added_later", None)
            return cls.model_validate(data)  # type: ignore[attr-defined]  # never called

    assert only_calls(Migrating.plain, "model_validate")
    assert not only_calls(Migrating.from_checkpoint, "model_validate")
    assert not only_calls(len, "model_validate")


@pytest.mark.parametrize("state", STATES, ids=["empty", "messages", "executions", "surrogate"])
@pytest.mark.parametrize("plainly", [True, False])
def test_a_state_is_decoded_to_the_same_either_way(
    state: AgentState, plainly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = text(encode_state(state))
    monkeypatch.setattr(state_texts, "_DECODES_PLAINLY", plainly)
    assert repr(decode_state(stored)) == repr(AgentState.from_checkpoint(decode_json(stored)))
