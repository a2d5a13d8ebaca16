"""Long requests run in separate processes, which may die or be abandoned."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from locus_mysql import MySQLConfig
from locus_mysql.server.bodies import SMALL_VALUES
from locus_mysql.server.limits import Limits

from ...thoroughness import FULL
from ..cli.test_main import dsn_of
from ..conftest import MakeConfig
from ..connecting import connect
from .raw import RawClient
from .test_serve import PATH, PATIENCE_S, Service, dsn, serving_at, until
from .test_workers import alive

pytestmark = [pytest.mark.kept_tables("agents", "memories", "working"), pytest.mark.xdist_group("processes")]

__all__ = ["dsn"]

#: More than the service handles in its own process.
LARGE = "x" * 1_000_000


def children_of(pid: int) -> set[int]:
    """Return the children of a process."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return {one for one in map(int, found) if alive(one)}


def request_processes(service: Service) -> set[int]:
    """Return the request processes of a service without workers, which its fork server has forked."""
    return {one for fork_server in children_of(service.process.pid) for one in children_of(fork_server)}


@pytest.fixture(scope="module")
def shared(shared_config: MySQLConfig) -> Iterator[Service]:
    """Yield a service without workers that several tests use."""
    with serving_at(dsn_of(shared_config)) as one:
        yield one


@pytest.fixture
def service(shared: Service) -> Service:
    """Return the shared service without request processes."""
    ending = request_processes(shared)
    for pid in ending:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in ending), "the end of the request processes")
    return shared


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=PATIENCE_S) as one:
        yield one


def test_small_requests_need_no_process_and_large_ones_share_one(service: Service, client: httpx.Client) -> None:
    path = "/threads/sizes/checkpoints"
    assert client.post(path, json={"checkpoint_id": "a", "state": {"note": "x"}}).status_code == 200
    assert client.get(f"{path}/a").json() == {"state": {"note": "x"}}
    assert request_processes(service) == set()
    for number in range(3):
        new = {"checkpoint_id": f"large{number}", "state": {"note": LARGE, "number": number}}
        assert client.post(path, json=new).status_code == 200
        assert client.get(f"{path}/large{number}").json() == {"state": new["state"]}
    assert len(request_processes(service)) == 1


def test_a_save_of_a_hundred_messages_needs_no_process_and_one_of_many_values_does(
    service: Service, client: httpx.Client
) -> None:
    path = "/threads/values/checkpoints"
    messages = [{"role": "user", "content": "x" * 900, "number": number} for number in range(100)]
    assert client.post(path, json={"checkpoint_id": "a", "state": {"messages": messages}}).status_code == 200
    assert client.get(f"{path}/a").json() == {"state": {"messages": messages}}
    assert request_processes(service) == set()
    numbers = {"numbers": [*range(SMALL_VALUES)]}
    assert client.post(path, json={"checkpoint_id": "b", "state": numbers}).status_code == 200
    assert client.get(f"{path}/b").json() == {"state": numbers}
    assert len(request_processes(service)) == 1


def test_without_processes_all_is_carried_out_in_the_service(dsn: str) -> None:
    with serving_at(dsn, "--processes", "0") as service, httpx.Client(base_url=service.url, timeout=PATIENCE_S) as one:
        new = {"checkpoint_id": "large", "state": {"note": LARGE}}
        assert one.post(PATH, json=new).status_code == 200
        assert one.get(f"{PATH}/large").json() == {"state": new["state"]}
        assert children_of(service.process.pid) == set()


def test_answers_of_a_process_are_those_of_the_service(client: httpx.Client) -> None:
    """Also compares errors, headers and ids."""
    for answer in (
        client.get("/search", params={"q": "tea", "limit": 1_000_000}, headers={"x-request-id": "mine"}),
        client.get("/inspect/thread", params={"thread": "none"}, headers={"accept": "text/html"}),
        client.put("/memories/item", content=b'{"no": "' + LARGE.encode() + b'"}', headers=JSON),
    ):
        assert answer.status_code in {400, 404}
        assert answer.headers["x-request-id"]
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    answer = client.get("/search", params={"q": "tea"}, headers={"x-request-id": "mine"})
    assert answer.headers["x-request-id"] == "mine"


JSON = {"content-type": "application/json"}


def test_a_process_that_is_killed_fails_its_request_only(
    service: Service, client: httpx.Client, shared_config: MySQLConfig
) -> None:
    path = "/threads/killed/checkpoints"
    assert client.post(path, json={"checkpoint_id": "first", "state": {"note": "x"}}).status_code == 200
    new = {"checkpoint_id": "second", "state": {"note": LARGE}}
    with connect(shared_config, shared_config.database, autocommit=False) as locking, ThreadPoolExecutor(1) as pool:
        with locking.cursor() as cursor:
            cursor.execute("SELECT * FROM locus_threads FOR UPDATE")
        saving = pool.submit(client.post, path, json=new)
        until(lambda: request_processes(service), "a process")
        until(lambda: statements(shared_config, "locus"), "its statement")
        for pid in request_processes(service):
            os.kill(pid, signal.SIGKILL)
        answer = saving.result(PATIENCE_S)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "process_died")
        assert answer.headers["retry-after"]
        assert client.get(f"{path}/first").status_code == 200
        locking.rollback()
    until(lambda: client.post(path, json=new).status_code == 200, "the save, repeated")
    assert client.get(f"{path}/second").json() == {"state": new["state"]}
    # The death of an idle process affects no request.
    for pid in (killed := request_processes(service)):
        os.kill(pid, signal.SIGKILL)
    # A zombie may have threads that still hold its socket; a reaped process has none.
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in killed), "the end of the process")
    last = client.get(f"{path}/second")
    assert last.status_code == 200, last.text
    assert "died" in service.log


