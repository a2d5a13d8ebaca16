"""A forked child resets objects that have locks or connections."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import os, signal
from locus_mysql.families.checkpoints.leases import Turns
from locus_mysql.families.checkpoints.thread_cache import ThreadCache
from locus_mysql.config import MySQLConfig
from locus_mysql.runtime.lru_cache import LRUCache
from locus_mysql.runtime.spans import MAKING
from locus_mysql.engine.execution import AsyncEngine, SyncEngine
from locus_mysql.engine.counters import Counters

config = MySQLConfig(host="a", driver="pymysql")
what = {
    Counters(): "lock",
    ThreadCache(1): "_lock",
    Turns(): "_guard",
    AsyncEngine(config): "_lock",
    SyncEngine(config): "_pool",
    LRUCache(1): "_lock",
    MAKING: "lock",
}
before = [getattr(one, name) for one, name in what.items()]
child = os.fork()
if child == 0:
    signal.alarm(60)
    kept = [type(one).__name__ for (one, name), old in zip(what.items(), before) if getattr(one, name) is old]
    print(*kept, end="", flush=True)
    os._exit(len(kept))
_, status = os.waitpid(child, 0)
kept_here = all(getattr(one, name) is old for (one, name), old in zip(what.items(), before))
raise SystemExit(os.waitstatus_to_exitcode(status) or not kept_here)
"""


def test_a_child_has_locks_and_pools_of_its_own_and_the_parent_keeps_its() -> None:
    ran = subprocess.run([sys.executable, "-c", CODE], check=False, timeout=180, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("", 0), ran.stderr
