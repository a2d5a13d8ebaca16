"""The contract of ADK's session service: the behaviour of its in-memory service, and that of a persistent store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.genai import types

from locus_mysql import Database
from locus_mysql.errors import InvalidInput
from locus_mysql.families.transcripts.inspection import TranscriptChanges
from locus_mysql.families.transcripts.operations import TranscriptOperations
from locus_mysql.inspection import Inspector
from locus_mysql.integrations.google_adk import StaleSessionError

from ...conftest import MakeConfig
from .conftest import MakeSessions

pytestmark = pytest.mark.kept_tables("transcripts")

ADA = {"app_name": "shop", "user_id": "ada"}


def said(text: str = "", at: float = 1_763_900_000.0, state: dict[str, Any] | None = None, **fields: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)]) if text else None
    return Event(
        author="user",
        invocation_id="i-1",
        content=content,
        timestamp=at,
        **({"state": state} if state else {}),
        **fields,
    )


def seen(session: Session | None) -> Any:
    """Return the values that two services must agree on."""
    if session is None:
        return None
    return session.app_name, session.user_id, session.id, session.state, session.events, session.last_update_time


async def attempt(outcomes: list[Any], call: Any) -> None:
    """Append the result of a call, or the type of its error, to the outcomes."""
    try:
        result = await call
    except Exception as error:
        outcomes.append(type(error))
    else:
        outcomes.append(seen(result) if isinstance(result, Session) or result is None else result)


def events() -> list[Event]:
    """Return events of every kind, two of which have the same id."""
    fixed = said("fixed", 1_763_900_100.0, id="fixed")
    return [
        said("one", 1_763_900_001.5, {"step": 2, "temp:t": 3, "user:name": "Ada L."}, id="e1"),
        said("two", 1_763_900_002.25, {"app:name": "The Shop", "none": None, "nested": {"x": [None, 1.5]}}, id="e2"),
        said(state={"only": True}, at=1_763_900_001.0, id="e3"),
        said("partial", 1_763_900_003.0, {"partial": True}, id="e4", partial=True),
        Event(
            id="e5",
            author="agent",
            invocation_id="i-2",
            timestamp=1_763_900_004.0,
            long_running_tool_ids={"b", "a"},
            content=types.Content(
                role="model",
                parts=[
                    types.Part(text="hm", thought=True, thought_signature=b"\x00\xff"),
                    types.Part(function_call=types.FunctionCall(id="c1", name="find", args={"q": None, "n": 2**40})),
                    types.Part(inline_data=types.Blob(data=bytes(range(256)), mime_type="image/png")),
                ],
            ),
        ),
        fixed,
        fixed.model_copy(deep=True),
        said("same id, another event", 1_763_900_101.0, id="fixed"),
    ]


async def read_everything(service: BaseSessionService, outcomes: list[Any]) -> None:
    """Call each method that reads, and append the results."""
    for config in (
        None,
        GetSessionConfig(),
        *(GetSessionConfig(num_recent_events=number) for number in (0, 1, 3, 100)),
        *(GetSessionConfig(after_timestamp=at) for at in (0.0, 1_763_900_002.0, 1_763_900_004.0, 1_763_900_900.0)),
        GetSessionConfig(num_recent_events=2, after_timestamp=1_763_900_101.0),
        GetSessionConfig(num_recent_events=4, after_timestamp=1.0),
    ):
        await attempt(outcomes, service.get_session(**ADA, session_id="s/1", config=config))
    await attempt(outcomes, service.get_session(**ADA, session_id="  s/1\n"))
    for app, user, session_id in (
        ("shop", "ada", "s"),
        ("SHOP", "ada", "s/1"),
        ("shop", "nobody", "s/1"),
        ("shop", "ada", ""),
    ):
        await attempt(outcomes, service.get_session(app_name=app, user_id=user, session_id=session_id))
    for listed in (await service.list_sessions(app_name="shop"), await service.list_sessions(**ADA)):
        outcomes.append([seen(one) for one in listed.sessions if one.events == []])
    for user in ("", "ada", "Ada", "nobody"):
        outcomes.append(await service.get_user_state(app_name="shop", user_id=user))
        outcomes.append([one.id for one in (await service.list_sessions(app_name="shop", user_id=user)).sessions])


async def conversation(service: BaseSessionService) -> list[Any]:
    """Exercise the whole contract, and return the outcomes."""
    outcomes: list[Any] = []

    state = {"step": 1, "app:name": "Shop", "user:name": "Ada", "temp:secret": 1, "app:": 2, "list": [1, {"a": None}]}
    first = await service.create_session(**ADA, session_id=" s/1 ", state=state)
    outcomes.append((first.id, first.state, first.events))
    await attempt(outcomes, service.create_session(**ADA, session_id="s/1", state={"app:name": "Other"}))
    for user, session_id in (("Ada", "s/1"), ("ada", "S/1"), ("ada/s", "1"), ("", "x"), ("a%_~1'\"\\ é", "é")):
        other = await service.create_session(
            app_name="shop", user_id=user, session_id=session_id, state={"user:n": user}
        )
        await service.append_event(other, said(user, 1_763_900_000.0 + len(session_id)))
    for event in events():
        outcomes.append(await service.append_event(first, event))
    outcomes.append(seen(first))
    await read_everything(service, outcomes)
    await service.delete_session(**ADA, session_id=" s/1")
    await service.delete_session(**ADA, session_id="s/1")
    await attempt(outcomes, service.get_session(**ADA, session_id="s/1"))
    await attempt(outcomes, service.append_event(first, said("late")))
    outcomes.append(await service.get_user_state(**ADA))
    again = await service.create_session(**ADA, session_id="s/1")
    outcomes.append((again.state, again.events))
    await service.flush()
    return outcomes


async def test_it_does_what_adks_service_in_memory_does(make_sessions: MakeSessions) -> None:
    mine, reference = await conversation(make_sessions()), await conversation(InMemorySessionService())
    for number, (ours, theirs) in enumerate(zip(mine, reference, strict=True)):
        assert _without_times(ours) == _without_times(theirs), f"outcome {number}"


def _without_times(outcome: Any) -> Any:
    """Leave out the creation times of sessions, which come from the clock."""
    if isinstance(outcome, tuple) and len(outcome) == 6 and outcome[5] > 1_763_900_900:
        return outcome[:5]
    return [_without_times(one) for one in outcome] if isinstance(outcome, list) else outcome


async def test_a_generated_id_is_new(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    made = [await service.create_session(**ADA, session_id=session_id) for session_id in (None, "", "  ")]
    assert len({session.id for session in made}) == 3
    assert [one.id for one in (await service.list_sessions(**ADA)).sessions] == [one.id for one in made]


async def test_a_stale_session_is_refused_and_no_event_is_lost(make_sessions: MakeSessions) -> None:
    one, other = make_sessions(), make_sessions()
    mine = await one.create_session(**ADA, session_id="s")
    theirs = await other.get_session(**ADA, session_id="s")
    assert theirs is not None
    await other.append_event(theirs, said("theirs", state={"n": 1, "user:n": 1}))
    refused = said("mine", state={"n": 2, "user:n": 2})
    before = mine.model_copy(deep=True)
    with pytest.raises(StaleSessionError):
        await one.append_event(mine, refused)
    assert seen(mine) == seen(before)
    assert await one.get_user_state(**ADA) == {"n": 1}
    again = await one.get_session(**ADA, session_id="s")
    assert again is not None
    await one.append_event(again, refused)
    stored = await other.get_session(**ADA, session_id="s")
    assert stored is not None
    assert [event.id for event in stored.events] == [theirs.events[0].id, refused.id]
    assert stored.state == {"n": 2, "user:n": 2}
    # A new session with the id of a deleted one is a different session.
    await one.delete_session(**ADA, session_id="s")
    await one.create_session(**ADA, session_id="s")
    with pytest.raises(StaleSessionError):
        await one.append_event(again, said("late"))


async def test_a_session_from_elsewhere_may_go_on_if_it_has_the_last_event(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    await service.append_event(session, said("one", 4_000_000_000.0))
    copy = Session.model_validate_json(session.model_dump_json())
    old = Session(id="s", **ADA)
    await service.append_event(copy, said("two", 4_000_000_001.0))
    with pytest.raises(StaleSessionError):
        await service.append_event(old, said("three"))
    with pytest.raises(SessionNotFoundError):
        await service.append_event(Session(id="none", **ADA), said("three"))
    stored = await service.get_session(**ADA, session_id="s")
    assert stored is not None
    assert len(stored.events) == 2


async def test_tasks_may_share_a_session_object(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    await asyncio.gather(*(service.append_event(session, said(f"event {n}", state={f"k{n}": n})) for n in range(20)))
    stored = await service.get_session(**ADA, session_id="s")
    assert stored is not None
    assert seen(stored) == seen(session)
    assert len(stored.events) == len(stored.state) == 20


async def test_writers_of_several_sessions_lose_no_change_of_a_shared_state(make_sessions: MakeSessions) -> None:
    services = [make_sessions() for _ in range(4)]
    numbers = itertools.count()

    async def work(index: int) -> None:
        service = services[index]
        session = await service.create_session(**ADA, session_id=f"s{index}")
        for _ in range(8):
            number = next(numbers)
            await service.append_event(session, said("x", state={f"app:{number}": number, f"user:{number}": number}))

    await asyncio.gather(*map(work, range(4)))
    everything = {str(number): number for number in range(32)}
    assert await services[0].get_user_state(**ADA) == everything
    session = await services[1].get_session(**ADA, session_id="s3")
    assert session is not None
    assert {key: value for key, value in session.state.items() if key.startswith("app:")} == {
        f"app:{key}": value for key, value in everything.items()
    }


def _texts(events: Sequence[Event]) -> list[str]:
    return [part.text or "" for event in events if event.content for part in event.content.parts or ()]


async def test_an_append_is_one_round_trip_and_sends_an_unchanged_state_no_more(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    await service.create_session(**ADA, session_id="s", state={"large": "0123456789" * 20_000, "user:n": 0})
    service = make_sessions()
    session = await service.get_session(**ADA, session_id="s")
    assert session is not None
    stats = service.database.stats
    for state in (None, {"small": 1}, {"user:n": 1, "app:n": 1}, None):
        before = stats().round_trips
        await service.append_event(session, said("x", state=state))
        assert stats().round_trips - before == 1
    for config in (None, GetSessionConfig(num_recent_events=2)):
        before = stats().round_trips
        assert await service.get_session(**ADA, session_id="s", config=config) is not None
        assert stats().round_trips - before == 1


@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_the_last_events_of_a_long_session_are_read_alone(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    for number in range(300):
        await service.append_event(session, said(f"event {number}", 1_000_000.0 + number))
    for config, first in (
        (GetSessionConfig(num_recent_events=5), 295),
        (GetSessionConfig(after_timestamp=1_000_290.0), 290),
        (GetSessionConfig(after_timestamp=1_000_100.0), 100),
        (GetSessionConfig(after_timestamp=1_000_100.0, num_recent_events=150), 150),
        (GetSessionConfig(after_timestamp=0.0), 0),
    ):
        found = await service.get_session(**ADA, session_id="s", config=config)
        assert found is not None
        assert _texts(found.events) == [f"event {number}" for number in range(first, 300)]


async def test_an_event_that_is_sent_again_after_an_error_is_stored_once(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    event = said("once", state={"n": 1, "user:n": 1})
    lost = session.model_copy(deep=True)  # the session as a caller keeps it if the answer is lost
    await service.append_event(session, event.model_copy(deep=True))
    await service.append_event(lost, event.model_copy(deep=True))
    assert seen(lost) == seen(session)
    await service.append_event(lost, said("next", state={"n": 2, "user:n": 2}))
    late = Session(id="s", **ADA, last_update_time=5_000_000_000.0)
    await make_sessions().append_event(late, event.model_copy(deep=True))
    stored = await service.get_session(**ADA, session_id="s")
    assert stored is not None
    assert seen(stored) == seen(lost)
    assert stored.state == {"n": 2, "user:n": 2}


async def test_odd_values_and_ids_are_kept_or_refused(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s", state={"set": {1}, "bytes": b"\xff"})
    assert session.state["set"] == [1]
    for event_id in ("\0", "e" * 300, "\ud800", "Bob", "bob"):
        await service.append_event(session, said("\ud800 x", id=event_id, state={"\0": "\ud800"}))
    stored = await service.get_session(**ADA, session_id="s")
    assert stored is not None
    assert stored.events == session.events
    assert stored.state["\0"] == "\ud800"
    await service.append_event(stored, said("x", state={"infinite": float("inf"), "function": len}))
    stored = await service.get_session(**ADA, session_id="s")
    assert stored is not None
    assert stored.state["infinite"] is None  # as ADK's own JSON encoding does
    assert "len" in stored.state["function"]
    for bad in ({"app_name": "a\0"}, {"user_id": "u" * 900}, {"session_id": "\ud800"}, {"state": {"\ud800": 1}}):
        with pytest.raises(InvalidInput):
            await service.create_session(**{**ADA, "session_id": "s", **bad})  # type: ignore[arg-type]
    with pytest.raises(AlreadyExistsError):
        await service.create_session(**ADA, session_id="s")


async def test_tenants_and_apps_are_kept_apart_and_sessions_expire_but_shared_states_do_not(
    make_sessions: MakeSessions,
) -> None:
    service = make_sessions(ttl_s=0.3)
    await service.create_session(**ADA, session_id="s", state={"user:n": 1, "app:n": 1})
    assert await make_sessions(tenant="acme").get_session(**ADA, session_id="s") is None
    assert await service.get_user_state(app_name="other", user_id="ada") == {}
    async with asyncio.timeout(20):
        while await service.get_session(**ADA, session_id="s") is not None:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.05)
    session = await service.create_session(**ADA, session_id="s")
    assert session.state == {"user:n": 1, "app:n": 1}


@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_the_inspector_shows_a_session(make_sessions: MakeSessions, make_config: MakeConfig) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    await service.append_event(session, said("Where is the parcel?"))
    call = types.FunctionCall(id="c1", name="find", args={"parcel": 7})
    answer = types.FunctionResponse(id="c1", name="find", response={"place": "Bonn"})
    for role, part in (("model", types.Part(function_call=call)), ("user", types.Part(function_response=answer))):
        content = types.Content(role=role, parts=[part])
        await service.append_event(session, Event(author="agent", invocation_id="i", content=content))
    async with Inspector(make_config()) as inspector:
        (row,) = (await inspector.threads("transcripts")).items
        assert row.thread_id == "google-adk/shop/ada~1s"
        view = await inspector.state("transcripts", row.thread_id)
    assert view is not None
    asked, called, _ = view.messages
    assert (asked.role, asked.text) == ("user", "Where is the parcel?")
    (tool_call,) = called.tool_calls
    assert (tool_call.name, tool_call.arguments, tool_call.result) == ("find", {"parcel": 7}, '{"place": "Bonn"}')


async def test_a_user_id_that_is_too_long_for_a_state_creates_nothing(make_sessions: MakeSessions) -> None:
    service = make_sessions()
    user = "u" * 797
    with pytest.raises(InvalidInput):
        await service.create_session(app_name="shop", user_id=user, session_id="s")
    assert (await service.list_sessions(app_name="shop")).sessions == []


async def test_a_session_from_elsewhere_that_lacks_the_last_event_is_stale_whatever_the_clocks(
    make_sessions: MakeSessions,
) -> None:
    service = make_sessions()
    session = await service.create_session(**ADA, session_id="s")
    await service.append_event(session, said("one", 1_763_900_100.0))
    copy = Session.model_validate_json(session.model_dump_json())
    await service.append_event(session, said("two, by a clock that is late", 1_763_900_000.0))
    with pytest.raises(StaleSessionError):
        await service.append_event(copy, said("three"))


def test_the_error_of_a_stale_session_is_that_of_adk() -> None:
    from google.adk import runners

    assert StaleSessionError is runners.StaleSessionError


@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_an_append_beside_another_process_takes_five_round_trips(make_sessions: MakeSessions) -> None:
    one, other = make_sessions(), make_sessions()
    mine = await one.create_session(**ADA, session_id="s", state={"app:n": 1})
    theirs = await other.create_session(**ADA, session_id="t")
    await one.append_event(mine, said("x", state={"app:n": 3}))
    await other.append_event(theirs, said("x", state={"app:n": 2}))
    before = one.database.stats().round_trips
    await one.append_event(mine, said("y", state={"app:n": 3}))
    assert one.database.stats().round_trips - before == 5
    before = one.database.stats().round_trips
    await one.append_event(mine, said("z", state={"app:n": 4}))
    assert one.database.stats().round_trips - before == 1


@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_a_session_that_was_copied_to_another_user_is_not_listed_for_the_first(
    make_sessions: MakeSessions, make_config: MakeConfig
) -> None:
    service = make_sessions()
    await service.create_session(**ADA, session_id="s")
    async with Database(make_config()) as database:
        copying = TranscriptChanges(database.config).copy("google-adk/shop/ada~1s", "google-adk/shop/bob~1s")
        schema = TranscriptOperations(database.config).schema
        await database.asynchronous.run(copying, schema, database.config.ddl_mode)
    assert [one.user_id for one in (await service.list_sessions(**ADA)).sessions] == ["ada"]
