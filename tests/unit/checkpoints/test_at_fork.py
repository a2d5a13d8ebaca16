"""What a forked child remembers: nothing, under locks of its own."""

from __future__ import annotations

import subprocess
import sys


def test_a_child_forked_while_a_lock_is_held_begins_empty_and_does_not_wait() -> None:
    code = """
import os, signal
from locus_mysql.checkpoints.known import KnownThreads
from locus_mysql.checkpoints.recent import Recent

recent, known = Recent(100), KnownThreads()
recent.put("key", "value", 10)
with recent._lock, known._lock:
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that waits for a lock
        empty = recent.get("key") is None and known.newest("key") == ((), None)
        recent.put("key", "its own", 10)
        os._exit(0 if empty and recent.get("key") == "its own" else 1)
_, status = os.waitpid(child, 0)
raise SystemExit(os.waitstatus_to_exitcode(status) or recent.get("key") != "value")
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
