"""Quotas of tenants: requests over a quota wait or are refused, without effect on other tenants."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from locus_mysql.server.tokens import new_token

from ..conftest import MakeConfig
from ..connecting import connect
from .test_serve import PATH, PATIENCE_S, dsn, serving_at, until, waits_for_a_lock

pytestmark = pytest.mark.kept_tables("agents")

__all__ = ["dsn"]

#: More than the number of connections to the database.
MANY = 30


def test_a_tenant_whose_requests_wait_for_locks_leaves_connections_to_others(
    dsn: str, make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config()
    noisy, quiet = new_token("noisy", "noisy", "write"), new_token("quiet", "quiet", "write")
    (tokens := tmp_path / "tokens.toml").write_text(noisy.entry + quiet.entry)
    tokens.chmod(0o600)
    with (
        serving_at(dsn, "--tokens", str(tokens)) as service,
        httpx.Client(base_url=service.url, timeout=PATIENCE_S) as client,
        connect(config, config.database, autocommit=False) as locking,
        ThreadPoolExecutor(MANY) as pool,
    ):
        of_noisy, of_quiet = ({"Authorization": f"Bearer {one.secret}"} for one in (noisy, quiet))
        for headers in (of_noisy, of_quiet):
            assert client.post(PATH, json={"state": {"a": 1}}, headers=headers).status_code == 200
        with locking.cursor() as cursor:
            cursor.execute("SELECT * FROM locus_threads WHERE tenant = 'noisy' FOR UPDATE")
        saving = [pool.submit(client.post, PATH, json={"state": {"a": n}}, headers=of_noisy) for n in range(MANY)]
        until(lambda: waits_for_a_lock(config), "the wait for the lock")
        for _ in range(20):
            begin = time.monotonic()
            assert client.get(PATH, headers=of_quiet).status_code == 200
            assert client.post(PATH, json={"state": {"a": 2}}, headers=of_quiet).status_code == 200
            assert time.monotonic() - begin < 5, "a lock lasts for as long as this test wants"
        assert not any(one.done() for one in saving)
        locking.rollback()
        assert {one.result(PATIENCE_S).status_code for one in saving} == {200}


#: A service in which every list request runs for ever, as a bug of this package might.
STUCK = """
import os, sys
from dataclasses import fields
from locus_mysql.cli import main, serving
from locus_mysql.server import limits, running
from locus_mysql.server.api import threads
running.END_S = 1.0
def stuck(*_, **__):
    import os
    os.write(2, b"stuck\\n")
    while True:
        pass
threads.list_checkpoints.__code__ = stuck.__code__
short = {"body_s": 0.5, "request_s": 0.5}
limits.Limits.__init__.__defaults__ = tuple(short.get(one.name, one.default) for one in fields(limits.Limits))
if __name__ == "__main__":
    sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_asked_to_stop_it_ends_within_its_limit_whatever_runs(dsn: str, workers: str, tmp_path: Path) -> None:
    (program := tmp_path / "program.py").write_text(STUCK)
    command = [sys.executable, str(program), "serve", "--port", "0", "--workers", workers]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "LOCUS_MYSQL_DSN": dsn, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stderr is not None
    with process, process.stderr as stderr_lines, ThreadPoolExecutor(1) as pool:
        line = ""
        while "Serving at" not in line:
            line = stderr_lines.readline()
            assert line, "the service ended"
        url = line.split("Serving at ")[1].split("/ until")[0]
        asking = pool.submit(httpx.get, url + PATH, timeout=PATIENCE_S)
        while "stuck" not in line:
            line = stderr_lines.readline()
        process.terminate()
        process.wait(PATIENCE_S)
        assert asking.result(PATIENCE_S).status_code == 503
