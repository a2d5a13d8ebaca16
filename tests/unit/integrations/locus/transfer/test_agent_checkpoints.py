"""The comparison of states and metadata that were copied."""

from __future__ import annotations

from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql.integrations.locus.transfer.sources import same_metadata, same_states


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": float("nan")}, {"a": float("nan")}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": [0.0]}, {"a": [-0.0]}, False),
    ],
)
def test_states_and_metadata_are_the_same_if_they_are_stored_alike(one: Any, other: Any, same: bool) -> None:
    states = [
        AgentState(run_id="r", agent_id="a", messages=[Message.user("hi")], metadata=metadata)
        for metadata in (one, other)
    ]
    states[1] = states[1].model_copy(update={"started_at": states[0].started_at, "updated_at": states[0].updated_at})
    states[1] = states[1].model_copy(update={"messages": states[0].messages})
    assert same_states(states[0], states[1]) is same
    assert same_metadata(one, other) is same
