"""gevent and eventlet replace sockets, threads and locks: blocking stores then serve green threads."""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from ..drivers_under_test import SYNC_DRIVERS

#: What both libraries call alike: start a green thread, end it from outside, wait for it.
BEGIN = {
    "gevent": """
from gevent import monkey; monkey.patch_all()
import gevent
spawn, kill, wait = gevent.spawn, lambda one: one.kill(), lambda one: one.get()
""",
    "eventlet": """
import eventlet; eventlet.monkey_patch()
spawn, kill, wait = eventlet.spawn, lambda one: one.kill(), lambda one: one.wait()
""",
}
WORK = """
import sys, time
from locus_mysql import Database, SyncCheckpointStore
database = Database(sys.argv[1], driver=sys.argv[2], ssl_mode=sys.argv[3], pool_size=4)
store = SyncCheckpointStore(database)
store.save("thread", {"n": 0})
text = 100_000 * "x"  # more than a socket's buffers, so that green threads wait while they send

def work(name, rounds):
    for n in range(rounds):
        store.save(name, {"n": n, "text": text})
        assert store.load(name) == {"n": n, "text": text}

def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, database.stats()
        time.sleep(0.01)

ended = [spawn(work, f"ended-{i}", 1_000) for i in range(40)]
whole = [spawn(work, f"whole-{i}", 5) for i in range(20)]
wait_until(lambda: database.stats().round_trips >= 100)
for one in ended:
    kill(one)
for one in whole:
    wait(one)
wait_until(lambda: not database.stats().in_use)
work("after", 1)
"""


@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
@pytest.mark.parametrize("driver", SYNC_DRIVERS)
@pytest.mark.parametrize("library", BEGIN)
def test_stores_serve_green_threads_of_which_some_are_killed(
    library: str, driver: str, mode: str, server_dsn: str, database: str
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", BEGIN[library] + WORK]
    arguments = [urlsplit(server_dsn)._replace(path=f"/{database}").geturl(), driver, mode]
    outcome = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=180, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
