"""Stored data that names code to construct: no page and no endpoint imports or runs that code."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import ormsgpack
import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.families.graphs.payload import seal, stored_thread, write_identity
from locus_mysql.integrations.langgraph import AsyncMySQLSaver
from locus_mysql.runtime.sealing import Sealing
from tests.integration.integrations.langgraph import graphs

from ..conftest import MakeConfig
from .conftest import OpenClient

RunSql = Callable[..., tuple[Any, ...]]

#: A module that nothing else imports, so that importing it is detected too.
UNUSED = "antigravity"


class Touching:
    """An object whose pickle creates a file when it is loaded."""

    def __init__(self, sentinel: Path) -> None:
        self.sentinel = sentinel

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.sentinel),)


def json_payloads(sentinel: Path) -> Mapping[str, Any]:
    """Return JSON that names code, by the library that would construct it."""
    path, mkdir = str(sentinel), {"py/function": "os.mkdir"}
    pickled = base64.b64encode(pickle.dumps(Touching(sentinel))).decode()
    constructor = {"lc": 1, "type": "constructor", "id": ["os", "mkdir"], "kwargs": {"path": path}}
    return {
        "langchain": constructor,
        "langchain, version 2": {**constructor, "lc": 2, "method": "__call__", "args": [path]},
        "langchain, a secret": {"lc": 1, "type": "secret", "id": ["PATH"]},
        "langchain, nested": {"messages": [{"role": "user", "content": [constructor]}], "lc": constructor},
        "jsonpickle, reduce": {"py/reduce": [mkdir, {"py/tuple": [path]}]},
        "jsonpickle, object": {"py/object": f"{UNUSED}.fly"},
        "jsonpickle, repr": {"py/repr": f"os/os.mkdir({path!r})"},
        "yaml": f"!!python/object/apply:os.mkdir [{path!r}]",
        "yaml, a module": f"!!python/module:{UNUSED}",
        "pickle, in text": pickled,
        "pickle, as LangGraph writes it": {"__type__": "pickle", "data": pickled},
        "Java": "rO0ABXNyABFqYXZhLnV0aWwuSGFzaE1hcA==",
        "a class": {"__class__": {"__module__": UNUSED, "__name__": "fly"}, "__reduce__": ["os.mkdir", [path]]},
        "pydantic": {"__pydantic__": f"{UNUSED}.fly", "model": UNUSED, "import_string": "os.mkdir"},
        "a template": "{{ ''.__class__.__mro__[1].__subclasses__() }}${__import__('os').mkdir('" + path + "')}",
        "a format": "{0.__class__.__init__.__globals__} %(path)s {path!r:{path}}",
    }


def packed_payloads(sentinel: Path) -> Mapping[str, bytes]:
    """Return msgpack that names code, by the type of LangGraph's extension, and pickles."""
    path = str(sentinel)
    arguments: Mapping[int, Any] = {
        0: ["os", "mkdir", path],  # a call with one argument
        1: ["os", "mkdir", [path]],  # with positional arguments
        2: ["os", "mkdir", {"path": path}],  # with keyword arguments
        3: ["os", "mkdir", [path], "mkdir"],  # a method
        4: ["os", "mkdir", {"path": path}, "mkdir"],  # Pydantic models, of versions 1 and 2
        5: ["os", "mkdir", {"path": path}, "mkdir"],
        6: [UNUSED, "fly", path],
    }
    made = {
        f"extension {kind}": ormsgpack.packb(ormsgpack.Ext(kind, ormsgpack.packb(arguments[kind])))
        for kind in arguments
    }
    return {**made, "pickle": pickle.dumps(Touching(sentinel)), "yaml": f"!!python/module:{UNUSED}".encode()}


@pytest.fixture
def sentinel(tmp_path: Path) -> Path:
    return tmp_path / "constructed"


@pytest.fixture
def client(open_client: OpenClient, sentinel: Path) -> Iterator[httpx.AsyncClient]:
    """Yield a client of a service, and check afterwards that nothing was constructed."""
    yield open_client()
    assert not sentinel.exists()
    assert UNUSED not in sys.modules


def test_a_reader_that_constructs_would_be_noticed(sentinel: Path) -> None:
    code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read())"
    subprocess.run([sys.executable, "-c", code], input=packed_payloads(sentinel)["pickle"], check=True)
    assert sentinel.exists()


