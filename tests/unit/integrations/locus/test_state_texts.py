"""The direct encoding of an agent's state agrees with that of `to_checkpoint`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from locus.core.state import AgentState, ToolExecution
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.coding.codec import EncodedState, encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import StoredRow, assemble, encode_delta, seal_payload
from locus_mysql.integrations.locus import state_texts
from locus_mysql.integrations.locus.state_texts import (
    NO_MESSAGES,
    decode_state,
    dump_messages,
    encode_messages,
    encode_state,
    only_calls,
)
from locus_mysql.runtime.exact_json import decode_json
from locus_mysql.runtime.sealing import Sealing

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


class Note(BaseModel):
    """An object in a state's metadata."""

    weight: float


class Noted(AgentState):
    """A state with an additional field."""

    rating: float = 0.0


class Tagged(AgentState):
    """A state with its own form of checkpoints."""

    def to_checkpoint(self) -> dict[str, Any]:
        return {**super().to_checkpoint(), "agent_id": "tagged"}


def text(state: EncodedState) -> bytes:
    sealing = Sealing(None, "agents")
    payload = seal_payload(sealing, encode_delta(state, hash_logs(state, {}), ()), b"")
    return assemble([StoredRow(1, b"", payload)], "t", sealing)[0].text()


@pytest.mark.parametrize("state", STATES, ids=["empty", "messages", "executions", "surrogate"])
def test_a_directly_encoded_state_equals_its_checkpoint_but_keeps_nan(state: AgentState) -> None:
    directly, by_dicts = decode_json(text(encode_state(state))), decode_json(text(encode(state.to_checkpoint())))
    assert _said(directly).replace(": nan", ": None") == _said(by_dicts).replace(": nan", ": None")
    assert _said(directly).count(": nan") == repr(state.model_dump()).count(": nan")


def _said(data: dict[str, Any]) -> str:
    return repr(dict(sorted(data.items())))


def test_nan_and_infinities_are_kept_at_any_position() -> None:
    odd = {"nan": float("nan"), "more": [float("inf"), {"less": float("-inf")}]}
    call = ToolCall(id="c1", name="add", arguments=odd)
    state = Noted(
        messages=(Message(role="user", content="", metadata=odd), Message.assistant(None, tool_calls=[call])),
        tool_executions=(
            ToolExecution(tool_name="add", tool_call_id="c1", arguments=odd, result="", duration_ms=float("inf")),
        ),
        confidence_history=(0.5, float("nan")),
        metadata={"note": Note(weight=float("nan")), **odd},
        provider_state=odd,
        rating=float("-inf"),
    )
    loaded = Noted.model_validate_json(text(encode_state(state)))
    assert plain(loaded.model_dump()) == plain(state.model_dump())


def plain(value: Any) -> Any:
    """Return a comparable form of a value, in which NaN equals NaN."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("other", [b"[]", b"5", b"null", b'{"messages":5}', b'{"run_id":', b"\xff"])
def test_a_value_that_is_no_agent_state_is_a_corrupt_checkpoint_whose_error_shows_no_content(other: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="thread 't'") as caught:
        decode_state(other, "t")
    assert caught.value.__cause__ is None


def test_a_state_with_a_checkpoint_form_of_its_own_is_saved_in_that_form() -> None:
    assert decode_json(text(encode_state(Tagged(messages=MESSAGES))))["agent_id"] == "tagged"


def test_only_a_method_that_just_calls_pydantic_is_bypassed() -> None:
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
    monkeypatch.setattr(state_texts, "_ONLY_VALIDATES", plainly)
    assert repr(decode_state(stored, "t")) == repr(AgentState.from_checkpoint(decode_json(stored)))


HELLO, ANSWER = Message.user("hello"), Message.assistant("well …")
CALLING = Message.assistant(None, tool_calls=[ToolCall(id="c1", name="add", arguments={"a": [1]})])
NOTED = Message(role="user", content="noted", metadata={"at": {"hour": 1}})


class NotedMessage(Message):
    """A mutable message class of a user."""

    model_config = ConfigDict(frozen=False)


class Texts:
    """Encodes the messages of one thread at each save."""

    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self._before = NO_MESSAGES

    def encode(self, messages: Any) -> bytes:
        encoded = encode_messages(messages, self._before)
        if self._keeps:
            self._before = encoded
        return encoded.text


@pytest.fixture
def texts() -> Texts:
    return Texts()


def encoded(texts: Texts, *messages: Message) -> bytes:
    """Return the text after checking that it is that of the current messages."""
    text = texts.encode(messages)
    assert text == dump_messages(messages)
    return text


@pytest.mark.parametrize("keeps", [True, False])
def test_a_conversation_that_grows_shrinks_and_branches(keeps: bool) -> None:
    texts = Texts(keeps=keeps)
    messages = [HELLO, ANSWER, CALLING, NOTED, HELLO, Message.user("b"), ANSWER]
    for end in (0, 1, 3, 3, 4, 7, 2, 5, 0, 7):
        encoded(texts, *messages[:end])
    encoded(texts, *messages[:3], Message.user("another"), *messages[4:])
    encoded(texts, *reversed(messages))


def test_only_new_messages_are_encoded(texts: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    texts.encode((HELLO,) * 100)
    dumped: list[Any] = []

    def counting(messages: Any) -> bytes:
        dumped.extend(messages)
        return dump_messages(messages)

    monkeypatch.setattr("locus_mysql.integrations.locus.state_texts.dump_messages", counting)
    texts.encode((*(HELLO,) * 100, ANSWER))
    assert dumped == [ANSWER]


def test_messages_changed_in_place_are_noticed(texts: Texts) -> None:
    plain, calling, noted = (message.model_copy(deep=True) for message in (HELLO, CALLING, NOTED))
    own = NotedMessage(role="user", content="mine")
    messages = (plain, calling, noted, own)
    seen = {encoded(texts, *messages)}
    plain.metadata["cache_control"] = "ephemeral"
    seen.add(encoded(texts, *messages))
    plain.metadata.clear()
    encoded(texts, *messages)
    plain.tool_calls.append(ToolCall(id="c2", name="sub", arguments={}))
    seen.add(encoded(texts, *messages))
    calling.tool_calls[0].arguments["a"].append(2)
    seen.add(encoded(texts, *messages, HELLO))
    noted.metadata["at"]["hour"] = 2
    seen.add(encoded(texts, *messages, HELLO))
    own.content = "yours"
    seen.add(encoded(texts, *messages, HELLO))
    assert len(seen) == 6


def test_text_without_a_utf8_form_fails_every_time(texts: Texts) -> None:
    encoded(texts, HELLO)
    for _ in range(2):
        with pytest.raises(PydanticSerializationError):
            texts.encode((HELLO, Message.user("\ud800")))
    encoded(texts, HELLO, ANSWER)
