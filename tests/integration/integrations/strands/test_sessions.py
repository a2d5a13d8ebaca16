"""`StrandsSessionRepository`: the contract of the framework's `SessionRepository` on every driver."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from strands import Agent
from strands import tool as strands_tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.multiagent import GraphBuilder
from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.strands import StrandsSessionRepository

from .conftest import MakeRepository
from .scripted_model import ScriptedModel, texts_of

pytestmark = pytest.mark.kept_tables("transcripts")


def message(number: int, text: object = "Hello", **more: Any) -> SessionMessage:
    content: Any = {"role": "user", "content": [{"text": text}], **more}
    return SessionMessage.from_message(content, number)


def filled(repository: SessionRepository, session_id: str = "s", agent_id: str = "a", messages: int = 0) -> None:
    repository.create_session(Session(session_id, SessionType.AGENT))
    repository.create_agent(session_id, SessionAgent(agent_id, {"step": 0}, {}))
    for number in range(messages):
        repository.create_message(session_id, agent_id, message(number, number))


def ids(found: list[SessionMessage]) -> list[int]:
    return [one.message_id for one in found]


def test_creating_existing_records_and_updating_missing_ones_is_refused(make_repository: MakeRepository) -> None:
    repository, other = make_repository(), make_repository()
    for call in (
        lambda: repository.create_agent("s", SessionAgent("a", {}, {})),
        lambda: repository.create_message("s", "a", message(0)),
        lambda: repository.update_agent("s", SessionAgent("a", {}, {})),
        lambda: repository.update_message("s", "a", message(0)),
        lambda: repository.delete_session("s"),
    ):
        with pytest.raises(SessionException, match="does not exist"):
            call()
    filled(other, messages=1)  # which the first one believes missing
    for call in (
        lambda: repository.create_session(Session("s", SessionType.AGENT)),
        lambda: repository.create_agent("s", SessionAgent("a", {}, {})),
        lambda: repository.create_message("s", "a", message(0, "Another")),
    ):
        with pytest.raises(SessionException, match="already exists"):
            call()
    with pytest.raises(SessionException, match="Agent b in session s does not exist"):
        repository.create_message("s", "b", message(0))
    with pytest.raises(ValueError, match="must be an integer"):
        repository.read_message("s", "a", "0")  # type: ignore[arg-type]
    assert ids(repository.list_messages("s", "a")) == [0]


def test_a_message_is_stored_once_and_only_if_it_is_the_same_value_by_value(make_repository: MakeRepository) -> None:
    repository, other = make_repository(), make_repository()
    filled(repository)
    first = message(0, "x", score=1, ratio=float("nan"))
    repository.create_message("s", "a", first)
    other.create_message("s", "a", first)
    for score in (True, 1.0, "1"):
        changed = SessionMessage.from_dict(first.to_dict())
        changed.message["score"] = score  # type: ignore[typeddict-unknown-key]
        with pytest.raises(SessionException, match="already exists"):
            other.create_message("s", "a", changed)
    assert ids(repository.list_messages("s", "a")) == [0]


def test_updates_keep_the_time_of_creation(make_repository: MakeRepository) -> None:
    repository, other = make_repository(), make_repository()
    filled(repository, messages=2)
    created = repository.read_agent("s", "a")
    assert created is not None
    changed = SessionAgent("a", {"step": 1}, {"removed": 3}, created_at="later")
    other.update_agent("s", changed)
    assert changed.created_at == created.created_at
    assert repository.read_agent("s", "a") == changed
    redacted = message(1, "secret")
    redacted.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
    redacted.created_at = "later"
    before = repository.read_message("s", "a", 1)
    other.update_message("s", "a", redacted)
    assert before is not None
    assert redacted.created_at == before.created_at
    assert repository.list_messages("s", "a")[1] == redacted


def test_pages_are_those_of_a_list(make_repository: MakeRepository) -> None:
    repository = make_repository()
    filled(repository, messages=6)
    repository.create_agent("s", SessionAgent("unordered", {}, {}))
    for number in (5, 3, 10, -1, 4):
        repository.create_message("s", "unordered", message(number))
    for agent_id, expected in (("a", [0, 1, 2, 3, 4, 5]), ("unordered", [-1, 3, 4, 5, 10])):
        for limit in (None, 0, 1, 3, 100, -2):
            for offset in (0, 1, 5, 6, 100, -2):
                found = ids(repository.list_messages("s", agent_id, limit, offset))
                assert found == (expected[offset:] if limit is None else expected[offset : offset + limit])


def test_values_are_stored_as_in_a_file_of_json(make_repository: MakeRepository) -> None:
    repository = make_repository()
    filled(repository)
    repository.create_message("s", "a", message(0, "x", numbers=(1, 2), keys={7: "seven"}))
    found = repository.read_message("s", "a", 0)
    assert found is not None
    stored: Any = found.message
    assert (stored["numbers"], stored["keys"]) == ([1, 2], {"7": "seven"})
    with pytest.raises(InvalidInput, match="Nothing was written"):
        repository.create_message("s", "a", message(1, object()))
    assert ids(repository.list_messages("s", "a")) == [0]


def test_an_equal_message_is_stored_once_and_another_one_of_its_id_refused(make_repository: MakeRepository) -> None:
    repositories = [make_repository() for _ in range(4)]
    filled(repositories[0])
    same = message(0, "same")
    for repository in repositories:
        repository.create_message("s", "a", same)

    def write(repository: StrandsSessionRepository) -> str | None:
        text = str(repositories.index(repository))
        try:
            repository.create_message("s", "a", message(1, text))
        except SessionException:
            return None
        return text

    with ThreadPoolExecutor(4) as executor:
        written = [text for text in executor.map(write, repositories) if text is not None]
    found = repositories[0].list_messages("s", "a")
    assert ids(found) == [0, 1]
    assert texts_of([found[1].message]) == written


def test_a_write_to_a_session_of_this_process_is_one_round_trip(make_repository: MakeRepository) -> None:
    repository = make_repository()
    filled(repository, messages=1)
    for call in (
        lambda: repository.create_message("s", "a", message(1)),
        lambda: repository.update_agent("s", SessionAgent("a", {"step": 1}, {})),
        lambda: repository.list_messages("s", "a", offset=1),
        lambda: repository.read_agent("s", "a"),
    ):
        before = repository.database.stats().round_trips
        call()
        assert repository.database.stats().round_trips - before == 1


def test_a_session_lives_as_long_as_its_agents_are_written(
    make_repository: MakeRepository, run_sql: Callable[..., Any], database: str
) -> None:
    repository = make_repository(ttl_s=3_600)
    filled(repository)
    run_sql(f"UPDATE `{database}`.locus_transcripts SET expires_at = expires_at - INTERVAL 30 MINUTE")
    repository.create_message("s", "a", message(0))
    query = (
        f"SELECT COUNT(*) FROM `{database}`.locus_transcripts WHERE expires_at > UTC_TIMESTAMP() + INTERVAL 50 MINUTE"
    )
    assert run_sql(query) == [(2,)] or run_sql(query) == ((2,),)


@strands_tool
def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"Rain in {city}"


def test_an_agent_goes_on_with_the_session_of_another_process(make_repository: MakeRepository) -> None:
    def agent(*answers: Any) -> Agent:
        manager = RepositorySessionManager("customer-7", make_repository())
        window = SlidingWindowConversationManager(window_size=6)
        return Agent(
            ScriptedModel(answers),
            agent_id="support",
            tools=[weather],
            session_manager=manager,
            conversation_manager=window,
            state={"step": 1},
            callback_handler=None,
        )

    first = agent({"name": "weather", "input": {"city": "Delft"}}, "It rains in Delft.")
    first("What is the weather in Delft?")
    first.state.set("step", 2)
    second = agent("In Delft.", "Yes.", "No.")
    second("Where does it rain?")
    model: Any = second.model
    assert texts_of(model.received[0]) == ["What is the weather in Delft?", "It rains in Delft.", "Where does it rain?"]
    assert second.state.get("step") == 1
    second("Sure?")
    second("Really?")
    third = agent()
    assert third.messages == second.messages
    stored = make_repository().list_messages("customer-7", "support")
    assert ids(stored) == list(range(len(stored)))
    assert len(stored) == 10


def test_the_state_of_a_graph_comes_back(make_repository: MakeRepository) -> None:
    def graph(*answers: str) -> Any:
        builder = GraphBuilder()
        builder.add_node(Agent(ScriptedModel(answers), callback_handler=None), "writer")
        builder.set_entry_point("writer")
        builder.set_graph_id("report")
        builder.set_max_node_executions(5)
        builder.set_session_manager(RepositorySessionManager("s", make_repository()))
        return builder.build()

    graph("Written.")("Write.")
    repository = make_repository()
    state = repository.read_multi_agent("s", "report")
    assert state is not None
    assert state["completed_nodes"] == ["writer"]
    assert repository.read_multi_agent("s", "other") is None
    assert repository.read_multi_agent("t", "report") is None

    class Swarm:
        id = "swarm"

        def serialize_state(self) -> dict[str, Any]:
            return {"step": 1}

    swarm: Any = Swarm()
    with pytest.raises(SessionException, match="MultiAgent state swarm in session s does not exist"):
        repository.update_multi_agent("s", swarm)
    with pytest.raises(SessionException, match="Session t does not exist"):
        repository.create_multi_agent("t", swarm)
    repository.create_multi_agent("s", swarm)
    repository.create_multi_agent("s", swarm)
    repository.update_multi_agent("s", swarm)
    assert repository.read_multi_agent("s", "swarm") == {"step": 1}
