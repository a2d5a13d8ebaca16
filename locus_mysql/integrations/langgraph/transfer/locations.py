"""LangGraph's savers by name: ``langgraph-postgres://…``, ``langgraph-sqlite:PATH`` and this package's tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....config import MySQLConfig
from ....errors import SetupError, UsageError
from ....runtime.transfer import TransferReport
from ....transfer.engine import Advance, run_blocking, transfer
from ..synchronous import MySQLSaver
from .savers import BlockingSaver, Saver, SaverThreads, SaverWriter

POSTGRES, SQLITE = "langgraph-postgres:", "langgraph-sqlite:"


def is_saver(name: str) -> bool:
    """Return whether a name is that of one of LangGraph's savers."""
    return name.startswith((POSTGRES, SQLITE))


def copy_savers(
    source: Saver,
    target: Saver,
    report: TransferReport,
    *,
    threads: Sequence[str] | None = None,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Copy threads from a saver to another, blocking; see `copy_checkpoints`.

    Args:
        source: The source.
        target: The target.
        report: Filled during the copy. If its ``dry_run`` is true, checkpoints are only counted.
        threads: The threads to copy; None for all.
        advance: Called after each thread.
    """
    reading, writing = BlockingSaver(source), BlockingSaver(target)
    units = SaverThreads(reading, threads, report.notify)
    return run_blocking(transfer(units, SaverWriter(reading, writing), report, advance=advance))


@contextmanager
def open_saver(name: str, config: MySQLConfig | None, *, writes: bool) -> Iterator[Saver]:
    """Open a saver.

    Args:
        name: Its name.
        config: The options, for this package's tables.
        writes: Whether it is written to; its tables are then created. Otherwise it is only read.

    Raises:
        SetupError: The package of the saver is not installed.
        UsageError: There is no such file.
    """
    if name.startswith(POSTGRES):
        with _postgres(name, writes=writes) as opened:
            yield opened
    elif name.startswith(SQLITE):
        with _sqlite(name.removeprefix(SQLITE), writes=writes) as opened:
            yield opened
    else:
        assert config is not None  # noqa: S101 - the caller has one for a name that is no saver's
        with MySQLSaver(config) as own:
            yield own


@contextmanager
def _postgres(name: str, *, writes: bool) -> Iterator[Saver]:
    try:
        from langgraph.checkpoint.postgres import PostgresSaver
    except ImportError:
        raise _missing("langgraph-checkpoint-postgres 'psycopg[binary]'", name) from None
    with PostgresSaver.from_conn_string(f"postgresql:{name.removeprefix(POSTGRES)}") as saver:
        if writes:
            saver.setup()
        yield saver


@contextmanager
def _sqlite(path: str, *, writes: bool) -> Iterator[Saver]:
    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError:
        raise _missing("langgraph-checkpoint-sqlite", SQLITE) from None
    if not writes and not Path(path).is_file():
        raise UsageError(f"There is no file {path!r:.200}.")
    address = f"{Path(path).absolute().as_uri()}?mode={'rwc' if writes else 'ro'}"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    try:
        saver: Any = SqliteSaver(connection)
        saver.is_setup = not writes  # else it would create its tables in a file that is only read
        yield saver
    finally:
        connection.close()


def _missing(packages: str, name: str) -> SetupError:
    return SetupError(f"{name.partition(':')[0]}: needs a package that is not installed: pip install {packages}")
