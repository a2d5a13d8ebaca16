"""The JSON API of long-term memory."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import OpenClient
from .test_api_threads import code

pytestmark = pytest.mark.kept_tables("memories")

WHERE = {"namespace": ["users", "ada"], "key": "tea"}


async def put(client: httpx.AsyncClient, *namespace: str, key: str, value: Any, **options: Any) -> int:
    answer = await client.put("/memories/item", json={"namespace": namespace, "key": key, "value": value, **options})
    assert answer.status_code == 200, answer.text
    version = answer.json()["version"]
    assert isinstance(version, int)
    return version


async def test_an_item_is_written_read_and_deleted(client: httpx.AsyncClient) -> None:
    value = {"likes": "green tea", "numbers": [1, 2.5, None, True], "ü": "✓"}
    assert await put(client, "users", "ada", key="tea", value=value, metadata={"source": "chat"}) == 1
    item = (await client.get("/memories/item", params=WHERE)).json()
    assert (item["namespace"], item["key"]) == (["users", "ada"], "tea")
    assert (item["value"], item["metadata"], item["version"]) == (value, {"source": "chat"}, 1)
    assert item["expires_at"] is None
    assert (await client.delete("/memories/item", params=WHERE)).json() == {"deleted": True}
    for answer in (
        await client.get("/memories/item", params=WHERE),
        await client.delete("/memories/item", params=WHERE),
    ):
        assert (answer.status_code, code(answer)) == (404, "not_found")


async def test_the_time_to_live_is_the_services_unless_the_write_overrides_it(open_client: OpenClient) -> None:
    client = open_client(store={"ttl_s": 3600})
    await put(client, "n", key="by default", value=1)
    await put(client, "n", key="never", value=1, ttl_s=None)
    await put(client, "n", key="soon", value=1, ttl_s=60)
    expires = {
        key: (await client.get("/memories/item", params={"namespace": "n", "key": key})).json()["expires_at"]
        for key in ("by default", "never", "soon")
    }
    assert expires["never"] is None
    assert expires["soon"] < expires["by default"]


async def test_keys_and_namespaces_are_listed(client: httpx.AsyncClient) -> None:
    for namespace, key in ((("a",), "2"), (("a",), "1"), (("a", "b"), "1"), (("c", "b"), "1")):
        await put(client, *namespace, key=key, value=1)

    async def namespaces(**params: Any) -> list[list[str]]:
        found = (await client.get("/memories/namespaces", params=params)).json()["namespaces"]
        assert isinstance(found, list)
        return found

    assert (await client.get("/memories/keys", params={"namespace": "a"})).json() == {"keys": ["1", "2"]}
    assert (await client.get("/memories/keys", params={"namespace": "a", "offset": 1})).json() == {"keys": ["2"]}
    assert await namespaces() == [["a"], ["a", "b"], ["c", "b"]]
    assert await namespaces(prefix="a") == [["a"], ["a", "b"]]
    assert await namespaces(prefix=["*", "b"]) == [["a", "b"], ["c", "b"]]
    assert await namespaces(suffix="b", limit=1) == [["a", "b"]]
    assert await namespaces(max_depth=1) == [["a"], ["c"]]


async def test_a_batch_is_carried_out_as_a_whole_or_not_at_all(client: httpx.AsyncClient) -> None:
    await put(client, "n", key="old", value=1)
    new = {"namespace": ["n"], "key": "new", "value": 2}
    old = {"namespace": ["n"], "key": "old"}
    refused = await client.post(
        "/memories/batch", json={"items": [new, {**old, "value": 3, "if_version": 7}], "deleted": []}
    )
    assert (refused.status_code, code(refused)) == (409, "version_conflict")
    assert (await client.get("/memories/keys", params={"namespace": "n"})).json() == {"keys": ["old"]}
    assert (await client.post("/memories/batch", json={"items": [new], "deleted": [old]})).json() == {"deleted": 1}
    assert (await client.get("/memories/keys", params={"namespace": "n"})).json() == {"keys": ["new"]}
    assert (await client.post("/memories/batch", json={})).json() == {"deleted": 0}


@pytest.mark.kept_tables
async def test_items_are_found_by_field_and_by_word(client: httpx.AsyncClient) -> None:
    await put(client, "users", "ada", key="tea", value={"likes": "green tea", "n": 3}, metadata={"kind": "taste"})
    await put(client, "users", "bob", key="cat", value={"has": "a cat", "n": 5})

    async def found(**asked: Any) -> list[str]:
        answer = await client.post("/memories/search", json=asked)
        assert answer.status_code == 200, answer.text
        return [hit["item"]["key"] for hit in answer.json()["hits"]]

    assert await found() == ["cat", "tea"]
    assert await found(query="green") == ["tea"]
    assert await found(filter={"n": {"$gte": 4}}) == ["cat"]
    assert await found(metadata_filter={"kind": "taste"}) == ["tea"]
    assert await found(namespace_prefix=["users", "bob"]) == ["cat"]
    assert await found(namespace_prefix=["users"], only_here=True) == []
    assert await found(limit=1, offset=1) == ["tea"]


async def test_items_are_found_by_meaning(open_client: OpenClient) -> None:
    client = open_client(dims=3)
    await put(client, "n", key="tea", value="green tea", embeddings=[[1, 0, 0]])
    await put(client, "n", key="cake", value="plum cake", embeddings=[[0, 1, 0], [0, 0.9, 0.1]])
    batch = {"items": [{"namespace": ["n"], "key": "pie", "value": "apple pie", "embeddings": [[0, 0.6, 0.8]]}]}
    assert (await client.post("/memories/batch", json=batch)).status_code == 200
    found = (await client.post("/memories/search", json={"embedding": [0, 1, 0.1], "limit": 2})).json()["hits"]
    assert [hit["item"]["key"] for hit in found] == ["cake", "pie"]
    assert found[0]["score"] > found[1]["score"] > 0.5
    both = (await client.post("/memories/search", json={"embedding": [0, 1, 0], "query": "tea"})).json()["hits"]
    assert {hit["item"]["key"] for hit in both} == {"tea", "cake", "pie"}
    for wrong in ("[1, 2]", "[]", '["x"]', "[0, 0, 1e999]"):
        text = f'{{"embedding": {wrong}}}'
        refused = await client.post("/memories/search", content=text, headers={"Content-Type": "application/json"})
        assert refused.status_code == 400, wrong


async def test_a_service_without_a_width_refuses_embeddings(client: httpx.AsyncClient) -> None:
    body = {"namespace": ["n"], "key": "k", "value": 1, "embeddings": [[1, 2]]}
    refused = await client.put("/memories/item", json=body)
    assert (refused.status_code, code(refused)) == (400, "invalid_input")
    refused = await client.post("/memories/search", json={"embedding": [1, 2]})
    assert (refused.status_code, code(refused)) == (400, "invalid_input")
    assert "dims" in refused.json()["error"]["message"]
