"""Encoding and decoding of messages agree with LangGraph's serialiser, also after changes in place."""

from __future__ import annotations

import copy
import enum
import itertools
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from locus_mysql.families.graphs.values import EncodedValue
from locus_mysql.integrations.langgraph.messages import MessagePieces, load
from locus_mysql.lru_cache import LRUCache

SERDE = JsonPlusSerializer()
JSON: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text(max_size=9)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
CONTENT: Any = st.one_of(st.text(max_size=30), st.just([{"type": "text", "text": "part"}, "rest"]))
MESSAGES: Any = st.one_of(
    st.builds(HumanMessage, content=CONTENT, additional_kwargs=OBJECTS, id=st.text(max_size=9)),
    st.builds(SystemMessage, content=CONTENT, name=st.text(max_size=5)),
    st.builds(ToolMessage, content=CONTENT, tool_call_id=st.text(max_size=5), artifact=JSON),
    st.builds(
        AIMessage,
        content=CONTENT,
        response_metadata=OBJECTS,
        tool_calls=st.just([{"name": "find", "args": {"x": 1}, "id": "1", "type": "tool_call"}]),
        usage_metadata=st.just({"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ),
)


def whole(value: Any) -> EncodedValue:
    return EncodedValue(*SERDE.dumps_typed(value))


def dump(pieces: MessagePieces, value: Any, serde: Any = SERDE) -> EncodedValue:
    dumped = pieces.dump(serde, ("key",), value)
    return EncodedValue(dumped.kind, dumped.data)


def conversation(count: int) -> list[AnyMessage]:
    return [
        AIMessage(f"answer {number}", id=str(number), response_metadata={"model": "m", "numbers": [1, 2]})
        if number % 2
        else HumanMessage(f"question {number}", id=str(number))
        for number in range(count)
    ]


@settings(deadline=None)
@given(st.lists(MESSAGES, max_size=8))
def test_messages_are_read_as_langgraph_reads_them(messages: list[AnyMessage]) -> None:
    for value in (messages, {"nested": [messages]}, tuple(messages)):
        encoded = whole(value)
        found, expected = load(SERDE, encoded), SERDE.loads_typed(encoded)
        assert found == expected
        assert repr(found) == repr(expected)
        assert SERDE.dumps_typed(found) == SERDE.dumps_typed(expected)


@settings(deadline=None, max_examples=30)
@given(st.lists(MESSAGES, min_size=1, max_size=4), st.integers(0, 90), st.integers(1, 40))
def test_bytes_are_those_of_langgraph_while_a_list_grows(odd: list[AnyMessage], first: int, step: int) -> None:
    pieces = MessagePieces(LRUCache(10_000_000))
    messages = conversation(first)
    for number in range(4):
        messages = [*messages, *odd, *conversation(step)]
        assert dump(pieces, messages) == whole(messages), number


CHANGES: dict[str, Any] = {
    "content": lambda one: setattr(one, "content", "another"),
    "inside": lambda one: one.response_metadata["numbers"].append(3),
    "type": lambda one: one.response_metadata.update(numbers=[1.0, 2]),
    "bool": lambda one: one.response_metadata.update(numbers=[True, 2]),
    "order": lambda one: one.response_metadata.update(model=one.response_metadata.pop("model")),
    "extra": lambda one: setattr(one, "undeclared", 1),
    "object": lambda one: one.additional_kwargs.update(of=HumanMessage("inside")),
    "name": lambda one: setattr(one, "name", "Ada"),
}


class Level(enum.IntEnum):
    LOW = 1


class Place(NamedTuple):
    city: str


@dataclass
class Order:
    item: object


#: Values that are equal, or have the same bytes, and are written differently.
ALIKE: dict[str, list[Any]] = {
    "numbers": [1, True, 1.0, Level.LOW, Decimal(1), np.float64(1), np.int64(1)],
    "zeros": [0.0, -0.0, 0, False],
    "texts": ["a", b"a", bytearray(b"a"), ["a"], ("a",), Place("a"), {"a"}, {"a": None}],
    "arrays": [np.arange(6), np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), np.arange(6).tobytes()],
    "types": [np.zeros(2, "<f4"), np.zeros(1, "<i8"), np.zeros(8, "u1"), np.asfortranarray(np.zeros((2, 4), "u1"))],
    "models": [Order(1), Order(True), {"item": 1}, HumanMessage("x"), AIMessage("x")],
    "keys": [{"1": 2}, {1: 2}, {True: 2}, {1.0: 2}],
    "surrogates": ["\ud800", "\udfff", "?"],
}


@pytest.mark.parametrize("alike", ALIKE)
def test_a_value_replaced_by_a_similar_one_is_encoded_as_langgraph_encodes_it(alike: str) -> None:
    for before, after in itertools.permutations(ALIKE[alike], 2):
        pieces = MessagePieces(LRUCache(10_000_000))
        messages = [*conversation(50), ToolMessage("x", tool_call_id="1", artifact=before), *conversation(3)]
        if _encodable(messages):
            assert dump(pieces, messages) == whole(messages)
        messages[50] = ToolMessage("x", tool_call_id="1", artifact=after)
        if _encodable(messages):
            assert dump(pieces, messages) == whole(messages), (before, after)


def _encodable(value: Any) -> bool:
    try:
        SERDE.dumps_typed(value)
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("index", [0, 20, 40])
def test_messages_that_the_serialiser_pickles_are_pickled_as_a_whole(index: int) -> None:
    serde = JsonPlusSerializer(pickle_fallback=True)
    pieces, messages = MessagePieces(LRUCache(10_000_000)), conversation(41)
    plain = dump(pieces, messages, serde)
    messages[index].additional_kwargs["wei"] = 2**64
    pickled = dump(pieces, messages, serde)
    assert (plain.kind, pickled.kind) == ("msgpack", "pickle")
    assert load(serde, pickled) == messages
    del messages[index].additional_kwargs["wei"]
    assert dump(pieces, messages, serde) == plain


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("index", [1, 33, 97, 99])
def test_a_message_changed_in_place_is_noticed(change: str, index: int) -> None:
    pieces = MessagePieces(LRUCache(10_000_000))
    messages = conversation(100)
    assert dump(pieces, messages) == whole(messages)
    CHANGES[change](messages[index])
    assert dump(pieces, messages) == whole(messages)
    assert dump(pieces, messages[:-1]) == whole(messages[:-1])


def test_messages_that_did_not_change_are_not_encoded_again() -> None:
    encoded: list[int] = []
    pieces = MessagePieces(LRUCache(10_000_000))
    messages = conversation(320)
    first = dump(pieces, messages)
    serde = copy.copy(SERDE)

    def dumps_typed(value: Any) -> Any:
        encoded.append(len(value))
        return SERDE.dumps_typed(value)

    serde.dumps_typed = dumps_typed  # type: ignore[method-assign]
    again = dump(pieces, [*copy.deepcopy(messages), HumanMessage("one more")], serde)
    assert encoded == [1]
    assert again.data[3:].startswith(first.data[3:])


class Form(BaseModel):
    text: str


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"bytes",
        [],
        [Form(text="x")] * 50,
        [*conversation(50), Form(text="x")],
        [*conversation(50), RemoveMessage(id="1")],
        [*conversation(50), AIMessageChunk("chunk")],
        tuple(conversation(50)),
        {"messages": conversation(50)},
    ],
)
def test_any_other_value_is_left_to_langgraph(value: Any) -> None:
    encoded = dump(MessagePieces(LRUCache(10_000_000)), value)
    assert encoded == whole(value)
    assert load(SERDE, encoded) == SERDE.loads_typed(encoded)


