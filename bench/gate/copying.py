"""Copying: round trips and bytes of a thread that is copied in, already exists, or is copied to another tenant.

Averages of ten threads of ten checkpoints each, including the queries that a copy sends once and the indexing of words.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory.backends.file import FileCheckpointer

from locus_mysql import MySQLCheckpointer, MySQLConfig, copy_threads

from ..database import fresh_database
from ..wire import CountingProxy

THREADS, CHECKPOINTS = 10, 10


def figures(dsn: str) -> dict[str, float]:
    """Return round trips and bytes per thread, by case."""
    with fresh_database(dsn) as own, CountingProxy(own) as proxy, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_figures(proxy, Path(folder)))


async def _figures(proxy: CountingProxy, folder: Path) -> dict[str, float]:
    files = await _filled(folder)
    config = MySQLConfig(dsn=proxy.dsn, ssl_mode="DISABLED", pool_size=1)
    found: dict[str, float] = {}
    async with (
        MySQLCheckpointer(config) as target,
        MySQLCheckpointer(config.for_store(tenant="other")) as other,
    ):
        for checkpointer in (target, other):
            await checkpointer.load("nothing")
        for name, source, to in (
            ("copied from files", files, target),
            ("there already", files, target),
            ("copied to another tenant", target, other),
        ):
            with proxy.counting() as count:
                report = await copy_threads(source, to, at_once=1)
            assert report.complete, report
            found[f"round trips, {name}"] = count.round_trips / THREADS
            found[f"bytes, {name}"] = (count.bytes_sent + count.bytes_received) / THREADS
    return found


async def _filled(folder: Path) -> FileCheckpointer:
    """Write files with some threads."""
    files = FileCheckpointer(folder)
    for number in range(THREADS):
        state = AgentState(run_id="run")
        for index in range(CHECKPOINTS):
            state = state.with_messages([Message.user(f"question {index}"), Message.assistant("an answer " * 40)])
            await files.save(state, f"t{number:02}", f"c{index}", {"place": index})
    return files
