"""``serve --workers``: any worker may die, and none outlives the process that started them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from locus_mysql import MySQLConfig
from locus_mysql.cli import main as cli
from locus_mysql.server.tokens import NewToken, new_token

from ..commands import dsn_of
from ..conftest import MakeConfig
from .raw import RawClient
from .test_pages import Page
from .test_serve import PATIENCE_S, Service, dsn, refuses, serving_at, until

pytestmark = [pytest.mark.kept_tables("agents"), pytest.mark.xdist_group("workers")]

__all__ = ["dsn"]

#: A client with a new connection for each request, so that any worker may take it. Creating a client takes 20 ms.
ANEW = httpx.Client(timeout=PATIENCE_S, limits=httpx.Limits(max_keepalive_connections=0))

#: Checkpoints that each of six writers saves while workers are killed, and the seconds until a failed save is repeated.
SAVES, PAUSE_S = 10, 0.05


@dataclass
class Shared:
    """A service with three workers that several tests use.

    Attributes:
        service: The service.
        token: The token with which to sign in.
    """

    service: Service
    token: NewToken


@pytest.fixture(scope="module")
def shared(shared_config: MySQLConfig, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    made = new_token("somebody", "default", "write")
    (tokens := tmp_path_factory.mktemp("workers") / "tokens.toml").write_text(made.entry)
    tokens.chmod(0o600)
    with serving_at(dsn_of(shared_config), "--workers", "3", "--tokens", str(tokens)) as service:
        yield Shared(service, made)


def workers_of(service: Service) -> set[int]:
    """Return the running worker processes."""
    pid = service.process.pid
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return {one for one in found if alive(one) and b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def answered_by(url: str) -> None:
    assert ANEW.get(f"{url}/health").status_code == 200


def test_another_worker_takes_the_place_of_one_that_dies(dsn: str) -> None:
    with serving_at(dsn, "--workers", "2") as service:
        assert service.log.count("Serving at") == 1
        first = workers_of(service)
        assert len(first) == 2
        answered_by(service.url)
        killed, asked = sorted(first)
        os.kill(killed, signal.SIGKILL)
        os.kill(asked, signal.SIGTERM)
        until(lambda: len(workers_of(service) - first) == 2, "workers in the place of those that ended")
        until(lambda: not refuses(service.url), "a worker that accepts clients")
        answered_by(service.url)
        until(lambda: all(f"Child process [{one}] died" in service.log for one in first), "what is logged of both")
        assert service.stop() == 0
        assert service.log.count("Serving at") == 1


def test_clients_are_shared_out_among_all(shared: Shared) -> None:
    """Each of three workers serves some of 96 clients; one with fewer than 8 occurs once in 10^8 runs."""
    with contextlib.ExitStack() as clients:
        before = {pid: sockets_of(pid) for pid in workers_of(shared.service)}
        for _ in range(96):
            client = clients.enter_context(RawClient(shared.service.url))
            assert client.request("GET", "/health").status == 200
        assert all(sockets_of(pid) - count >= 8 for pid, count in before.items())


def sockets_of(pid: int) -> int:
    return sum("socket" in str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())


def test_another_service_at_the_port_is_reported_and_not_joined(shared: Shared, dsn: str) -> None:
    port = shared.service.url.rpartition(":")[2]
    command = [sys.executable, "-m", "locus_mysql", "serve", "--dsn", dsn, "--port", port, "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 1
    assert "Stop what listens there" in ended.stderr


def test_no_worker_outlives_its_parent_process(dsn: str) -> None:
    with serving_at(dsn, "--workers", "3") as service:
        workers = workers_of(service)
        assert len(workers) == 3
        service.process.kill()
        until(lambda: not any(map(alive, workers)), "the end of all workers")
        assert refuses(service.url)


def test_a_sign_in_at_one_holds_for_all(shared: Shared) -> None:
    url = shared.service.url
    with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
        answer = client.post("/login", data={"token": shared.token.secret}, headers={"Origin": url})
        assert answer.status_code == 303
        cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}
    for _ in range(12):  # each on a new connection, which any worker may accept
        assert ANEW.get(f"{url}/", headers=cookies).status_code == 200


def test_a_sign_out_at_one_holds_for_all(shared: Shared) -> None:
    service = shared.service
    anew = httpx.Limits(max_keepalive_connections=0)  # a new connection for each request
    with httpx.Client(base_url=service.url, timeout=PATIENCE_S, limits=anew) as client:
        client.post("/login", data={"token": shared.token.secret}, headers={"Origin": service.url})
        kept = {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}
        page = client.get("/", headers=kept)
        assert page.status_code == 200
        form = {"form_secret": Page(page.text).inputs()["form_secret"]}
        answer = client.post("/logout", data=form, headers={"Origin": service.url, **kept})
        assert answer.status_code == 303
        client.cookies.clear()
        assert [client.get("/", headers=kept).status_code for _ in range(24)] == [303] * 24
        worker = min(workers_of(service))
        os.kill(worker, signal.SIGKILL)
        until(lambda: len(workers_of(service) - {worker}) == 3, "a worker in the place of the one that was killed")
        assert [client.get("/", headers=kept).status_code for _ in range(24)] == [303] * 24


def test_a_database_that_cannot_be_used_ends_all(make_config: MakeConfig) -> None:
    wrong = dsn_of(make_config()).replace("@", "wrong@", 1)
    command = [sys.executable, "-m", "locus_mysql", "serve", "--dsn", wrong, "--port", "0", "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 1
    assert "Access denied" in ended.stderr
    assert "Serving at" not in ended.stderr


@pytest.mark.parametrize("count", ["0", "-1", "65", "many"])
def test_a_wrong_number_of_workers_is_refused(dsn: str, count: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = cli.main(["serve", "--dsn", dsn, "--port", "0", "--workers", count])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == (2 if count == "many" else 1)
    assert "--workers" in capsys.readouterr().err
