"""Sources of LangGraph's by name: ``langgraph-postgres://…``, ``langgraph-mysql://…`` and ``langgraph-sqlite:PATH``."""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from langgraph.store.base import BaseStore

from ....config import MySQLConfig
from ....errors import SetupError, UsageError
from ....transfer.engine import Advance, TransferReport, run_blocking, transfer
from ..checkpointers import MySQLSaver
from .savers import BlockingSaver, Saver, SaverThreads, SaverWriter


class Package(NamedTuple):
    """A package with a saver and a store.

    Args:
        module: The end of the names of its modules.
        saver: The class of its saver.
        store: The class of its store.
        scheme: The beginning of its DSNs.
        packages: What must be installed.
    """

    module: str
    saver: str
    store: str
    scheme: str
    packages: str


#: By the beginning of the name of a source.
PACKAGES = {
    "langgraph-postgres": Package(
        "postgres", "PostgresSaver", "PostgresStore", "postgresql:", "langgraph-checkpoint-postgres 'psycopg[binary]'"
    ),
    "langgraph-mysql": Package(
        "mysql.pymysql", "PyMySQLSaver", "PyMySQLStore", "mysql:", "'langgraph-checkpoint-mysql[pymysql]'"
    ),
    "langgraph-sqlite": Package("sqlite", "SqliteSaver", "SqliteStore", "", "langgraph-checkpoint-sqlite"),
}


def copy_savers(
    source: Saver,
    target: MySQLConfig,
    report: TransferReport,
    *,
    threads: Sequence[str] | None = None,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Copy threads from a saver into this package's tables, blocking; see `copy_checkpoints`.

    Args:
        source: The source.
        target: The server and tenant to copy to.
        report: Filled during the copy. If its ``dry_run`` is true, checkpoints are only counted.
        threads: The threads to copy; None for all.
        advance: Called after each thread.
    """
    reading = BlockingSaver(source)
    units = SaverThreads(reading, threads, report.notify)
    with MySQLSaver(target) as saver:
        return run_blocking(transfer(units, SaverWriter(reading, BlockingSaver(saver)), report, advance=advance))


@contextmanager
def open_saver(name: str) -> Iterator[Saver]:
    """Open the saver of another package, which is only read.

    Raises:
        SetupError: The package is not installed.
        UsageError: There is no such package, or no such file.
    """
    with _opened(name, "checkpoint", "saver") as saver:
        yield saver


@contextmanager
def open_store(name: str) -> Iterator[BaseStore]:
    """Open the store of another package, which is only read. Raises as `open_saver` does."""
    with _opened(name, "store", "store") as store:
        yield store


@contextmanager
def _opened(name: str, part: str, kind: str) -> Iterator[Any]:
    prefix, _, rest = name.partition(":")
    package = PACKAGES.get(prefix)
    if package is None:
        raise UsageError(f"{prefix!r:.50} is none of {', '.join(PACKAGES)}.")
    try:
        module = importlib.import_module(f"langgraph.{part}.{package.module}")
    except ImportError:
        raise SetupError(f"{prefix}: needs a package that is not installed: pip install {package.packages}") from None
    opens = getattr(module, getattr(package, kind))
    if package.scheme:
        with opens.from_conn_string(f"{package.scheme}{rest}") as opened:
            yield opened
        return
    if not Path(rest).is_file():
        raise UsageError(f"There is no file {rest!r:.200}.")
    address = f"{Path(rest).absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
    try:
        opened = opens(connection)
        opened.is_setup = True  # else it would create its tables in a file that is only read
        yield opened
    finally:
        connection.close()
