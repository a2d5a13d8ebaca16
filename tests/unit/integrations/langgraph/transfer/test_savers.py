"""The comparison of checkpoints that were copied between savers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from locus_mysql.integrations.langgraph.transfer.savers import same_tuple

NAN = float("nan")


def found(value: Any) -> CheckpointTuple:
    checkpoint: Any = {"id": "c", "channel_values": {"channel": value}}
    return CheckpointTuple({"configurable": {}}, checkpoint, {"odd": value}, None, [("task", "channel", value)])  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (NAN, float("nan"), True),
        (2**70, 2**70, True),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ((1, 2), [1, 2], False),
        ({1, 2**40}, {2**40, 1}, True),
        (np.arange(6), np.arange(6), True),
        (np.arange(6), np.arange(6).reshape(2, 3), False),
        (HumanMessage("x", id="1"), HumanMessage("x", id="1"), True),
        (HumanMessage("x", metadata=1), HumanMessage("x", metadata=True), False),
    ],
    ids=str,
)
def test_checkpoints_are_the_same_if_their_values_are_written_alike(one: Any, other: Any, same: bool) -> None:
    assert same_tuple(InMemorySaver(), found(one), found(other)) is same
