"""The JSON API of threads: lists, histories, metadata, search, copies and vacuum."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ..conftest import MakeConfig
from .conftest import OpenClient

pytestmark = pytest.mark.kept_tables("agents")

#: Ids that must be percent-encoded in a path.
ODD_IDS = ("a/b", "50%", "ü ✓ 漢", "?q#f", "a.b", "..a", "-", "%2F", "x" * 512)


def state(*texts: str) -> dict[str, Any]:
    """Return the state of an agent after these messages of a user."""
    return {"agent_id": "agent", "messages": [{"role": "user", "content": text} for text in texts], "metadata": {}}


async def save(
    client: httpx.AsyncClient, thread_id: str, checkpoint_id: str, *texts: str, metadata: dict[str, Any] | None = None
) -> None:
    body = {"checkpoint_id": checkpoint_id, "state": state(*texts), "metadata": metadata or {}}
    answer = await client.post(f"/threads/{quote(thread_id, safe='')}/checkpoints", json=body)
    assert answer.status_code == 200, answer.text


def code(answer: httpx.Response) -> str:
    found = answer.json()["error"]["code"]
    assert isinstance(found, str)
    return found


async def test_a_history_names_the_parent_of_each_checkpoint(client: httpx.AsyncClient) -> None:
    for number, texts in enumerate((["a"], ["a", "b"], ["a", "b", "c"])):
        await save(client, "t", f"c{number}", *texts)
    history = (await client.get("/threads/t/history", params={"limit": 2})).json()
    assert [(one["checkpoint_id"], one["parent_id"]) for one in history["checkpoints"]] == [("c2", "c1"), ("c1", "c0")]
    rest = (await client.get("/threads/t/history", params={"limit": 2, "cursor": history["cursor"]})).json()
    assert [(one["checkpoint_id"], one["parent_id"]) for one in rest["checkpoints"]] == [("c0", None)]
    assert rest["cursor"] is None


async def test_metadata_is_that_of_a_checkpoint_or_of_the_newest(client: httpx.AsyncClient) -> None:
    await save(client, "t", "one", "a", metadata={"n": 1})
    await save(client, "t", "two", "a", "b", metadata={"n": 2})
    assert (await client.get("/threads/t/metadata")).json()["metadata"] == {"n": 2}
    older = (await client.get("/threads/t/metadata", params={"checkpoint_id": "one"})).json()
    assert (older["checkpoint_id"], older["metadata"]) == ("one", {"n": 1})


async def test_checkpoints_are_found_by_metadata_with_json_or_plain_text_as_value(client: httpx.AsyncClient) -> None:
    await save(client, "number", "c", "a", metadata={"n": 5})
    await save(client, "text", "c", "a", metadata={"n": "5"})
    await save(client, "word", "c", "a", metadata={"n": "paid"})
    await save(client, "odd", "c", "a", metadata={"n": "NaN"})
    for value, wanted in {
        "5": ["number"],
        '"5"': ["text"],
        "paid": ["word"],
        '"paid"': ["word"],
        "NaN": ["odd"],
        "[": [],
    }.items():
        found = (await client.get("/metadata", params={"key": "n", "value": value})).json()
        assert [one["thread_id"] for one in found["checkpoints"]] == wanted


async def test_missing_threads_are_not_found(client: httpx.AsyncClient) -> None:
    for path in ("/threads/none", "/threads/none/metadata", "/threads/none/history", "/threads/none/state"):
        answer = await client.get(path)
        assert (answer.status_code, code(answer)) == (404, "not_found")
    assert (await client.get("/threads/none/checkpoints")).json() == {"checkpoints": []}  # as Locus' client expects
    answer = await client.get("/threads", params={"family": "nonsense"})
    assert (answer.status_code, code(answer)) == (400, "invalid_input")


async def test_a_thread_without_checkpoints_is_described_if_and_only_if_it_has_a_history(
    client: httpx.AsyncClient,
) -> None:
    await save(client, "t", "c", "hello")
    assert (await client.delete("/threads/t/checkpoints/c")).status_code == 200
    described, history = await client.get("/threads/t"), await client.get("/threads/t/history")
    assert described.status_code == history.status_code


async def test_vacuum_is_there_only_where_the_service_offers_it(open_client: OpenClient) -> None:
    without, offering = open_client(), open_client(vacuum=True)
    await save(without, "t", "one", "a")
    await save(without, "t", "two", "a", "b")
    assert (await without.post("/vacuum", json={"older_than_days": 0})).status_code == 404
    assert (await without.get("/threads/t/checkpoints")).json() == {"checkpoints": ["two", "one"]}
    assert "/vacuum" not in (await without.get("/openapi.json")).json()["paths"]
    assert (await offering.post("/vacuum", json={"older_than_days": 1})).json() == {"removed": 0}
    assert "/vacuum" in (await offering.get("/openapi.json")).json()["paths"]


async def test_vacuum_removes_idle_threads_whole_and_reports_them(open_client: OpenClient) -> None:
    client = open_client(vacuum=True)
    await save(client, "t", "one", "a")
    await save(client, "t", "two", "a", "b")
    schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert "are deleted" in schemas["Vacuum"]["properties"]["older_than_days"]["description"]
    assert (await client.post("/vacuum", json={"older_than_days": 0})).json() == {"removed": 2}
    assert (await client.get("/threads")).json()["threads"] == []


async def test_damage_in_one_thread_breaks_no_list(
    client: httpx.AsyncClient, run_sql: Any, database: str, make_config: MakeConfig
) -> None:
    await save(client, "sound", "c", "a", metadata={"k": "v"})
    await save(client, "damaged", "c", "a", metadata={"k": "v"})
    run_sql(f"UPDATE {database}.locus_checkpoints SET metadata = %s WHERE thread_id = 'damaged'", "[1]")
    listed = (await client.get("/threads")).json()["threads"]
    assert {thread["thread_id"]: thread["damage"] is None for thread in listed} == {"sound": True, "damaged": False}
    answer = await client.get("/threads/damaged/metadata")
    assert (answer.status_code, code(answer)) == (500, "damaged")
