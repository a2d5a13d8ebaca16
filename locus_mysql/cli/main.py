"""The command line, ``python -m locus_mysql`` or ``locus-mysql``, for administrators and operators."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from .. import __version__
from ..errors import AuthenticationFailed, LocusMySQLError, Unavailable
from ..signals import StopRequested, stop_signals_raise
from .arguments import FAILED, WRONG, Parser, WrongArgument, notify
from .copying import add_copy, add_import_locus, copy, import_locus
from .family_files import add_export, add_import, export_threads, import_file
from .imports import (
    add_import_langgraph,
    import_langgraph,
    import_langgraph_store,
)
from .inspection.diff import add_diff, diff
from .inspection.rm import add_rm, rm
from .inspection.search import add_search, search
from .inspection.show import add_history, add_show, history, show
from .inspection.stats import add_stats, stats
from .inspection.threads import add_threads, threads
from .maintenance import add_health, add_vacuum, health, vacuum
from .memory import add_memory, memory
from .serving import add_serve, add_token, serve, token
from .tables import add_grants, add_schema, grants, schema

#: Each command: the function that runs it, the function that adds its arguments, and its help.
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], int], Callable[[argparse.ArgumentParser], None], str]] = {
    "serve": (serve, add_serve, "run the HTTP service, and the inspector in the browser, until Ctrl-C"),
    "token": (token, add_token, "create a token for the HTTP service"),
    "schema": (schema, add_schema, "print the statements that create the tables, for a migration"),
    "grants": (grants, add_grants, "print the GRANT statements that an account needs"),
    "copy": (copy, add_copy, "copy threads from any Locus checkpointer to any other"),
    "import-locus": (import_locus, add_import_locus, "copy the checkpoints of Locus' built-in MySQL backend"),
    "import-langgraph": (import_langgraph, add_import_langgraph, "copy the checkpoints of langgraph-checkpoint-mysql"),
    "import-langgraph-store": (
        import_langgraph_store,
        add_import_langgraph,
        "copy the items of langgraph-checkpoint-mysql's store",
    ),
    "export": (export_threads, add_export, "export threads to a file of JSON lines"),
    "import": (import_file, add_import, "import threads from such a file"),
    "memory": (memory, add_memory, "export long-term memory to a file of JSON lines, or import one"),
    "vacuum": (
        vacuum,
        add_vacuum,
        "remove threads that were not saved for some days, old checkpoints of the others, and expired items",
    ),
    "threads": (threads, add_threads, "list the threads saved to last, with their age, checkpoints and size"),
    "show": (show, add_show, "show a conversation, now or at a checkpoint or a time"),
    "history": (history, add_history, "list the checkpoints of a thread"),
    "diff": (diff, add_diff, "show what changed between two checkpoints of a thread"),
    "search": (search, add_search, "find messages that contain words"),
    "stats": (stats, add_stats, "show how much is stored, and the largest threads with their growth"),
    "rm": (rm, add_rm, "delete a thread or a checkpoint, after confirmation"),
    "health": (health, add_health, "check whether the server responds, accepts writes and has the tables"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        The exit code: 0 for success, 1 for failure, 2 for wrong arguments; `diff` has its own codes.
    """
    arguments = _parser().parse_args(argv)
    try:
        with stop_signals_raise():
            return int(arguments.command(arguments))
    except StopRequested as stop:
        return 128 + stop.signum
    except LocusMySQLError as error:
        notify(f"locus-mysql: {error}{_hint(error, arguments)}")
        return WRONG if isinstance(error, WrongArgument) else int(arguments.failed)


def _hint(error: LocusMySQLError, arguments: argparse.Namespace) -> str:
    """Return advice to name a server, if none was named and the server of this machine cannot be used."""
    if not isinstance(error, (Unavailable, AuthenticationFailed)) or getattr(arguments, "dsn", "") is not None:
        return ""
    if any(os.environ.get(f"LOCUS_MYSQL_{name}") for name in ("DSN", "HOST", "HOSTS", "PORT", "UNIX_SOCKET")):
        return ""
    return " No server was named: set LOCUS_MYSQL_DSN to mysql://user:password@host/database."


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="locus-mysql",
        description="The memory of AI agents in MySQL.",
        epilog="Options not given are read from the environment: LOCUS_MYSQL_DSN, LOCUS_MYSQL_PASSWORD, …",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"locus-mysql {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (run, add_arguments, summary) in COMMANDS.items():
        added = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        added.allow_abbrev = False
        added.set_defaults(command=run, failed=FAILED)
        add_arguments(added)
    return parser
