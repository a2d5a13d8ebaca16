"""ADK's own command line and web server with services in MySQL, named by URI; and its runner."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.cli.service_registry import ServiceRegistry, get_service_registry, load_services_module

from examples.adk.worker import runner_on, say
from locus_mysql import MySQLConfig
from locus_mysql.errors import ConfigError
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService, session_service

from ...conftest import MakeConfig
from .conftest import MakeMemory, MakeSessions

ROOT = Path(__file__).parents[4]
AGENTS = ROOT / "examples/adk/agents"

pytestmark = pytest.mark.kept_tables


@pytest.mark.filterwarnings("ignore::UserWarning")  # older versions warn of experimental features
async def test_a_runner_continues_a_conversation_of_another_process(
    make_sessions: MakeSessions, make_memory: MakeMemory
) -> None:
    one, other, memory = make_sessions(), make_sessions(), make_memory()
    await one.create_session(app_name="shop", user_id="ada", session_id="s")
    assert await say(runner_on(one), "s", "The lamp blinks.") == "You have said 1 things, first: The lamp blinks."
    assert await say(runner_on(other), "s", "I am Ada.") == "I shall remember."
    assert await say(runner_on(one), "s", "Now?") == "You have said 3 things, first: The lamp blinks."
    session = await other.get_session(app_name="shop", user_id="ada", session_id="s")
    assert session is not None
    assert session.state["user:name"] == "Ada"
    await memory.add_session_to_memory(session)
    await other.create_session(app_name="shop", user_id="ada", session_id="t")
    assert "The lamp blinks." in await say(runner_on(other, memory), "t", "Do you remember what blinks?")


def uri_of(config: MySQLConfig) -> str:
    password = config.password.get_secret_value()
    return (
        f"mysql+locus://{config.user}:{password}@{config.host}:{config.port}/{config.database}?driver={config.driver}"
    )


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    """A copy of the example's agents, because ADK writes files into their folder."""
    return Path(shutil.copytree(AGENTS, tmp_path / "agents"))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "google.adk.cli", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OTEL_SDK_DISABLED": "true"}


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["aiomysql"])
async def test_adk_run_keeps_its_sessions_here(
    make_config: MakeConfig, make_sessions: MakeSessions, agents: Path
) -> None:
    uri = uri_of(make_config(driver="aiomysql"))
    services = ["--session_service_uri", uri, "--memory_service_uri", uri]
    done = await asyncio.to_thread(
        subprocess.run,
        command("run", *services, str(agents / "shop"), "I am Ada."),
        env=environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "I shall remember." in done.stdout
    (session,) = (await make_sessions().list_sessions(app_name="shop")).sessions
    assert session.state["user:name"] == "Ada"


@pytest.mark.slow
@pytest.mark.parametrize("driver", ["asyncmy"])
async def test_adk_web_keeps_its_sessions_and_memories_here(
    make_config: MakeConfig, make_sessions: MakeSessions, agents: Path
) -> None:
    uri = uri_of(make_config(driver="asyncmy"))
    session = "/apps/shop/users/ada/sessions/s"
    with web_server(uri, agents) as base:
        async with httpx.AsyncClient(base_url=base, timeout=60) as client:

            async def serves() -> bool:
                try:
                    return (await client.get("/list-apps")).status_code == 200
                except httpx.TransportError:
                    return False

            await _until(serves)
            assert (await client.get("/dev-ui/")).status_code == 200
            (await client.post(session)).raise_for_status()
            assert (await client.post(session)).status_code == 409
            for text in ("The lamp blinks.", "I am Ada."):
                answer = await client.post("/run", json=turn("s", text))
                answer.raise_for_status()
            (await client.patch("/apps/shop/users/ada/memory", json={"session_id": "s"})).raise_for_status()
            (await client.post("/apps/shop/users/ada/sessions/t")).raise_for_status()
            answer = await client.post("/run", json=turn("t", "Do you remember what blinks?"))
            assert "The lamp blinks." in answer.text
            assert [one["id"] for one in (await client.get("/apps/shop/users/ada/sessions")).json()] == ["s", "t"]
            shown = (await client.get(session)).json()
            (await client.delete("/apps/shop/users/ada/sessions/t")).raise_for_status()
    stored = await make_sessions().get_session(app_name="shop", user_id="ada", session_id="s")
    assert stored is not None
    assert [event.id for event in stored.events] == [event["id"] for event in shown["events"]]
    assert stored.state["user:name"] == "Ada"
    assert len((await make_sessions().list_sessions(app_name="shop")).sessions) == 1


@contextmanager
def web_server(uri: str, agents: Path) -> Iterator[str]:
    """Run ``adk web`` on a free port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
    arguments = ["--host", "127.0.0.1", "--port", port, "--session_service_uri", uri, "--memory_service_uri", uri]
    with (
        (agents.parent / "log").open("w") as output,
        subprocess.Popen(
            command("web", *arguments, str(agents)), env=environment(), stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def turn(session: str, text: str) -> dict[str, Any]:
    message = {"role": "user", "parts": [{"text": text}]}
    return {"app_name": "shop", "user_id": "ada", "session_id": session, "new_message": message}


async def _until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("driver", ["mysql-connector"])
async def test_services_are_made_from_a_yaml_file(
    driver: str, make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("google.adk.cli.service_registry._service_registry_instance", ServiceRegistry())
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = "locus_mysql.integrations.google_adk"
    (tmp_path / "services.yaml").write_text(
        "services:\n"
        f"  - {{scheme: mysql+locus, type: session, class: {module}.session_service}}\n"
        f"  - {{scheme: mysql+locus, type: memory, class: {module}.memory_service}}\n"
    )
    load_services_module(str(tmp_path))
    registry, uri = get_service_registry(), uri_of(make_config(driver=driver)) + "&tenant=acme"
    sessions = registry.create_session_service(uri, agents_dir=str(tmp_path), pool_size=2)
    memory = registry.create_memory_service(uri, agents_dir=str(tmp_path))
    assert isinstance(sessions, AdkSessionService)
    assert isinstance(memory, AdkMemoryService)
    assert (sessions.config.tenant, sessions.config.pool_size, memory.config.tenant) == ("acme", 2, "acme")
    created = await sessions.create_session(app_name="shop", user_id="ada")
    assert await memory.search_memory(app_name="shop", user_id="ada", query="lamp") is not None
    assert (await sessions.list_sessions(app_name="shop")).sessions[0].id == created.id
    await sessions.close()
    await memory.close()
    for bad in ("mysql://user@host/app", "mysql+locus:user", "mysql+locus://user@host/app?nonsense=1"):
        with pytest.raises(ConfigError):
            session_service(bad)