class Reversing:
    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversal", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


def test_any_other_serialiser_is_used_as_it_is() -> None:
    class Own(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            return "own", super().dumps_typed(obj)[1][::-1]

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed(("msgpack", data[1][::-1]))

    for serde in (Own(), EncryptedSerializer(Reversing(), SERDE)):
        messages = conversation(99)
        encoded = dump(MessagePieces(LRUCache(10_000_000)), messages, serde)
        assert encoded == EncodedValue(*serde.dumps_typed(messages))
        assert load(serde, encoded) == messages


def test_types_that_are_not_allowed_stay_refused() -> None:
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    encoded = whole([*conversation(3), Form(text="x")])
    assert load(strict, encoded) == strict.loads_typed(encoded)
    assert load(strict, encoded)[-1] == {"text": "x"}


@pytest.mark.parametrize(
    "fields", [{"content": 5, "id": 7}, {"id": "7"}, {"content_blocks": [], "id": "7"}, {"content": "x", "a": 1}]
)
def test_fields_that_do_not_fit_are_read_as_langgraph_reads_them(fields: dict[str, Any]) -> None:
    inner = ormsgpack.packb(("langchain_core.messages.human", "HumanMessage", fields, "model_validate_json"))
    encoded = EncodedValue("msgpack", ormsgpack.packb([ormsgpack.Ext(5, inner)]))
    (found,), (expected,) = load(SERDE, encoded), SERDE.loads_typed(encoded)
    assert type(found) is type(expected)
    assert found.__dict__ == expected.__dict__
    assert found.__pydantic_extra__ == expected.__pydantic_extra__
