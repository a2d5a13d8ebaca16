"""States of agents as dicts are read like Locus' own objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from locus.agent import runtime_loop
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory import retention

from locus_mysql import MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints.coding.codec import encode, hash_logs
from locus_mysql.families.checkpoints.coding.delta import Lineage, encode_delta, extend
from locus_mysql.integrations.locus import agent_states
from locus_mysql.integrations.locus.agent_states import AgentDictOperations, canonical
from locus_mysql.integrations.locus.operations import LocusOperations

CONFIG = MySQLConfig(database="app")
NOW = datetime(2026, 1, 1, tzinfo=UTC)

STATES = [
    AgentState(run_id="run"),
    AgentState(run_id="run", messages=(Message.system("s"), Message.user("ü"), Message.assistant(None))),
    retention.stamp_messages(AgentState(run_id="run", messages=(Message.system("s"), Message.user("a" * 20_000))), NOW),
    AgentState(run_id="run", messages=(Message(role="user", content="x", metadata={"locus_at": "no time"}),)),
    AgentState(
        run_id="run", messages=(Message(role="user", content="x", metadata={"locus_at": "0001-01-01T00:00:00"}),)
    ),
    AgentState(run_id="run", metadata={agent_states.ITERATION_CHECKPOINTS_KEY: ["c"]}),
]


@pytest.mark.parametrize("stamp", [NOW.isoformat(), "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00", "no time", 1])
def test_a_message_is_as_old_as_locus_takes_it_to_be(stamp: Any) -> None:
    message = Message(role="user", content="x", metadata={agent_states.MESSAGE_TIME_KEY: stamp})
    as_dict = message.model_dump(mode="json")
    assert agent_states.opened_at([Message.system("s"), message]) == retention.message_time(message)
    assert agent_states.opened_at([{"role": "system"}, as_dict]) == retention.message_time(message)


def test_the_names_are_those_of_locus() -> None:
    assert agent_states.ITERATION_CHECKPOINTS_KEY == runtime_loop.ITERATION_CHECKPOINTS_KEY
    assert agent_states.MESSAGE_TIME_KEY == retention.MESSAGE_TIME_KEY


@pytest.mark.parametrize("state", STATES, ids=range(len(STATES)))
@pytest.mark.parametrize("checkpoint_id", ["c", "d"])
def test_a_dict_is_saved_as_the_state_is(state: AgentState, checkpoint_id: str) -> None:
    """Text, search text (also of a second state), age and outcome are the same."""
    locus = LocusOperations(CONFIG, None, None, None)
    plain = AgentDictOperations(CONFIG)
    lineage: Lineage = ()
    later = state.with_message(Message.user("more")).with_message(Message.system("none"))
    for turn, one in enumerate([state, later]):
        superseded = checkpoint_id in one.metadata.get(agent_states.ITERATION_CHECKPOINTS_KEY, [])
        new = locus.new(one, checkpoint_id, None, provisional=superseded)
        other = plain.new(one.to_checkpoint(), checkpoint_id, None)
        assert canonical(other.encode(None).state.text()) == canonical(new.encode(None).state.text())
        assert (other.provisional, other.oldest_at) == (new.provisional, new.oldest_at)
        encoded = new.encode(None).state
        delta = encode_delta(encoded, hash_logs(encoded, {}), lineage)
        assert other.search_text(delta) == new.search_text(delta)
        lineage = extend(lineage, delta, turn + 1, bytes(16), provisional=False)


@pytest.mark.parametrize(
    "state",
    [
        {"messages": "x"},
        {"messages": None},
        {"messages": [None, 1, "x", [], {}, {"role": 1, "content": []}, {"content": "said"}]},
        {"messages": [{"metadata": 1}], "metadata": []},
        {"messages": [{"metadata": {"locus_at": 1}}], "metadata": {agent_states.ITERATION_CHECKPOINTS_KEY: "c"}},
        {"n": 1},
        {},
    ],
)
def test_any_other_dict_is_saved_too(state: dict[str, Any]) -> None:
    new = AgentDictOperations(CONFIG).new(state, "c", None)
    encoded = encode(state)
    text, _ = new.search_text(encode_delta(encoded, hash_logs(encoded, {}), ()))
    assert ("said" in text) == ("said" in str(state))
    assert not new.provisional


def test_a_number_beyond_every_float_is_refused_and_the_word_is_not() -> None:
    operations = AgentDictOperations(CONFIG)
    with pytest.raises(InvalidInput):
        operations.prepared({"deep": [{"n": float("inf")}]}, "c")
    assert operations.prepared({"messages": [{"content": "To Infinity"}], "n": "Infinity"}, "c")