async def shown(client: httpx.AsyncClient, *paths: str) -> None:
    """Request pages and endpoints of the API, and check that all requests succeed."""
    for path in paths:
        accept = "text/html" if path.startswith(("/inspect", "/?")) else "application/json"
        answer = await client.get(path, headers={"accept": accept})
        assert answer.status_code == 200, (path, answer.text[:500])


async def test_stored_json_constructs_nothing(client: httpx.AsyncClient, sentinel: Path) -> None:
    for name, payload in json_payloads(sentinel).items():
        metadata = {"m": payload}
        for number in range(2):  # so that the compared states differ
            state = {"messages": [{"role": "user", "content": payload}], "p": payload, "number": number}
            new = {"checkpoint_id": f"c{number}", "state": state, "metadata": metadata}
            assert (await client.post(f"/threads/{quote(name)}/checkpoints", json=new)).status_code == 200
            answer = await client.get(f"/threads/{quote(name)}/checkpoints/c{number}")
            assert answer.json() == {"state": state}, name
        item_key = {"namespace": ["n", name], "key": "k"}
        item = {**item_key, "value": {"v": payload}, "metadata": metadata, "text": json.dumps(payload)}
        assert (await client.put("/memories/item", json=item)).status_code == 200
        base = f"/sessions/{quote(name)}"
        for path, body in (
            ("variables/v", {"value": payload}),
            ("task", {"task_id": "t", "data": {"d": payload}}),
        ):
            assert (await client.put(f"{base}/{path}", json=body)).status_code == 200, (name, path)
        assert (await client.post(f"{base}/scratchpad", json={"content": json.dumps(payload)})).status_code == 200
        thread, labels = f"family=agents&thread={quote(name)}", quote(json.dumps(["n", name]))
        await shown(
            client,
            f"/threads/{quote(name)}/history",
            f"/threads/{quote(name)}/metadata",
            f"/memories/item?namespace=n&namespace={quote(name)}&key=k",
            f"{base}/variables",
            f"{base}/task",
            f"{base}/scratchpad",
            f"/inspect/thread?{thread}",
            f"/inspect/thread?{thread}&find=os&words=mkdir",
            f"/inspect/state.json?{thread}",
            f"/inspect/difference?{thread}&before=c0&after=c1&all=true",
            f"/inspect/memory?namespace={labels}&key=k",
            f"/inspect/session?session={quote(name)}",
        )
    value = quote(json.dumps(json_payloads(sentinel)["langchain"]))
    await shown(
        client,
        "/threads",
        "/search?q=mkdir",
        f"/metadata?key=m&value={value}",
        "/?family=agents",
        "/inspect/search?q=mkdir",
        f"/inspect/metadata?key=m&value={value}",
        "/inspect/memories?q=mkdir",
        "/inspect/memories",
        "/inspect/sessions",
        "/inspect/statistics",
    )


async def test_graphs_whose_rows_name_code_construct_nothing(
    client: httpx.AsyncClient, make_config: MakeConfig, sentinel: Path, run_sql: RunSql
) -> None:
    config: MySQLConfig = make_config()
    async with AsyncMySQLSaver(config) as saver:
        graph = graphs.asking().compile(checkpointer=saver)
        await graph.ainvoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "hostile"}})
    table = f"{config.database}.locus_graph_writes"
    rows = run_sql(f"SELECT tenant, checkpoint_key, task_id, idx, channel, task_path FROM {table}")
    assert rows
    for evil in packed_payloads(sentinel).values():
        for kind in (b"msgpack", b"pickle", b"json", b"bytes"):
            for tenant, checkpoint_key, task_id, idx, *texts in rows:
                identity = write_identity(
                    stored_thread(tenant, "hostile", Sealing(None, "graphs")), checkpoint_key, task_id, idx, *texts
                )
                payload = seal(len(kind).to_bytes(2, "little") + kind + evil, "none", identity)
                which = "WHERE checkpoint_key = %s AND task_id = %s AND idx = %s"
                run_sql(f"UPDATE {table} SET payload = %s {which}", payload, checkpoint_key, task_id, idx)
            for page in ("thread", "state.json"):
                answer = await client.get(
                    f"/inspect/{page}?family=graphs&thread=hostile", headers={"accept": "text/html"}
                )
                assert answer.status_code == 200, answer.text[:500]
