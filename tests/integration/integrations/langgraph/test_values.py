"""States and metadata with unusual values come back from the savers as from LangGraph's saver in memory."""

from __future__ import annotations

import copy
import enum
import random
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel

from locus_mysql.errors import InvalidInput

from ....thoroughness import FULL
from ...conftest import ONE_OF_EACH
from .conftest import OpenSaver
from .test_contract import checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)

SERDE = JsonPlusSerializer()


class Level(enum.IntEnum):
    LOW = 1


class Kind(enum.StrEnum):
    PLAIN = "plain"


class Colour(enum.Enum):
    RED = "red"


class Place(NamedTuple):
    city: str
    level: Any = Level.LOW


@dataclass
class Order:
    item: Any


class Form(BaseModel):
    text: Any = "x"


class Text(str):
    __slots__ = ()


#: Groups of values that are equal, have the same bytes, or are of types that JSON or msgpack lacks.
GROUPS: list[list[Any]] = [
    [0, 1, True, False, 1.0, 0.0, -0.0, Level.LOW, 2**63, -(2**63), 2**64 - 1, float("nan"), float("inf"), 5e-324],
    ["plain", Kind.PLAIN, Text("plain"), b"plain", bytearray(b"plain"), "\ud800", "", None, Colour.RED],
    [Place("Rome"), Place("Rome", 1), ("Rome", 1), ["Rome", 1], {"city": "Rome", "level": 1}, Order(("Rome", 1))],
    [Order(1), Order(True), Form(), Form(text=1), Form(text={"1", "2"}), {"text": "x"}, HumanMessage("x", id="1")],
    [Decimal("1.50"), Decimal("1.5"), UUID(int=1), Path("/a"), timedelta(1), date(2026, 1, 2), time(1, 2)],
    [datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2), {1, 2}, frozenset({1, 2}), deque([1, 2])],
    [OrderedDict(b=1, a=2), {"a": 2, "b": 1}, {1: 2}, {True: 2}, {Level.LOW: 2}, {"1": 2}],
    [np.arange(6), np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), np.arange(6).tobytes(), np.zeros(6, "<i8")],
    [np.zeros((2, 4), "u1"), np.asfortranarray(np.zeros((2, 4), "u1")), np.zeros(2, "<f4"), np.zeros(1, "<i8")],
]

#: Values that LangGraph's serialiser refuses, unless it may use pickle.
REFUSED = [2**64, 1j, np.float64(1.5), np.int64(1), slice(1, 2)]


def config_of(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) and _written(one) == _written(other)


def _written(value: Any) -> Any:
    try:
        return SERDE.dumps_typed(value)
    except TypeError:  # read from pickle, whose bytes depend on which objects are the same
        return None


