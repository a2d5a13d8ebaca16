"""``demo`` and ``server``: for development and for showing. Part of a checkout, not of a release."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ..config import MySQLConfig
from ..errors import SetupError
from ..integrations.sdk import need_locus
from ..signals import StopRequested
from .arguments import FAILED, OK, add_connection, need_langgraph, options_of

T = TypeVar("T")

#: What refuses to go on where an extra is not installed.
NEEDS: Mapping[str, Callable[[str], None]] = {"locus": need_locus, "langgraph": need_langgraph}


def add_demo(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    parser.add_argument("chapter", nargs="?", type=_chapter, metavar="NAME", help="the chapter to show (agents)")
    parser.add_argument("--list", action="store_true", dest="only_list", help="name the chapters, and show none")
    add_connection(parser, "; without any, a private server is started")


def add_server(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``server``."""
    parser.add_argument("--data-dir", type=Path, metavar="FOLDER", help="where it keeps its data (.server/data)")
    parser.add_argument("--port", type=int, help="TCP port on 127.0.0.1 (a free one)")


def demo(arguments: argparse.Namespace) -> int:
    """Show a chapter of `locus_mysql.development.demo` on the given server or a private one."""
    _need_checkout("demo")
    from ..development.demo.chapters import CHAPTERS

    if arguments.only_list:
        for name, chapter in CHAPTERS.items():
            print(f"{name:12}{chapter.summary}")
        return OK
    chosen = arguments.chapter or next(iter(CHAPTERS))
    NEEDS[CHAPTERS[chosen].extra]("The demo" if arguments.chapter is None else f"The chapter {chosen}")
    tell = CHAPTERS[chosen].load()
    with _demo_server(arguments) as config:
        held = asyncio.run(_until_stopped(tell(config, sys.stdout)))
    if arguments.chapter is None:
        others = ", ".join(name for name in CHAPTERS if name != chosen)
        print(f"Other chapters, shown by `demo NAME`: {others}.")
    return OK if held else FAILED


def server(arguments: argparse.Namespace) -> int:
    """Run a private server until Ctrl-C."""
    _need_checkout("server")
    from ..development.local_server import serve

    return serve(arguments.data_dir, arguments.port)


def _chapter(name: str) -> str:
    """The name of a chapter; in a release, which has none, any name."""
    if find_spec("locus_mysql.development") is not None:
        from ..development.demo.chapters import CHAPTERS

        if name not in CHAPTERS:
            raise argparse.ArgumentTypeError(f"there is no chapter {name!r}; there are {', '.join(CHAPTERS)}")
    return name


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
    options = options_of(arguments)
    if arguments.dsn or os.environ.get("LOCUS_MYSQL_DSN"):
        yield MySQLConfig.from_env(**options)
        return
    from ..development.local_server import LocalServer, find_mysqld

    program = find_mysqld()
    print("Starting a private MySQL server, stopped at the end …", file=sys.stderr, flush=True)
    with LocalServer(None, mysqld=program) as private:
        yield MySQLConfig(dsn=private.dsn, **options)


def _need_checkout(command: str) -> None:
    if find_spec("locus_mysql.development") is None:
        raise SetupError(
            f"`{command}` is for development and not part of a release. Run it from a checkout of the project: "
            f"ci/{'demo' if command == 'demo' else 'mysql'}."
        )
