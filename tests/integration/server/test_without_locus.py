"""The service without Locus installed, and concurrent saves."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import httpx
import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import MySQLCheckpointer
from locus_mysql.server.application import create_app

from ..commands import dsn_of
from ..conftest import MakeConfig
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

#: Saves, loads and searches through the application, in a process that cannot import Locus or LangGraph.
PROGRAM = """
import asyncio, json, sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"locus", "langgraph", "langchain_core"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Nowhere())
import httpx
from locus_mysql.server.application import create_app

async def main():
    app = create_app(sys.stdin.readline().strip())
    body = json.loads(sys.stdin.readline())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        saved = await http.post("/threads/t/checkpoints", json=body)
        assert saved.status_code == 200, saved.text
        loaded = await http.get("/threads/t/checkpoints/c")
        assert loaded.json()["state"] == body["state"]
        found = await http.get("/search", params={"q": "zebra"})
        assert "zebra" in found.text, found.text
    await app.state.services.database.aclose()

asyncio.run(main())
"""


async def test_the_service_needs_no_locus(make_config: MakeConfig) -> None:
    config = make_config()
    state = AgentState(run_id="run", messages=(Message.user("A zebra."),))
    body = httpx.Request("POST", "http://x", json={"checkpoint_id": "c", "state": state.to_checkpoint()}).content
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM],
        input=f"{dsn_of(config)}\n".encode() + body + b"\n",
        capture_output=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr.decode()
    async with MySQLCheckpointer(config) as direct:
        assert await direct.load("t") == state


async def test_of_saves_that_race_each_other_each_is_answered_and_one_is_made(make_config: MakeConfig) -> None:
    """An impatient client repeats a save while the first request is still running."""
    config = make_config()
    with running(create_app(config)) as url:
        async with httpx.AsyncClient(base_url=url, timeout=120) as http:
            for turn in range(5):
                body = {"checkpoint_id": f"c{turn}", "state": {"messages": [], "turn": turn}, "metadata": {"k": turn}}
                answers = await asyncio.gather(*(http.post("/threads/t/checkpoints", json=body) for _ in range(6)))
                assert {answer.status_code for answer in answers} == {200}
            listed = (await http.get("/threads/t/checkpoints?limit=100")).json()["checkpoints"]
    assert listed == [f"c{turn}" for turn in reversed(range(5))]