class States:
    """A random state, changed step by step.

    Args:
        seed: Seed of the random numbers.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.values: dict[str, Any] = {"messages": self._messages(20), "list": ["x" * 300], "dict": {}, "one": None}

    def change(self) -> set[str]:
        """Change some channels, most of them in place; return their names."""
        chosen = self._random
        changed = {"messages", *chosen.sample(sorted(self.values), 1)}
        self.values = copy.deepcopy(self.values)
        messages = self.values["messages"]
        messages += self._messages(chosen.choice((0, 0, 1, 9)))
        at = chosen.choice((0, 9, len(messages) - 1))
        if chosen.random() < 0.7:
            messages[at] = ToolMessage("found", tool_call_id="1", id=str(at), artifact=self._value())
        else:
            messages[at].additional_kwargs["extra"] = self._value()
        if "list" in changed:
            self.values["list"].append(self._value())
        if "dict" in changed:
            self.values["dict"][f"key {chosen.randrange(9)}"] = [self._value(), "y" * 200]
        if "one" in changed:
            self.values["one"] = self._value()
        return changed

    def _value(self) -> Any:
        group = self._random.choice([*GROUPS, *GROUPS[7:], *GROUPS[7:], REFUSED])
        value = copy.deepcopy(self._random.choice(group))
        return self._random.choice((value, value, value, value, [value], {"in": value}, Place("Oslo", value)))

    def _messages(self, count: int) -> list[Any]:
        return [AIMessage(f"answer {self._random.random()}" * 3, id=str(number)) for number in range(count)]


@one_of_each
@pytest.mark.parametrize("pickles", [False, True], ids=["msgpack", "pickle"])
@pytest.mark.parametrize("seed", range(60 if FULL else 3))
async def test_unusual_values_come_back_as_from_the_saver_in_memory(
    open_saver: OpenSaver, side: str, pickles: bool, seed: int
) -> None:
    serde = JsonPlusSerializer(pickle_fallback=pickles)
    saver, other, memory = open_saver(side, serde=serde), open_saver(side, serde=serde), InMemorySaver(serde=serde)
    states, config, steps = States(seed), config_of("thread"), 0
    versions: dict[str, Any] = dict.fromkeys(states.values, 1)
    changed = set(versions)
    while steps < 12:
        new = {name: versions[name] for name in changed}
        content = checkpoint(states.values, dict(versions), id=str(uuid6()))
        try:
            expected = memory.put(config, content, {"step": steps}, new)
        except (TypeError, AttributeError) as error:  # of msgpack, or of pickle
            with pytest.raises(type(error)):
                await saver.aput(config, content, {"step": steps}, new)
            states = States(seed + 1_000 * steps)  # without the value that is refused
            changed = set(versions)
        else:
            assert await saver.aput(config, content, {"step": steps}, new) == expected
            config, steps = expected, steps + 1
            for reader in (saver, other):
                found, wanted = await reader.aget_tuple(config), memory.get_tuple(config)
                assert wanted is not None
                for name, value in wanted.checkpoint["channel_values"].items():
                    assert same(found.checkpoint["channel_values"][name], value), (name, steps)
            changed = states.change()
        versions |= {name: versions[name] + 1 for name in changed}


@one_of_each
async def test_unusual_writes_and_metadata_come_back_as_from_the_saver_in_memory(
    open_saver: OpenSaver, side: str
) -> None:
    saver, memory = open_saver(side), InMemorySaver()
    for number, one in enumerate(chain(*GROUPS)):
        for value in (one, [{"in": one}], Place("Oslo", one)):
            config: Any = config_of(str(number))
            content, metadata = checkpoint({}), {"source": "loop", "step": 1, "odd": value}
            for each in (saver, memory):
                stored = await each.aput(config, content, metadata, {})
                await each.aput_writes(stored, [("channel", value)], "task")
            found, expected = await saver.aget_tuple(stored), memory.get_tuple(stored)
            assert expected is not None
            assert same(found.metadata, expected.metadata), value
            assert same(found.pending_writes, expected.pending_writes), value
            (listed,) = [one async for one in saver.alist(config, filter={"step": 1}, limit=1)]
            assert same(listed.metadata, expected.metadata), value


@one_of_each
async def test_metadata_are_found_by_their_values_as_json(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    await saver.aput(config_of("t"), checkpoint({}), {"level": Level.LOW, "place": Place("Rome"), "score": 1}, {})
    for filter in ({"level": 1}, {"level": Level.LOW}, {"place": ["Rome", 1]}, {"place": Place("Rome")}):
        (found,) = [one async for one in saver.alist(None, filter=filter)]
        assert same(found.metadata, {"level": Level.LOW, "place": Place("Rome"), "score": 1})


@one_of_each
async def test_metadata_that_only_json_can_hold_come_back_as_json_values(open_saver: OpenSaver, side: str) -> None:
    saver = open_saver(side)
    odd = {"score": np.float64(0.5), "wei": 2**70, "both": [Level.LOW, 2**70]}
    await saver.aput(config_of("t"), checkpoint({}), odd, {})
    assert repr((await saver.aget_tuple(config_of("t"))).metadata) == repr(
        {"score": 0.5, "wei": 2**70, "both": [1, 2**70]}
    )


@one_of_each
async def test_names_with_lone_surrogates_are_refused_before_anything_is_sent(open_saver: OpenSaver, side: str) -> None:
    saver, bad = open_saver(side), "a\ud800"
    stored = await saver.aput(config_of("t"), checkpoint({}), {}, {})

    def of(**configurable: str) -> Any:
        return {"configurable": {"thread_id": "t", "checkpoint_ns": "", **configurable}}

    async def listed(config: Any, before: Any = None) -> list[Any]:
        return [one async for one in saver.alist(config, before=before)]

    for call in (
        saver.aput_writes(stored, [(bad, 1)], "task"),
        saver.aput_writes(stored, [("channel", 1)], bad),
        saver.aput_writes(stored, [("channel", 1)], "task", bad),
        saver.aput(of(checkpoint_ns=bad), checkpoint({}), {}, {}),
        saver.aput(of(checkpoint_id=bad), checkpoint({}), {}, {}),
        saver.aput(of(), checkpoint({}, id=bad), {}, {}),
        saver.aput(of(), checkpoint({}), {"run_id": bad}, {}),
        saver.aget_tuple(of(checkpoint_id=bad)),
        saver.aget_tuple(of(checkpoint_ns=bad)),
        saver.aget_delta_channel_history(config=stored, channels=[bad]),
        saver.adelete_for_runs([bad]),
        listed(of(checkpoint_ns=bad)),
        listed(of(checkpoint_id=bad)),
        listed(of(), of(checkpoint_id=bad)),
    ):
        with pytest.raises(InvalidInput, match="lone surrogate"):
            await call
    assert len(await listed(None)) == 1
