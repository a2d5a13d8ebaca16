"""What a process holds, and what its work costs, read from /proc (Linux)."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

#: Prefix of the names of the threads that belong to the test.
OWN_THREADS = "soak"


class Resources(NamedTuple):
    """What this process holds.

    Args:
        resident_mb: Resident memory, in megabytes.
        connections: Sessions at the server, without the one that counts them.
        descriptors: Open file descriptors.
        threads: Threads, without the test's own.
        tasks: Tasks of the event loop that are not done.
    """

    resident_mb: float
    connections: int
    descriptors: int
    threads: int
    tasks: int


def measure(connections: int) -> Resources:
    """Return what this process holds now, after a garbage collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    threads = [thread for thread in threading.enumerate() if not thread.name.startswith(OWN_THREADS)]
    descriptors = len(list(Path("/proc/self/fd").iterdir())) - 1  # without the listing's own
    resident_mb = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    return Resources(resident_mb, connections, descriptors, len(threads), len(asyncio.all_tasks()))


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
