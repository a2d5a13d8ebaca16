"""The environment of the figures: the date, the machine, the versions, the servers' settings."""

from __future__ import annotations

import asyncio
import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from .database import server_facts
from .latency import garbage_collector
from .peers import Peers, peer_facts

LIBRARIES = (
    "locus-mysql",
    "locus-sdk",
    "pydantic",
    "mysql-connector-python",
    "aiomysql",
    "PyMySQL",
    "asyncmy",
    "asyncpg",
    "redis",
)


def environment(dsn: str, found: Peers) -> dict[str, str]:
    """Return each fact by its name."""
    system = f"{platform.system()} {platform.release()}"
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load before it": f"{load} processes on the average of 1, 5 and 15 minutes",
        "machine": f"{processor()}, {os.cpu_count()} cores, {memory_gb():.0f} GB, {system}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}",
        "garbage collector": garbage_collector(),
        "libraries": ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
        **server_facts(dsn),
        **asyncio.run(peer_facts(found)),
    }


def processor() -> str:
    """Return the processor's name, as Linux reports it."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)$", file.read_text(), re.MULTILINE) if file.exists() else None
    return found[1] if found else platform.processor() or "unknown processor"


def memory_gb() -> float:
    """Return the size of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
