"""The parent of a checkpoint saved over HTTP: the one the client names, or the newest, on any worker.

Each request uses a new connection, so that saves seldom reach the worker that answered the load. All tests share a
service with two workers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from locus_mysql import MySQLConfig, SyncMySQLCheckpointer

from ..commands import dsn_of
from ..connecting import connect
from ..soundness import assert_sound
from .conftest import OpenClient
from .test_serve import PATIENCE_S, Service, serving_at

pytestmark = [pytest.mark.kept_tables("agents"), pytest.mark.xdist_group("parents")]

#: Enough for a state to be stored as a delta.
LONG = "x" * 3_000


@pytest.fixture(scope="module")
def service(shared_config: MySQLConfig) -> Iterator[Service]:
    with serving_at(dsn_of(shared_config), "--workers", "2") as one:
        yield one
    with connect(shared_config, shared_config.database) as connection:
        assert_sound(connection)


def state_of(*texts: str) -> dict[str, Any]:
    conversation = [{"role": "user", "content": text} for text in (LONG, *texts)]
    return {"run_id": "run", "messages": conversation, "metadata": {}}


#: Closes its connection after each answer, so that each request has a new one.
CLIENT = httpx.Client(timeout=PATIENCE_S, limits=httpx.Limits(max_keepalive_connections=0))


def post(url: str, thread_id: str, checkpoint_id: str, state: dict[str, Any], **fields: Any) -> httpx.Response:
    """Save over a new connection."""
    body = {"checkpoint_id": checkpoint_id, "thread_id": thread_id, "state": state, "metadata": {}, **fields}
    return CLIENT.post(f"{url}/threads/{thread_id}/checkpoints", json=body)


def saved(url: str, thread_id: str, checkpoint_id: str, *texts: str, **fields: Any) -> str:
    answer = post(url, thread_id, checkpoint_id, state_of(*texts), **fields)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["checkpoint_id"])


def parents(url: str, thread_id: str) -> dict[str, str | None]:
    """Return the parent of each checkpoint of a thread, oldest first."""
    answer = CLIENT.get(f"{url}/threads/{thread_id}/history", params={"limit": 1000})
    found = answer.json() if answer.status_code == 200 else {"checkpoints": []}
    return {one["checkpoint_id"]: one["parent_id"] for one in reversed(found["checkpoints"])}


def test_two_clients_at_once_follow_what_they_name(service: Service) -> None:
    """After a shared beginning, each client continues its own last save."""
    saved(service.url, "named", "root", "text")

    def client(name: str) -> None:
        for at in range(25):
            before = f"{name}{at - 1}" if at else "root"
            saved(service.url, "named", f"{name}{at}", "text", *(f"{name}{n}" for n in range(at + 1)), parent_id=before)

    with ThreadPoolExecutor(2) as clients:
        list(clients.map(client, "ab"))
    wanted = {f"{name}{at}": f"{name}{at - 1}" if at else "root" for name in "ab" for at in range(25)}
    assert parents(service.url, "named") == {"root": None, **wanted}


def test_clients_that_name_nothing_are_one_line_also_at_once(service: Service) -> None:
    def client(name: str) -> None:
        for at in range(25):
            saved(service.url, "unnamed", f"{name}{at}", name, str(at))

    with ThreadPoolExecutor(4) as clients:
        list(clients.map(client, "abcd"))
    found = parents(service.url, "unnamed")
    assert list(found.values()) == [None, *list(found)[:-1]]


@pytest.mark.parametrize("seed", range(2))
def test_parents_are_those_of_a_model_beside_agents_that_use_the_database(
    shared_config: MySQLConfig, service: Service, seed: int
) -> None:
    """Saves with and without a named parent, moves, deletes, and saves by another process, in sequence."""
    source, url, thread_id = random.Random(seed), service.url, f"model-{seed}"
    order: list[str] = []  # oldest first
    wanted: dict[str, str | None] = {}

    def follow(name: str, parent: str | None) -> None:
        order.append(name)
        wanted[name] = parent

    def forget(name: str) -> None:
        """Remove a checkpoint from the expectation; its children become those of its parent."""
        order.remove(name)
        gone = wanted.pop(name)
        for one, parent in wanted.items():
            wanted[one] = gone if parent == name else parent

    with SyncMySQLCheckpointer(dsn_of(shared_config), driver="pymysql") as direct:
        for at in range(60):
            deed = source.random()
            if order and deed < 0.03:
                assert CLIENT.delete(f"{url}/threads/{thread_id}/checkpoints").status_code == 200
                order.clear()
                wanted.clear()
            elif order and deed < 0.1:
                name = source.choice(order)
                assert direct.delete(thread_id, name)
                forget(name)
            elif order and deed < 0.3:
                name = source.choice(order)
                saved(url, thread_id, f"c{at}", str(at), parent_id=name)
                follow(f"c{at}", name)
            elif order and deed < 0.5:
                state = direct.load(thread_id)
                assert state is not None
                newest = order[-1]
                direct.save(state, thread_id, f"c{at}")
                follow(f"c{at}", newest)
            else:
                newest = order[-1] if order else None
                saved(url, thread_id, f"c{at}", *(str(one) for one in range(source.randrange(at + 1))))
                follow(f"c{at}", newest)
            assert parents(url, thread_id) == wanted


async def test_a_parent_that_is_not_there_is_refused(open_client: OpenClient) -> None:
    client = open_client()
    for parent_id in ("c0", "other"):
        answer = await client.post(
            "/threads/t/checkpoints", json={"checkpoint_id": "c1", "state": state_of(), "parent_id": parent_id}
        )
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "parent_missing")
    assert (await client.get("/threads/t/checkpoints")).json() == {"checkpoints": []}


async def test_a_repeated_save_that_names_its_parent_changes_nothing(open_client: OpenClient) -> None:
    client = open_client()
    path = "/threads/t/checkpoints"
    for name, parent_id in (("c0", None), ("c1", "c0"), ("c2", "c1"), ("c1", "c0")):
        body = {"checkpoint_id": name, "state": state_of(name), "parent_id": parent_id}
        assert (await client.post(path, json=body)).json() == {"checkpoint_id": name}
    assert (await client.get(path)).json() == {"checkpoints": ["c2", "c1", "c0"]}
