"""The command line, ``python -m locus_mysql`` or ``locus-mysql``: what an administrator and an operator need."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from .. import __version__
from ..errors import AuthenticationFailed, LocusMySQLError, Unavailable
from ..signals import StopRequested, stop_signals_raise
from .arguments import FAILED, WRONG, Parser, WrongArgument, tell
from .copying import add_copy, add_import_locus, copy, import_locus
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
from .thread_files import add_export, add_import, export_threads, import_threads

#: Each command: what runs it, its arguments, and what it does.
COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], int], Callable[[argparse.ArgumentParser], None], str]] = {
    "serve": (serve, add_serve, "run the HTTP service, and the inspector in the browser, until Ctrl-C"),
    "token": (token, add_token, "make a token for the HTTP service"),
    "schema": (schema, add_schema, "print the statements that make the tables, for a migration"),
    "grants": (grants, add_grants, "print the GRANT statements that an account needs"),
    "copy": (copy, add_copy, "copy threads from any Locus checkpointer to any other"),
    "import-locus": (import_locus, add_import_locus, "copy the checkpoints of Locus' built-in MySQL backend"),
    "import-langgraph": (import_langgraph, add_import_langgraph, "copy the checkpoints of langgraph-checkpoint-mysql"),
    "import-langgraph-store": (
        import_langgraph_store,
        add_import_langgraph,
        "copy the items of langgraph-checkpoint-mysql's store",
    ),
    "export": (export_threads, add_export, "write threads to a file of JSON lines"),
    "import": (import_threads, add_import, "write the threads of such a file into the tables"),
    "memory": (memory, add_memory, "export long-term memory to a file of JSON lines, or import one"),
    "vacuum": (vacuum, add_vacuum, "remove checkpoints older than some days, and expired items"),
    "threads": (threads, add_threads, "list the threads saved to last, with their age, checkpoints and size"),
    "show": (show, add_show, "show a conversation, as it is or as it was at a checkpoint or a time"),
    "history": (history, add_history, "list the checkpoints of a thread"),
    "diff": (diff, add_diff, "show what changed between two checkpoints of a thread"),
    "search": (search, add_search, "show where words were said"),
    "stats": (stats, add_stats, "show how much is kept, and the largest threads with how fast they grow"),
    "rm": (rm, add_rm, "delete a thread or a checkpoint, after asking"),
    "health": (health, add_health, "say whether the server answers, takes writes and has the tables"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        The exit code: 0 if all went well, 1 if not, 2 for wrong arguments; `diff` has codes of its own.
    """
    arguments = _parser().parse_args(argv)
    try:
        with stop_signals_raise():
            return int(arguments.command(arguments))
    except StopRequested as stop:
        return 128 + stop.signum
    except LocusMySQLError as error:
        tell(f"locus-mysql: {error}{_hint(error, arguments)}")
        return WRONG if isinstance(error, WrongArgument) else int(arguments.failed)


def _hint(error: LocusMySQLError, arguments: argparse.Namespace) -> str:
    """That no server was named, where the one of this machine does not answer, or does not let anybody in."""
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