def statements(config: MySQLConfig, words: str) -> list[Any]:
    """Return the running statements in the configured schema."""
    with connect(config, config.database) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT info FROM performance_schema.processlist WHERE db = %s AND id <> CONNECTION_ID() AND info LIKE %s",
            (config.database, f"%{words}%"),
        )
        return list(cursor.fetchall())


@pytest.mark.parametrize("driver", ["mysql-connector", "asyncmy"] if FULL else ["asyncmy"])
def test_the_server_ends_a_statement_that_a_killed_process_left(make_config: MakeConfig, driver: str) -> None:
    config = make_config()
    dsn = f"{dsn_of(config)}?driver={driver}&select_timeout_s=2"
    path = "/metadata?key=a&value=1"
    with serving_at(dsn) as service, httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client:
        assert client.post(PATH, json={"checkpoint_id": "first", "state": {"note": "x"}}).status_code == 200
        assert client.get(path).status_code == 200
        with locked_tables(config), ThreadPoolExecutor(1) as pool:
            asking = pool.submit(client.get, path)
            until(lambda: statements(config, "SELECT"), "the statement")
            for pid in request_processes(service):
                os.kill(pid, signal.SIGKILL)
            assert asking.result(PATIENCE_S).json()["error"]["code"] == "process_died"
            died_at = time.monotonic()
            until(lambda: not statements(config, "SELECT"), "the end of what nobody waits for")
            assert time.monotonic() - died_at < Limits().request_s / 2
        assert client.get(path).status_code == 200


def test_the_service_bounds_its_selects_a_little_above_its_requests(
    client: httpx.Client, shared_config: MySQLConfig
) -> None:
    body = {"checkpoint_id": "first", "state": {"note": LARGE}}
    assert client.post("/threads/bounds/checkpoints", json=body).status_code == 200
    with connect(shared_config, shared_config.database) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT v.variable_value FROM performance_schema.variables_by_thread v"
            " JOIN performance_schema.threads t USING (thread_id) WHERE v.variable_name = 'max_execution_time'"
            " AND t.processlist_db = %s AND t.processlist_id <> CONNECTION_ID()",
            (shared_config.database,),
        )
        ((limit_ms,),) = cursor.fetchall()
    assert Limits().request_s < int(limit_ms) / 1000 <= Limits().request_s + 10


@contextmanager
def locked_tables(config: MySQLConfig) -> Iterator[None]:
    """Lock all tables of a schema, so that every read of them waits."""
    with connect(config, config.database, autocommit=False) as locking, locking.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        cursor.execute("LOCK TABLES " + ", ".join(f"{name} WRITE" for (name,) in cursor.fetchall()))
        yield
        cursor.execute("UNLOCK TABLES")


@pytest.mark.parametrize("where", ["apart", "here"])
def test_a_statement_whose_client_has_left_ends(make_config: MakeConfig, where: str) -> None:
    """The read waits for a table lock in this test, in place of a search that takes long."""
    path = b"/metadata?key=a&value=1" if where == "apart" else b"/threads/left/history"
    body, config = {"checkpoint_id": "first", "state": {"note": "x"}}, make_config()
    dsn = f"{dsn_of(config)}?driver=asyncmy&select_timeout_s=2"
    with serving_at(dsn) as service, httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client:
        assert client.post("/threads/left/checkpoints", json=body).status_code == 200
        assert client.get(path.decode()).status_code == 200
        with locked_tables(config):
            leaving = [RawClient(service.url) for _ in range(2)]
            for one in leaving:
                one.send(b"GET %b HTTP/1.1\r\nHost: HOST\r\n\r\n" % path)
            until(lambda: statements(config, "SELECT"), "the statement")
            for one in leaving:
                one.close()
            left_at = time.monotonic()
            until(lambda: not statements(config, "SELECT"), "the end of what nobody waits for")
            assert time.monotonic() - left_at < Limits().request_s / 2, "else it may have ended by its time"
        assert client.get(path.decode()).status_code == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_asked_to_stop_it_ends_with_its_processes_whatever_they_do(
    dsn: str, make_config: MakeConfig, workers: str
) -> None:
    with serving_at(dsn, "--workers", workers) as service:
        with httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client:
            assert client.post(PATH, json={"checkpoint_id": "first", "state": {"note": LARGE}}).status_code == 200
        pids = {service.process.pid}
        while (more := {child for pid in pids for child in children_of(pid)}) - pids:
            pids |= more
        assert len(pids) >= (3 if workers == "1" else 6)
        assert service.stop() == 0
        until(lambda: not any(map(alive, pids)), "the end of all processes")
        assert not statements(make_config(), "SELECT")
