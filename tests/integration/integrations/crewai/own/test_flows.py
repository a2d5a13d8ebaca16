"""`CrewFlowPersistence` under real flows: states are restored in another process, and feedback is awaited."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.flow import Flow, FlowState, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import persist
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel, Field

from locus_mysql import SyncCheckpointStore
from locus_mysql.errors import InvalidInput

from .conftest import Make

pytestmark = pytest.mark.kept_tables("dicts", "memories")

AT = datetime(2026, 11, 28, 12, 30, tzinfo=UTC)


class Order(FlowState):
    """The state of a flow."""

    steps: list[str] = Field(default_factory=list)


def flow_of(persistence: Any) -> type[Flow[Order]]:
    @persist(persistence)
    class Ordering(Flow[Order]):
        @start()
        def ask(self) -> None:
            self.state.steps.append("asked")

        @listen(ask)
        def pack(self) -> None:
            self.state.steps.append("packed")

    return Ordering


def test_a_flow_goes_on_in_another_process_and_each_step_is_a_checkpoint(make_flows: Make) -> None:
    persistence, other = make_flows(), make_flows()
    assert isinstance(persistence, FlowPersistence)
    first = flow_of(persistence)()
    first.kickoff()
    assert other.load_state(first.state.id)["steps"] == ["asked", "packed"]

    second = flow_of(other)()
    second.kickoff(inputs={"id": first.state.id})
    assert second.state.steps == ["asked", "packed"] * 2
    forked = flow_of(make_flows())()
    forked.kickoff(restore_from_state_id=first.state.id)
    assert (len(forked.state.steps), len(persistence.load_state(first.state.id)["steps"])) == (6, 4)

    with SyncCheckpointStore(persistence.config) as store:
        history = store.history(f"crewai/{first.state.id}")
    assert [one["metadata"]["method"] for one in history] == ["pack", "ask"] * 2


def test_flows_and_tenants_are_kept_apart(make_flows: Make) -> None:
    persistence, acme = make_flows(), make_flows(tenant="acme")
    assert persistence.load_state("f") is None
    flows = ("f", "F", "f ", "é")
    for flow in flows:
        persistence.save_state(flow, "step", {"flow": flow})
    assert [persistence.load_state(flow) for flow in flows] == [{"flow": flow} for flow in flows]
    assert acme.load_state("f") is None
    with persistence.tenant_scope("acme"):
        persistence.save_state("f", "step", {"flow": "of acme"})
    assert acme.load_state("f") == {"flow": "of acme"}
    assert persistence.load_state("f") == {"flow": "f"}


class Part(BaseModel):
    """A model in a state."""

    at: datetime
    other: Any = None


def test_what_json_does_not_have_is_written_as_crewais_own_persistence_writes_it(make_flows: Make) -> None:
    persistence = make_flows()
    state = {"at": AT, "day": AT.date(), "id": UUID(int=7), "set": {"x"}, "pair": (1, 2), "n": {1: 2}}
    persistence.save_state("f", "step", {**state, "part": Part(at=AT)})
    assert persistence.load_state("f") == {
        **{"at": AT.isoformat(), "day": "2026-11-28", "id": str(UUID(int=7)), "set": ["x"], "pair": [1, 2]},
        **{"part": {"at": "2026-11-28T12:30:00Z", "other": None}, "n": {"1": 2}},
    }
    persistence.save_state("f", "step", Part(at=AT, other=type("Odd", (), {"__str__": lambda self: "odd"})()))
    assert persistence.load_state("f") == {"at": "2026-11-28T12:30:00Z", "other": "odd"}
    for flow, bad in (("f", [1]), ("f" * 506, {})):
        with pytest.raises(InvalidInput):
            persistence.save_state(flow, "step", bad)


def test_pending_feedback_is_replaced_and_cleared_and_states_stay(make_flows: Make) -> None:
    persistence, other = make_flows(), make_flows()
    assert persistence.load_pending_feedback("f") is None
    for number in (1, 2):
        context = PendingFeedbackContext(
            "f", "C", "ask", {"draft": number}, "Well?", metadata={"at": AT}, requested_at=AT
        )
        persistence.save_pending_feedback("f", context, {"number": number})
    persistence.save_state("f", "later", {"number": 3})
    state, loaded = other.load_pending_feedback("f")
    assert (state, loaded.method_output, loaded.requested_at) == ({"number": 2}, {"draft": 2}, AT)
    assert other.load_state("f") == {"number": 3}
    persistence.clear_pending_feedback("f")
    persistence.clear_pending_feedback("f")
    assert other.load_pending_feedback("f") is None
    assert other.load_state("f") == {"number": 3}


class Ask:
    """A provider of feedback that leaves the flow waiting."""

    def request_feedback(self, context: Any, flow: Any) -> str:
        raise HumanFeedbackPending(context=context)


class Review(Flow[Order]):
    """A flow that waits for a human."""

    @start()
    @human_feedback(message="Well?", provider=Ask())
    def draft(self) -> str:
        self.state.steps.append("drafted")
        return "a draft"

    @listen(draft)
    def publish(self, result: Any) -> str:
        return f"{result.feedback} after {self.state.steps}"


def test_a_flow_that_waits_for_a_human_resumes_in_another_process(make_flows: Make) -> None:
    persistence, other = make_flows(), make_flows()
    flow = Review(persistence=persistence)
    assert isinstance(flow.kickoff(), HumanFeedbackPending)
    resumed = Review.from_pending(flow.state.id, other)
    assert resumed.resume("fine") == "fine after ['drafted']"
    assert persistence.load_pending_feedback(flow.state.id) is None
