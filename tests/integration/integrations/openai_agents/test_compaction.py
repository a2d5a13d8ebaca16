"""The SDK's compaction replaces items of a session in one transaction, with a limit too, and leaves other branches."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.testing import ScriptedModel, assistant_message

from locus_mysql import MySQLConfig
from locus_mysql.families.transcripts import operations
from locus_mysql.integrations.openai_agents import OpenAISession

from ...conftest import MakeConfig
from .conftest import MakeBranching

pytestmark = pytest.mark.kept_tables("transcripts")

Make = Callable[..., OpenAISession]

SUMMARY = {"type": "compaction", "encrypted_content": "The conversation so far."}
QUIET = RunConfig(tracing_disabled=True)


class Compacting:
    """Stands for OpenAI's client, whose compaction returns one item for all that it is given."""

    def __init__(self) -> None:
        self.responses = self
        self.given: list[Any] = []

    async def compact(self, *, model: str, input: list[Any], **_: Any) -> Any:
        self.given.append(input)
        return SimpleNamespace(output=[SUMMARY], usage=None)


@pytest.fixture
async def make_session(make_config: MakeConfig, driver: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    monkeypatch.setattr(operations, "one_in", lambda one_in: False)
    made: list[OpenAISession] = []

    def make(**options: Any) -> OpenAISession:
        made.append(OpenAISession("customer-7", make_config(driver=driver), **options))
        return made[-1]

    yield make
    for one in made:
        await one.close()


def compacting(session: Any, client: Compacting) -> OpenAIResponsesCompactionSession:
    return OpenAIResponsesCompactionSession(
        "customer-7",
        session,
        client=client,  # type: ignore[arg-type]
        compaction_mode="input",
        should_trigger_compaction=lambda _: True,
    )


def said(*texts: object) -> Any:
    return [{"role": "user", "content": text} for text in texts]


async def test_a_session_with_a_limit_is_compacted_and_keeps_what_the_model_did_not_see(make_session: Make) -> None:
    session, client = make_session(session_settings=SessionSettings(limit=3)), Compacting()
    await session.add_items(said(*range(10)))
    agent = Agent(name="assistant", model=ScriptedModel([[assistant_message("Eleven.")]]))
    await Runner.run(agent, "10", session=compacting(session, client), run_config=QUIET)
    assert [item.get("content") for item in client.given[0]][:4] == [7, 8, 9, "10"]
    assert await session.get_items(limit=-1) == [*said(*range(7)), SUMMARY]


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_sdks_encrypted_session_with_a_limit_is_compacted(make_session: Make) -> None:
    pytest.importorskip("cryptography")
    session, client = make_session(session_settings=SessionSettings(limit=3)), Compacting()
    encrypted = EncryptedSession("customer-7", compacting(session, client), encryption_key="secret", ttl=600)
    await encrypted.add_items(said(*range(10)))
    agent = Agent(name="assistant", model=ScriptedModel([[assistant_message("Eleven.")]]))
    await Runner.run(agent, "10", session=encrypted, run_config=QUIET)
    assert await encrypted.get_items(limit=-1) == [*said(*range(7)), SUMMARY]


async def test_items_that_another_process_added_meanwhile_are_not_replaced(make_session: Make) -> None:
    session = make_session()
    await session.add_items(said(*range(5)))
    snapshot: Any = await session._get_compaction_snapshot(3)
    assert (snapshot.items, snapshot.complete) == (said(2, 3, 4), False)
    assert not await snapshot.replace_suffix(3, said("nothing is replaced"))
    await make_session().add_items(said(5))
    assert not await snapshot.replace_suffix(1, said("summary"))
    assert await session.get_items() == said(*range(6))
    snapshot = await session._get_compaction_snapshot(10)
    assert snapshot.complete
    assert await snapshot.replace_suffix(2, said("summary"))
    assert await session.get_items() == said(0, 1, "summary")


async def test_a_forced_compaction_replaces_all_items(make_session: Make) -> None:
    session, client = make_session(), Compacting()
    await session.add_items(said(*range(5)))
    await compacting(session, client).run_compaction({"force": True})
    assert await session.get_items() == [SUMMARY]
    await session.add_items(said("later"))
    assert await make_session().get_items() == [SUMMARY, *said("later")]


async def test_items_of_an_applications_own_class_are_left_to_its_methods(make_session: Make) -> None:
    class Shouting(OpenAISession):
        async def add_items(self, items: list[Any]) -> None:
            await super().add_items([{**item, "content": str(item["content"]).upper()} for item in items])

    plain = make_session()
    session = Shouting("customer-7", plain.database)
    assert await session._get_compaction_snapshot(3) is None
    assert not await session._atomic_replace_items(said("a"))


@pytest.mark.parametrize("on_main", [True, False])
async def test_a_compacted_branch_leaves_the_items_of_others(make_branching: MakeBranching, on_main: bool) -> None:
    session, client = make_branching(), Compacting()
    await session.add_items(said(1, 2, 3))
    await session.create_branch_from_turn(3, "other")
    await session.add_items(said("b"))
    if on_main:
        await session.switch_to_branch("main")
        await session.add_items(said(4))
    await compacting(session, client).run_compaction({"force": True})
    await session.add_items(said("later"))
    compacted, kept = ("main", "other") if on_main else ("other", "main")
    assert await session.get_items(branch_id=compacted) == [SUMMARY, *said("later")]
    assert await session.get_items(branch_id=kept) == (said(1, 2, "b") if on_main else said(1, 2, 3))
    snapshot: Any = await session._get_compaction_snapshot(1)
    assert await snapshot.replace_suffix(0, said("end"))
    assert await session.get_items() == [SUMMARY, *said("end")]
    assert await session.get_items(branch_id=kept) == (said(1, 2, "b") if on_main else said(1, 2, 3))


#: Compacts a session, and is killed at its n-th packet after the compaction was computed: before or after it is sent.
KILLED = """
import asyncio, json, os, signal, sys
from types import SimpleNamespace
from agents.memory import OpenAIResponsesCompactionSession
from locus_mysql import MySQLConfig
from locus_mysql.drivers.wire.blocking import SyncAdapter
from locus_mysql.integrations.openai_agents import OpenAISession

options, at, how = json.loads(sys.argv[1])
call, sent, computed = SyncAdapter._call, 0, False

def counted(self, command, deadline):
    global sent
    sent += computed
    if computed and sent == at:
        if how == "after":
            self._sock.sendall(command.wire)
        os.kill(os.getpid(), signal.SIGKILL)
    return call(self, command, deadline)

class Client:
    responses = property(lambda self: self)
    async def compact(self, **_):
        global computed
        computed = True
        return SimpleNamespace(output=[{"role": "user", "content": "summary"}], usage=None)

async def main():
    SyncAdapter._call = counted
    session = OpenAISession("customer-7", MySQLConfig(**options, ddl_mode="off"))
    wrapped = OpenAIResponsesCompactionSession("customer-7", session, client=Client(), compaction_mode="input")
    await wrapped.run_compaction({"force": True})

asyncio.run(main())
"""


@pytest.mark.parametrize("driver", ["pymysql"])
@pytest.mark.parametrize("how", ["before", "after"])
async def test_a_process_killed_while_it_replaces_items_leaves_all_or_the_new_ones(
    make_session: Make, make_config: MakeConfig, how: str
) -> None:
    config: MySQLConfig = make_config(driver="pymysql")
    options = config.model_dump(mode="json", include=config.model_fields_set)
    options["password"] = config.password.get_secret_value()  # type: ignore[union-attr]
    session = make_session()
    old, new = said(*range(5)), said("summary")
    found = []
    for at in range(1, 10):
        await session.clear_session()
        await session.add_items(old)
        arguments = [sys.executable, "-c", KILLED, json.dumps([options, at, how])]
        status = subprocess.run(arguments, check=False).returncode  # noqa: ASYNC221 - nothing else runs
        found.append(await session.get_items())
        assert found[-1] in (old, new)
        if status == 0:
            break
    assert found[0] == old
    assert found[-1] == new
