"""The SDK's compaction replaces items of a session in one transaction, with a limit too, and leaves other branches."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.extensions.memory import EncryptedSession
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.testing import ScriptedModel, assistant_message

from locus_mysql import MySQLConfig
from locus_mysql.integrations.openai_agents import OpenAISession

from ...conftest import MakeConfig
from .conftest import MakeBranching, MakeSession

pytestmark = pytest.mark.kept_tables("transcripts")

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


async def test_a_session_with_a_limit_is_compacted_and_keeps_what_the_model_did_not_see(
    make_session: MakeSession,
) -> None:
    session, client = make_session(session_settings=SessionSettings(limit=3)), Compacting()
    await session.add_items(said(*range(10)))
    agent = Agent(name="assistant", model=ScriptedModel([[assistant_message("Eleven.")]]))
    await Runner.run(agent, "10", session=compacting(session, client), run_config=QUIET)
    assert [item.get("content") for item in client.given[0]][:4] == [7, 8, 9, "10"]
    assert await session.get_items(limit=-1) == [*said(*range(7)), SUMMARY]


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_the_sdks_encrypted_session_with_a_limit_is_compacted(make_session: MakeSession) -> None:
    pytest.importorskip("cryptography")
    session, client = make_session(session_settings=SessionSettings(limit=3)), Compacting()
    encrypted = EncryptedSession("customer-7", compacting(session, client), encryption_key="secret", ttl=600)
    await encrypted.add_items(said(*range(10)))
    agent = Agent(name="assistant", model=ScriptedModel([[assistant_message("Eleven.")]]))
    await Runner.run(agent, "10", session=encrypted, run_config=QUIET)
    assert await encrypted.get_items(limit=-1) == [*said(*range(7)), SUMMARY]


async def test_items_that_another_process_added_meanwhile_are_not_replaced(make_session: MakeSession) -> None:
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


async def test_a_forced_compaction_replaces_all_items(make_session: MakeSession) -> None:
    session, client = make_session(), Compacting()
    await session.add_items(said(*range(5)))
    await compacting(session, client).run_compaction({"force": True})
    assert await session.get_items() == [SUMMARY]
    await session.add_items(said("later"))
    assert await make_session().get_items() == [SUMMARY, *said("later")]


async def test_items_of_an_applications_own_class_are_left_to_its_methods(make_session: MakeSession) -> None:
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


#: Compacts a session in children, each killed at its n-th packet after the compaction was computed, before or after the
#: packet is sent; prints what each leaves.
KILLED = """
import asyncio, json, os, signal, sys
from types import SimpleNamespace
from agents.memory import OpenAIResponsesCompactionSession
from locus_mysql import MySQLConfig
from locus_mysql.drivers.wire.blocking import SyncAdapter
from locus_mysql.integrations.openai_agents import OpenAISession

options, old, new = json.loads(sys.argv[1])
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
        return SimpleNamespace(output=new, usage=None)

def run(use):
    async def main():
        session = OpenAISession("customer-7", MySQLConfig(**options, ddl_mode="off"))
        try:
            return await use(session)
        finally:
            await session.close()
    return asyncio.run(main())

async def begin_anew(session):
    await session.clear_session()
    await session.add_items(old)

async def compact(session):
    SyncAdapter._call = counted
    wrapped = OpenAIResponsesCompactionSession("customer-7", session, client=Client(), compaction_mode="input")
    await wrapped.run_compaction({"force": True})

for how in ("before", "after"):
    for at in range(1, 10):
        run(begin_anew)
        child = os.fork()
        if not child:
            run(compact)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        print(json.dumps([how, status, run(lambda session: session.get_items())]))
        if status == 0:
            break
"""


@pytest.mark.parametrize("driver", ["pymysql"])
async def test_a_process_killed_while_it_replaces_items_leaves_all_or_the_new_ones(
    make_session: MakeSession, make_config: MakeConfig
) -> None:
    config: MySQLConfig = make_config(driver="pymysql")
    options = config.model_dump(mode="json", include=config.model_fields_set)
    options["password"] = config.password.get_secret_value()  # type: ignore[union-attr]
    old, new = said(*range(5)), said("summary")
    await make_session().add_items(old)
    arguments = [sys.executable, "-c", KILLED, json.dumps([options, old, new])]
    done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for how in ("before", "after"):
        statuses, found = zip(*((status, items) for one, status, items in lines if one == how), strict=True)
        assert all(items in (old, new) for items in found)
        assert (statuses[0], found[0]) == (signal.SIGKILL, old)
        assert (statuses[-1], found[-1]) == (0, new)
