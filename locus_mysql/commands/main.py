"""The command line, ``python -m locus_mysql`` or ``locus-mysql``: a demo, a server, and what an operator needs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Never, TypeVar

from ..checkpoints.store import CheckpointStore, StoreOperations
from ..config import MySQLConfig
from ..development.local_server import LocalServer, StopRequested, find_mysqld, serve, stop_signals_raise
from ..dialect import Dialect
from ..dialect.checkpoints.tables import INFIXES
from ..dialect.versions import VersionsDialect
from ..engine.asynchronous import AsyncEngine
from ..engine.bootstrap import has_tables, no_tables
from ..errors import LocusMySQLError, SetupError

OK, FAILED = 0, 1

KINDS = tuple(INFIXES)

T = TypeVar("T")

_DSN_HELP = (
    "mysql://user:password@host:port/database?option=value. Better in the environment as LOCUS_MYSQL_DSN, where "
    "other users of the machine cannot read the password"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        The exit code: 0 if all went well, 1 if not. Wrong arguments end the process with 2.
    """
    arguments = _parser().parse_args(argv)
    try:
        with stop_signals_raise():
            return int(arguments.command(arguments))
    except StopRequested as stop:
        return 128 + stop.signum
    except LocusMySQLError as error:
        print(f"locus-mysql: {error}", file=sys.stderr)
        return FAILED


def demo(arguments: argparse.Namespace) -> int:
    """Tell the story of `locus_mysql.development.demo` on the given server or a private one."""
    _need_locus("The demo")
    from ..development.demo.story import tell

    with _demo_server(arguments) as config:
        held = asyncio.run(_until_stopped(tell(config, sys.stdout)))
    return OK if held else FAILED


def server(arguments: argparse.Namespace) -> int:
    """Run a private server until Ctrl-C."""
    return serve(arguments.data_dir, arguments.port)


def schema(arguments: argparse.Namespace) -> int:
    """Print the statements that make the tables; connects to nothing."""
    config = MySQLConfig.from_env(**_options(arguments))
    for kind in KINDS:
        dialect = Dialect(config.table_prefix, kind, search=config.search, search_parser=config.search_parser)
        for statement in dialect.schema.create():
            print(f"{statement.sql};")
    for statement in VersionsDialect(config.table_prefix).schema.create():
        print(f"{statement.sql};")
    return OK


def import_locus(arguments: argparse.Namespace) -> int:
    """Copy the threads and checkpoints of Locus' built-in MySQL backend."""
    _need_locus("The import")
    from ..integrations.locus.importing import LocusImport

    target = MySQLConfig.from_env(**_options(arguments))
    source = MySQLConfig(dsn=arguments.source_dsn, driver=target.driver) if arguments.source_dsn else target

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    copying = LocusImport(source, target, table=arguments.table, dry_run=arguments.dry_run, tell=tell)
    summary = asyncio.run(copying.run())
    print(summary)
    return OK if summary.complete else FAILED


def import_langgraph(arguments: argparse.Namespace) -> int:
    """Copy the checkpoints of the package langgraph-checkpoint-mysql."""
    from ..integrations.langgraph.importing import LangGraphImport

    target = MySQLConfig.from_env(**_options(arguments))
    source = MySQLConfig(dsn=arguments.source_dsn, driver=target.driver) if arguments.source_dsn else target

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    summary = asyncio.run(LangGraphImport(source, target, dry_run=arguments.dry_run, tell=tell).run())
    print(summary)
    return OK if summary.complete else FAILED


def vacuum(arguments: argparse.Namespace) -> int:
    """Remove old checkpoints."""
    config = MySQLConfig.from_env(**_options(arguments)).model_copy(update={"ddl_mode": "validate"})

    async def run() -> int:
        removed = 0
        for store in await _stores_there(config):
            engine = AsyncEngine(config, store.checkpoints.sql)
            try:
                removed += await engine.run(store.vacuum(arguments.older_than_days))
            finally:
                await engine.close()
        return removed

    removed = asyncio.run(run())
    print(f"Removed {removed} checkpoint{'' if removed == 1 else 's'}.")
    return OK


async def _stores_there(config: MySQLConfig) -> list[StoreOperations]:
    """The kinds of states whose tables are there, as stores of plain dicts.

    Raises:
        SchemaMismatch: There are none.
    """
    stores = [StoreOperations(config, kind) for kind in KINDS]
    engine = AsyncEngine(config.model_copy(update={"ddl_mode": "off"}), stores[0].checkpoints.sql)
    try:
        there = [store for store in stores if await engine.run(has_tables(store.checkpoints.sql))]
    finally:
        await engine.close()
    if not there:
        raise no_tables(config, list(stores[0].checkpoints.sql.schema.names.values()))
    return there


