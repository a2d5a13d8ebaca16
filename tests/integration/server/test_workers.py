"""``serve --workers``: processes at one port, of which any may die, and none outlives the one that began them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from locus_mysql.commands import main as cli
from locus_mysql.server.tokens import new_token

from ..conftest import MakeConfig
from ..test_cli import dsn_of
from .raw import RawClient
from .test_serve import PATIENCE_S, Service, dsn, refuses, serving_at, until

pytestmark = pytest.mark.kept_tables("agents")

__all__ = ["dsn"]


def workers_of(service: Service) -> set[int]:
    """The processes that serve; those that have ended are not among them."""
    pid = service.process.pid
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return {one for one in found if alive(one)}


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def answered_by(url: str) -> None:
    with httpx.Client(timeout=PATIENCE_S) as client:
        assert client.get(f"{url}/health").status_code == 200


def test_another_worker_takes_the_place_of_one_that_dies(dsn: str) -> None:
    with serving_at(dsn, "--workers", "2") as service:
        assert service.told.count("Serving at") == 1
        first = workers_of(service)
        assert len(first) == 2
        answered_by(service.url)
        killed, asked = sorted(first)
        os.kill(killed, signal.SIGKILL)
        os.kill(asked, signal.SIGTERM)
        until(lambda: len(workers_of(service) - first) == 2, "workers in the place of those that ended")
        answered_by(service.url)
        until(lambda: f"Worker {killed} ended (signal 9)" in service.told, "what is logged of the one that was killed")
        until(lambda: f"Worker {asked} ended (exit code 0)" in service.told, "what is logged of the one that was asked")
        assert service.stop() == 0
        assert service.told.count("Serving at") == 1


def test_clients_are_shared_out_among_all(dsn: str) -> None:
    """Of 64 clients, each of two workers has some: fewer than 8 come about once in 10^10 times."""
    with serving_at(dsn, "--workers", "2") as service, contextlib.ExitStack() as clients:
        before = {pid: sockets_of(pid) for pid in workers_of(service)}
        for _ in range(64):
            client = clients.enter_context(RawClient(service.url))
            assert client.request("GET", "/health").status == 200
        assert all(sockets_of(pid) - count >= 8 for pid, count in before.items())


def sockets_of(pid: int) -> int:
    return sum("socket" in str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir())


def test_another_service_at_the_port_is_told_and_not_joined(dsn: str) -> None:
    with serving_at(dsn, "--workers", "2") as service:
        port = service.url.rpartition(":")[2]
        command = [sys.executable, "-m", "locus_mysql", "serve", "--dsn", dsn, "--port", port, "--workers", "2"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert ended.returncode == 1
        assert "Stop what listens there" in ended.stderr
        assert service.stop() == 0


def test_a_second_interrupt_stops_at_once(dsn: str) -> None:
    with serving_at(dsn, "--workers", "2") as service:
        workers = workers_of(service)
        os.kill(service.process.pid, signal.SIGINT)
        until(lambda: refuses(service.url), "a closed port")
        os.kill(service.process.pid, signal.SIGINT)
        assert service.process.wait(PATIENCE_S) == 0
        assert not any(map(alive, workers))


def test_no_worker_outlives_who_began_it(dsn: str) -> None:
    with serving_at(dsn, "--workers", "3") as service:
        workers = workers_of(service)
        assert len(workers) == 3
        service.process.kill()
        until(lambda: not any(map(alive, workers)), "the end of all workers")
        assert refuses(service.url)


def test_a_sign_in_at_one_holds_for_all(dsn: str, tmp_path: Path) -> None:
    made = new_token("somebody", "default", "write")
    (tokens := tmp_path / "tokens.toml").write_text(made.entry)
    tokens.chmod(0o600)
    with serving_at(dsn, "--workers", "3", "--tokens", str(tokens)) as service:
        with httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client:
            answer = client.post("/login", data={"token": made.secret}, headers={"Origin": service.url})
            assert answer.status_code == 303
            cookies = dict(client.cookies)
        for _ in range(12):  # each on a connection of its own, at whichever worker takes it
            assert httpx.get(f"{service.url}/", cookies=cookies, timeout=PATIENCE_S).status_code == 200


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
