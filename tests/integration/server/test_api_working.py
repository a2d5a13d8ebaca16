"""The JSON API of working memory."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from locus_mysql import Database
from locus_mysql.working import TaskState, WorkingMemory

from ..conftest import MakeConfig
from .test_api_threads import ODD_IDS, code

pytestmark = pytest.mark.kept_tables("working")


async def done(answer: httpx.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_variables_are_set_read_and_deleted(client: httpx.AsyncClient) -> None:
    value = {"city": "Bonn", "numbers": [1, 2.5, None], "big": 2**70}
    assert await done(await client.put("/sessions/s/variables/v", json={"value": value})) == {"ok": True}
    assert await done(await client.get("/sessions/s/variables/v")) == {"value": value}
    await done(await client.put("/sessions/s/variables", json={"variables": {"w": None, "x/y": 1}}))
    assert await done(await client.get("/sessions/s/variables")) == {"variables": {"v": value, "w": None, "x/y": 1}}
    assert await done(await client.get("/sessions/s/variables/w")) == {"value": None}
    assert await done(await client.get("/sessions/s/variables/x%2Fy")) == {"value": 1}
    assert await done(await client.get("/sessions/s/keys", params={"pattern": "?"})) == {"keys": ["v", "w"]}
    assert await done(await client.delete("/sessions/s/variables/v")) == {"deleted": True}
    for answer in (await client.delete("/sessions/s/variables/v"), await client.get("/sessions/s/variables/v")):
        assert (answer.status_code, code(answer)) == (404, "not_found")
    assert await done(await client.delete("/sessions/s/variables")) == {"deleted": 2}
    assert await done(await client.delete("/sessions/s/variables")) == {"deleted": 0}


async def test_a_variable_may_expire_by_itself(client: httpx.AsyncClient) -> None:
    await done(await client.put("/sessions/s/variables/v", json={"value": 1, "ttl_s": 3600}))
    await done(await client.put("/sessions/s/variables/w", json={"value": 1}))
    left = (await done(await client.get("/sessions/s/variables/v/ttl")))["expires_in_s"]
    assert 0 < left <= 3600
    assert await done(await client.get("/sessions/s/variables/w/ttl")) == {"expires_in_s": None}


async def test_numbers_are_added_to_and_values_compared(client: httpx.AsyncClient) -> None:
    assert await done(await client.post("/sessions/s/variables/n/increment", json={})) == {"value": 1}
    assert await done(await client.post("/sessions/s/variables/n/increment", json={"by": -3})) == {"value": -2}
    path = "/sessions/s/variables/n/compare-and-set"
    assert await done(await client.post(path, json={"expected": 5, "value": "x"})) == {"set": False}
    assert await done(await client.post(path, json={"expected": -2, "value": None})) == {"set": True}
    assert await done(await client.post(path, json={"value": 7})) == {"set": False}
    assert await done(await client.post(path, json={"expected": None, "value": "y"})) == {"set": True}
    other = "/sessions/s/variables/m/compare-and-set"
    assert await done(await client.post(other, json={"value": 7})) == {"set": True}
    refused = await client.post("/sessions/s/variables/n/increment", json={"by": 1})
    assert (refused.status_code, code(refused)) == (400, "invalid_input")
    assert await done(await client.get("/sessions/s/variables/n")) == {"value": "y"}


async def test_the_task_state_is_that_of_working_memory(client: httpx.AsyncClient, make_config: MakeConfig) -> None:
    assert (await client.get("/sessions/s/task")).status_code == 404
    task = TaskState(task_id="book", total_steps=3, data={"n": 1}).start("begun")
    put = await client.put("/sessions/s/task", json=task.model_dump(mode="json"))
    assert await done(put) == {"ok": True}
    assert TaskState.model_validate(await done(await client.get("/sessions/s/task"))) == task
    async with Database(make_config(driver="pymysql")) as database:
        assert await WorkingMemory("s", database).get_task_state() == task
    impossible = await client.put("/sessions/s/task", json={"task_id": "t", "status": "completed", "progress": 0.4})
    assert (impossible.status_code, code(impossible)) == (400, "invalid_input")
    assert await done(await client.delete("/sessions/s/task")) == {"deleted": True}
    assert (await client.delete("/sessions/s/task")).status_code == 404


async def test_notes_are_kept_in_their_order(client: httpx.AsyncClient) -> None:
    for note in ("one", "two", ""):
        await done(await client.post("/sessions/s/scratchpad", json={"content": note}))
    assert await done(await client.get("/sessions/s/scratchpad")) == {"notes": ["one", "two", ""]}
    assert await done(await client.get("/sessions/s/scratchpad", params={"last": 1})) == {"notes": [""]}
    assert await done(await client.delete("/sessions/s/scratchpad")) == {"deleted": 3}


async def test_a_session_goes_back_to_a_checkpoint_and_forth_again(client: httpx.AsyncClient) -> None:
    await done(await client.put("/sessions/s/variables/v", json={"value": 1}))
    made = await done(await client.post("/sessions/s/checkpoints", json={"label": "before"}))
    await done(await client.put("/sessions/s/variables/v", json={"value": 2}))
    path = f"/sessions/s/checkpoints/{made['checkpoint_id']}"
    undo = await done(await client.post(f"{path}/restore"))
    assert await done(await client.get("/sessions/s/variables/v")) == {"value": 1}
    await done(await client.post(f"/sessions/s/checkpoints/{undo['undo_id']}/restore"))
    assert await done(await client.get("/sessions/s/variables/v")) == {"value": 2}
    listed = (await done(await client.get("/sessions/s/checkpoints")))["checkpoints"]
    assert [one["label"] for one in listed if one["checkpoint_id"] == made["checkpoint_id"]] == ["before"]
    assert await done(await client.delete(path)) == {"deleted": True}
    for answer in (await client.delete(path), await client.post(f"{path}/restore")):
        assert (answer.status_code, code(answer)) == (404, "not_found")
        assert "()" not in answer.json()["error"]["message"]  # no Python expression


async def test_a_session_lists_its_contents_and_can_be_ended(client: httpx.AsyncClient) -> None:
    empty = {"keys": 0, "size_bytes": 0, "scratchpad_entries": 0, "checkpoints": 0, "expires_in_s": None}
    assert await done(await client.get("/sessions/s")) == empty
    await done(await client.put("/sessions/s/variables/v", json={"value": 1}, params={"session_ttl_s": "3600"}))
    held = await done(await client.get("/sessions/s"))
    assert (held["keys"], held["size_bytes"]) == (1, 2)
    assert 0 < held["expires_in_s"] <= 4050  # the TTL and one eighth of it
    assert await done(await client.post("/sessions/s/touch", json={"ttl_s": 60})) == {"touched": True}
    assert (await done(await client.get("/sessions/s")))["expires_in_s"] <= 67.5
    assert await done(await client.delete("/sessions/s")) == {"deleted": True}
    assert (await client.delete("/sessions/s")).status_code == 404
    assert await done(await client.post("/sessions/s/touch", json={})) == {"touched": False}
    assert await done(await client.get("/sessions/s")) == empty


async def test_sessions_are_listed_in_pages(client: httpx.AsyncClient) -> None:
    for session in ("a/1", "a/2", "b"):
        await done(await client.put(f"/sessions/{quote(session, safe='')}/variables/v", json={"value": 1}))
    first = await done(await client.get("/sessions", params={"limit": 2}))
    assert [one["session_id"] for one in first["sessions"]] == ["a/1", "a/2"]
    assert [(one["keys"], one["size_bytes"]) for one in first["sessions"]] == [(1, 2), (1, 2)]
    rest = await done(await client.get("/sessions", params={"limit": 2, "cursor": first["cursor"]}))
    assert ([one["session_id"] for one in rest["sessions"]], rest["cursor"]) == (["b"], None)
    some = await done(await client.get("/sessions", params={"pattern": "*1"}))
    assert [one["session_id"] for one in some["sessions"]] == ["a/1"]


async def test_reading_does_not_prolong_a_session(client: httpx.AsyncClient, run_sql: Any, database: str) -> None:
    params = {"session_ttl_s": "3600"}
    await done(await client.put("/sessions/s/variables/v", json={"value": 1}, params=params))
    expires = f"SELECT expires_at FROM {database}.locus_working_sessions"
    before = run_sql(expires)
    for path in ("", "/variables", "/variables/v", "/keys", "/scratchpad", "/checkpoints", "/variables/v/ttl"):
        await done(await client.get(f"/sessions/s{path}"))
    assert run_sql(expires) == before


async def test_a_full_session_refuses_more(client: httpx.AsyncClient) -> None:
    answer = await client.put("/sessions/s/variables/v", json={"value": "x" * 1_048_577})
    assert (answer.status_code, code(answer)) == (409, "capacity_exceeded")
    assert (await done(await client.get("/sessions/s")))["keys"] == 0


async def test_any_session_id_and_key_survive_in_a_path(client: httpx.AsyncClient) -> None:
    for number, odd in enumerate(ODD_IDS):
        path = f"/sessions/{quote(odd, safe='')}/variables/{quote(odd, safe='')}"
        await done(await client.put(path, json={"value": number}))
    for number, odd in enumerate(ODD_IDS):
        assert await done(await client.get(f"/sessions/{quote(odd, safe='')}/variables")) == {
            "variables": {odd: number}
        }
