"""The first asynchronous call of a process does not block its event loop with imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .conftest import MakeConfig
from .drivers_under_test import ASYNC_DRIVERS

PROGRAM = """
import asyncio, os, sys, threading

from locus_mysql import CheckpointStore

imported = []
sys.addaudithook(
    lambda event, details: event == "import"
    and threading.current_thread() is threading.main_thread()
    and imported.append(details[0])
)


async def main():
    async with CheckpointStore(driver=sys.argv[1], database=sys.argv[2], ssl_mode=sys.argv[3]) as store:
        imported.clear()
        await store.count()
        print(imported)


with asyncio.Runner() as runner:
    runner.run(asyncio.sleep(0))
    runner.run(main())
"""


@pytest.mark.parametrize("ssl_mode", ["PREFERRED", "DISABLED"])
@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_the_event_loop_imports_nothing(
    make_config: MakeConfig, server_dsn: str, database: str, driver: str, ssl_mode: str
) -> None:
    config = make_config(driver=driver, ssl_mode=ssl_mode)
    program = PROGRAM.replace("CheckpointStore(", f"CheckpointStore({server_dsn.rpartition('/')[0]!r}, ", 1)
    arguments = [driver, config.database, ssl_mode]
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=180)
    assert done.stderr == ""
    assert done.stdout.strip() == "[]"
