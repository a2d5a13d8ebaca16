"""``python -m examples [CHAPTER]``: runs a chapter of the demo on a given server, or on a private one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import textwrap
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ci.local_server import LocalServer, find_mysqld
from locus_mysql.cli.arguments import (
    FAILED,
    OK,
    WRONG,
    Parser,
    WrongArgument,
    add_connection,
    need_langgraph,
    notify,
    options_of,
)
from locus_mysql.config import MySQLConfig
from locus_mysql.errors import LocusMySQLError
from locus_mysql.integrations.locus_sdk import need_locus
from locus_mysql.signals import StopRequested, stop_signals_raise

from .chapters import CHAPTERS

T = TypeVar("T")

#: Raises an error that names the extra if it is not installed.
NEEDS: Mapping[str, Callable[[str], None]] = {
    "locus": need_locus,
    "langgraph": need_langgraph,
    "claude-agent-sdk": lambda _: None,  # the import of the chapter raises that error
    "openai-agents": lambda _: None,  # the same
    "pydantic-ai": lambda _: None,  # the same
    "adk": lambda _: None,  # the same
    "strands": lambda _: None,  # the same
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        The exit code: 0 if every check held, 1 if not, 2 for wrong arguments.
    """
    arguments = _parser().parse_args(argv)
    if arguments.only_list:
        for name, chapter in CHAPTERS.items():
            print(f"{name:12}{chapter.summary}")
        return OK
    try:
        with stop_signals_raise():
            return _run(arguments)
    except StopRequested as stop:
        return 128 + stop.signum
    except LocusMySQLError as error:
        notify(f"demo: {error}")
        return WRONG if isinstance(error, WrongArgument) else FAILED


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="ci/demo", description="Show what locus-mysql does, with real agents.", allow_abbrev=False)
    parser.add_argument("chapter", nargs="?", type=_chapter, metavar="NAME", help="the chapter to show (agents)")
    parser.add_argument("--list", action="store_true", dest="only_list", help="name the chapters, and show none")
    add_connection(parser, "; without any, a private server is started")
    return parser


def _run(arguments: argparse.Namespace) -> int:
    chosen = arguments.chapter or next(iter(CHAPTERS))
    NEEDS[CHAPTERS[chosen].extra]("The demo" if arguments.chapter is None else f"The chapter {chosen}")
    show = CHAPTERS[chosen].load()
    with _group(arguments) if CHAPTERS[chosen].group else _server(arguments) as config:
        held = asyncio.run(_until_stopped(show(config, sys.stdout)))
    if arguments.chapter is None:
        others = ", ".join(name for name in CHAPTERS if name != chosen)
        print(textwrap.fill(f"Other chapters, by `ci/demo NAME`: {others}.", width=100))
    return OK if held else FAILED


def _chapter(name: str) -> str:
    """Check an argument that names a chapter."""
    if name not in CHAPTERS:
        raise argparse.ArgumentTypeError(f"there is no chapter {name!r}; there are {', '.join(CHAPTERS)}")
    return name


async def _until_stopped(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of the work, and cancel it at a signal to stop.

    An exception raised by a signal handler could interrupt any statement, which would treat it as an error.

    Raises:
        StopRequested: The work was cancelled, and has cleaned up.
    """
    task = asyncio.ensure_future(work)
    received: list[int] = []

    def stop(signum: int) -> None:
        if not received:  # a second signal does not interrupt the clean-up
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
def _server(arguments: argparse.Namespace) -> Iterator[MySQLConfig]:
    """Yield the configured server, or a private one."""
    options = options_of(arguments)
    if arguments.dsn or os.environ.get("LOCUS_MYSQL_DSN"):
        yield MySQLConfig.from_env(**options)
        return
    program = find_mysqld()
    print("Starting a private MySQL server, stopped at the end …", file=sys.stderr, flush=True)
    with LocalServer(None, mysqld=program) as private:
        yield MySQLConfig(dsn=private.dsn, **options)


@contextlib.contextmanager
def _group(arguments: argparse.Namespace) -> Iterator[MySQLConfig]:
    """Yield the members of a private group.

    Raises:
        WrongArgument: A server was named, which this chapter would kill.
    """
    from ci.replication_group import ReplicationGroup  # needs PyMySQL

    options = options_of(arguments)
    if arguments.dsn or os.environ.get("LOCUS_MYSQL_DSN"):
        raise WrongArgument("This chapter kills a server, so it starts its own: leave out --dsn and LOCUS_MYSQL_DSN.")
    program = find_mysqld()
    print("Starting a private group of three MySQL servers, stopped at the end …", file=sys.stderr, flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="locus-mysql-demo-") as folder,
        ReplicationGroup(Path(folder), program, Path(folder) / "made-before") as group,
    ):
        yield MySQLConfig(dsn=group.dsn, **options)


if __name__ == "__main__":
    sys.exit(main())
