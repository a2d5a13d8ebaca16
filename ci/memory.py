"""The folder in memory for a server's data, if it has room. Needs Python 3.9 or later, and nothing else installed."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
PROC = Path("/proc")
DATA_BYTES = 2 * 2**30  # an empty server takes 200 MB; the data of a test run stayed below 1 GB at any time
PROGRAMS_BYTES = 2 * 2**30  # for the server itself, a second one, and the processes of the tests


def folder_in_memory() -> Path | None:
    """Return this user's folder on a file system in memory, made if absent; None without such a system (macOS)."""
    try:
        mounts = [line.split() for line in (PROC / "mounts").read_text().splitlines()]
        if not any(where == str(SHARED_MEMORY) and kind == "tmpfs" for _, where, kind, *_ in mounts):
            return None
        folder = SHARED_MEMORY / f"locus-mysql-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        details = folder.lstat()
    except OSError:
        return None
    is_ours = stat.S_ISDIR(details.st_mode) and details.st_uid == os.getuid()  # every user may write to its parent
    return folder if is_ours else None


def has_room_for_a_server(folder: Path) -> bool:
    """Return whether a folder in memory has room for a server's data: its limit may be 64 MB, as in a container."""
    available = re.search(r"^MemAvailable: *(\d+) kB", (PROC / "meminfo").read_text(), re.MULTILINE)
    memory_bytes = int(available[1]) * 1024 if available else 0
    return shutil.disk_usage(folder).free >= DATA_BYTES and memory_bytes >= DATA_BYTES + PROGRAMS_BYTES
