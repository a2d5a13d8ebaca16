"""Pages copy, branch and delete threads only where that is allowed, and only with a form of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from ci.support_desk import THREAD, fill, fill_the_rest
from locus_mysql import Database
from locus_mysql.integrations.locus.agent_states import AgentDictOperations, AgentDicts
from locus_mysql.server.tokens import Tokens, new_token

from ..conftest import MakeConfig
from .conftest import OpenClient
from .test_pages import checked_page

COPY = {"family": "agents", "thread": THREAD, "target": "new"}
DELETE = {"family": "agents", "thread": THREAD}


@pytest.fixture
async def agents(make_config: MakeConfig) -> AsyncIterator[AgentDicts]:
    """Save the support desk's conversations as agents' threads."""
    async with Database(make_config(driver="pymysql")) as database:
        async for _ in fill(database):
            pass
        await fill_the_rest(database)
        yield AgentDicts(AgentDictOperations(database.config), database)


@pytest.fixture
def writer(open_client: OpenClient) -> httpx.AsyncClient:
    """Return a client of a service whose pages may change stored data."""
    return open_client(allow_writes=True)


async def sent(client: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    """Fill in the form of a page and submit it."""
    asked = {name: fields[name] for name in ("family", "thread", "checkpoint", "namespace") if name in fields}
    form = checked_page(await client.get(path, params=asked)).inputs()
    return await client.post(path, data={**form, **fields})


async def test_a_thread_is_copied(writer: httpx.AsyncClient, agents: AgentDicts) -> None:
    response = await sent(writer, "/inspect/copy", **COPY)

    assert response.status_code == 303
    assert "Please refund me instead." in checked_page(await writer.get(response.headers["location"])).text
    copied: Any = agents.list_checkpoints("new", 100)
    original: Any = agents.list_checkpoints(THREAD, 100)
    assert copied == original


async def test_a_thread_branches_from_a_state(writer: httpx.AsyncClient, agents: AgentDicts) -> None:
    response = await sent(writer, "/inspect/copy", **COPY, checkpoint="01HZX9A05K3")

    assert response.status_code == 303
    old: Any = agents.load_text(THREAD, "01HZX9A05K3")
    new: Any = agents.load_text("new")
    count: Any = agents.list_checkpoints("new", 100)
    metadata: Any = agents.get_metadata("new")
    assert new == old
    assert len(count) == 1
    assert (metadata)["metadata"]["order"] == 48213


async def test_a_copy_never_overwrites_a_thread(writer: httpx.AsyncClient, agents: AgentDicts) -> None:
    taken = "support-48220-jonas.weber"
    before: Any = agents.load_text(taken)
    kept = before
    for checkpoint in ({}, {"checkpoint": "01HZX9A05K3"}):
        response = await sent(writer, "/inspect/copy", **{**COPY, "target": taken, **checkpoint})
        assert "The thread exists already" in checked_page(response, 409).text
    after: Any = agents.load_text(taken)
    assert after == kept


async def test_a_thread_is_deleted_once_it_was_asked(writer: httpx.AsyncClient, agents: AgentDicts) -> None:
    page = checked_page(await writer.get("/inspect/delete", params=DELETE))
    assert "This cannot be undone." in page.text
    there: Any = agents.exists(THREAD)
    assert there

    response = await sent(writer, "/inspect/delete", **DELETE)

    assert (response.status_code, response.headers["location"]) == (303, "/?family=agents")
    gone: Any = agents.exists(THREAD)
    assert not gone
    checked_page(await writer.get("/inspect/delete", params=DELETE), 404)


async def test_a_checkpoint_is_deleted(writer: httpx.AsyncClient, agents: AgentDicts) -> None:
    response = await sent(writer, "/inspect/delete", **DELETE, checkpoint="01HZX9A05K3")

    assert response.status_code == 303
    left: Any = agents.list_checkpoints(THREAD, 100)
    assert len(left) == 11


async def test_pages_refuse_changes_that_are_not_allowed(
    open_client: OpenClient, agents: AgentDicts, table_contents: Callable[[], Any]
) -> None:
    before = table_contents()
    reader, writer = new_token("reader", "default", "read"), new_token("writer", "default", "write")
    for secret, allow_writes, message in (
        (reader.secret, True, "does not allow writes"),
        (writer.secret, False, "--allow-writes"),
    ):
        client = open_client(tokens=Tokens(reader.entry + writer.entry), allow_writes=allow_writes)
        await client.post("/login", data={"token": secret})
        page = checked_page(await client.get("/inspect/thread", params=DELETE))
        assert not [link for link in page.links() if "/delete" in link or "/copy" in link]
        form = page.inputs()
        for path, fields in (("/inspect/copy", COPY), ("/inspect/delete", DELETE)):
            assert message in checked_page(await client.get(path, params=DELETE), 403).text
            checked_page(await client.post(path, data={**fields, "form_secret": form["form_secret"]}), 403)
    assert table_contents() == before


async def test_odd_forms_are_refused(
    writer: httpx.AsyncClient, agents: AgentDicts, table_contents: Callable[[], Any]
) -> None:
    before = table_contents()
    secret = checked_page(await writer.get("/inspect/delete", params=DELETE)).inputs()["form_secret"]
    odd: tuple[tuple[str, dict[str, str]], ...] = (
        ("/inspect/copy", {**COPY, "target": ""}),
        ("/inspect/copy", {**COPY, "target": "x" * 513}),
        ("/inspect/copy", {**COPY, "target": "a\0b"}),
        ("/inspect/copy", {**COPY, "family": "nothing"}),
        ("/inspect/copy", {**COPY, "family": "graphs", "thread": "graph-triage-7", "checkpoint": "step-1"}),
        ("/inspect/delete", {"family": "agents", "thread": ""}),
        ("/inspect/delete", {"family": "", "thread": THREAD}),
    )
    for path, fields in odd:
        checked_page(await writer.post(path, data={**fields, "form_secret": secret}), 400)
    checked_page(await writer.post("/inspect/copy", data={**COPY, "thread": "none", "form_secret": secret}), 404)
    checked_page(await writer.post("/inspect/delete", data={**DELETE, "thread": "none", "form_secret": secret}), 404)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    checked_page(await writer.post("/inspect/delete", content=b"thread=%ff&form_secret=\xff", headers=form), 400)
    checked_page(await writer.post("/inspect/delete", content=b"a=1&" * 60, headers=form), 400)
    checked_page(await writer.post("/inspect/delete", content=b"a" * 70_000, headers=form), 413)
    assert table_contents() == before