def health(arguments: argparse.Namespace) -> int:
    """Say whether the server answers, takes writes and has the tables; changes nothing."""
    config = MySQLConfig.from_env(**_options(arguments)).model_copy(update={"ddl_mode": "validate"})

    async def run() -> int:
        bare = config.model_copy(update={"ddl_mode": "off"})
        async with CheckpointStore(bare) as store:
            found = await store.health_check()
            began = time.monotonic()
            await store.health_check()
            answer_ms = (time.monotonic() - began) * 1000
        where = ", ".join(map(str, config.endpoints))
        print(f"server   MySQL {found['server_version']} at {where}, through {config.driver}")
        print(f"answers  in {answer_ms:.1f} ms")
        print(f"writes   {'refused: the server is read-only' if found['read_only'] else 'accepted'}")
        there = await _stores_there(config)
        print(f"tables   in database {config.database}, prefix {config.table_prefix!r}")
        for seen in there:
            engine = AsyncEngine(config, seen.checkpoints.sql)
            try:
                threads = await engine.run(seen.count())
            finally:
                await engine.close()
            print(f"threads  {threads} of tenant {config.tenant!r} ({seen.kind})")
        return FAILED if found["read_only"] else OK

    return asyncio.run(run())


class _Parser(argparse.ArgumentParser):
    """Repeats no password when it complains about an argument."""

    def error(self, message: str) -> Never:
        super().error(re.sub(r"//.*@", "//***@", message, flags=re.DOTALL))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="locus-mysql",
        description="The memory of AI agents in MySQL.",
        epilog="Options not given are read from the environment: LOCUS_MYSQL_DSN, LOCUS_MYSQL_PASSWORD, …",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(run: Any, name: str, summary: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        added.allow_abbrev = False
        added.set_defaults(command=run)
        return added

    to_demo = command(demo, "demo", "show what it does, with real agents, in 30 seconds")
    _add_connection(to_demo, "; without any, a private server is started")

    to_serve = command(server, "server", "run a private MySQL server for development until Ctrl-C")
    to_serve.add_argument("--data-dir", type=Path, metavar="FOLDER", help="where it keeps its data (.server/data)")
    to_serve.add_argument("--port", type=int, help="TCP port on 127.0.0.1 (a free one)")

    to_print = command(schema, "schema", "print the statements that make the tables, for a migration")
    _add_prefix(to_print)
    to_print.add_argument("--no-search", dest="search", action="store_false", default=None, help="no full-text index")
    to_print.add_argument(
        "--parser", dest="search_parser", choices=("default", "ngram"), help="ngram for Chinese, Japanese and Korean"
    )

    to_import = command(import_locus, "import-locus", "copy the checkpoints of Locus' built-in MySQL backend")
    _add_connection(to_import, "; where to copy to")
    to_import.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    to_import.add_argument("--table", default="checkpoints", help="the built-in backend's table (checkpoints)")
    _add_tenant(to_import)
    _add_prefix(to_import)
    to_import.add_argument("--dry-run", action="store_true", help="only say what would be copied")

    to_move = command(import_langgraph, "import-langgraph", "copy the checkpoints of langgraph-checkpoint-mysql")
    _add_connection(to_move, "; where to copy to")
    to_move.add_argument("--source-dsn", metavar="DSN", help="where to copy from (the same database)")
    _add_tenant(to_move)
    _add_prefix(to_move)
    to_move.add_argument("--dry-run", action="store_true", help="only say what would be copied")

    to_clean = command(vacuum, "vacuum", "remove checkpoints older than some days, never a live thread's newest")
    to_clean.add_argument("--older-than-days", type=float, required=True, metavar="DAYS")
    _add_connection(to_clean)
    _add_tenant(to_clean)
    _add_prefix(to_clean)

    to_ask = command(health, "health", "say whether the server answers, takes writes and has the tables")
    _add_connection(to_ask)
    _add_tenant(to_ask)
    _add_prefix(to_ask)
    return parser


def _add_connection(parser: argparse.ArgumentParser, purpose: str = "") -> None:
    parser.add_argument("--dsn", help=f"{_DSN_HELP}{purpose}")
    parser.add_argument("--driver", metavar="NAME", help="mysql-connector, aiomysql, pymysql or asyncmy")


def _add_tenant(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tenant", help="whose checkpoints (default)")


def _add_prefix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prefix", dest="table_prefix", help="put before the names of the tables (locus_)")


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `MySQLConfig` that were given as arguments."""
    names = ("dsn", "driver", "tenant", "table_prefix", "search", "search_parser")
    given = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


async def _until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """What the work returns. A signal to stop cancels it; raised at any place, it might be taken for an error there.

    Raises:
        StopRequested: It was cancelled, and has cleaned up.
    """
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(signum: int) -> None:
        if not received:  # nothing disturbs the clean-up
            received.append(signum)
            task.cancel()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(one, stop, one)
    try:
        return await task
    except asyncio.CancelledError:
        if received:
            raise StopRequested(received[0]) from None
        raise


@contextlib.contextmanager
def _demo_server(arguments: argparse.Namespace) -> Iterator[MySQLConfig]:
    """The server that is configured, or else a private one."""
    options = _options(arguments)
    if arguments.dsn or os.environ.get("LOCUS_MYSQL_DSN"):
        yield MySQLConfig.from_env(**options)
        return
    program = find_mysqld()
    print("Starting a private MySQL server, stopped at the end …", file=sys.stderr, flush=True)
    with LocalServer(None, mysqld=program) as private:
        yield MySQLConfig(dsn=private.dsn, **options)


def _need_locus(what: str) -> None:
    if find_spec("locus") is None:
        raise SetupError(f"{what} needs the Locus SDK, which is not installed. Run pip install 'locus-mysql[locus]'.")
