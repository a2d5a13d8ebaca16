"""The command line, ``python -m locus_mysql`` or ``locus-mysql``, for administrators and operators."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from .. import __version__
from ..errors import AuthenticationFailed, DriverMissing, LocusMySQLError, Unavailable
from ..signals import StopRequested, stop_signals_raise
from .arguments import FAILED, WRONG, Parser, WrongArgument, notify
from .pipes import PIPE_CLOSED, discard

#: The variable by which a shell asks argcomplete to complete a command line.
COMPLETES = "_ARGCOMPLETE"


class Command(NamedTuple):
    """A command. Its module is imported when the command is used, as each command needs other parts of the package.

    Args:
        module: A module of this folder.
        run: The name of the function that runs it.
        add_arguments: The name of the function that adds its arguments to a parser.
        summary: One line of help.
        group: The heading under which the help lists it; one of `GROUPS`.
    """

    module: str
    run: str
    add_arguments: str
    summary: str
    group: str


#: The headings of the help, in its order.
LOOK, MOVE, TABLES, RUN = "look at what is stored, and delete it", "move data", "tables", "run and maintain"
GROUPS = (LOOK, MOVE, TABLES, RUN)


COMMANDS = {
    "serve": Command(
        "serving",
        "serve",
        "add_serve",
        "run the HTTP service, and the inspector in the browser, until Ctrl-C",
        RUN,
    ),
    "token": Command(
        "serving",
        "token",
        "add_token",
        "create a token for the HTTP service",
        RUN,
    ),
    "schema": Command(
        "tables",
        "schema",
        "add_schema",
        "print the statements that create the tables, for a migration",
        TABLES,
    ),
    "grants": Command(
        "tables",
        "grants",
        "add_grants",
        "print the GRANT statements that an account needs",
        TABLES,
    ),
    "migrate": Command(
        "migrating",
        "migrate",
        "add_migrate",
        "upgrade the tables of an older version, or show what that would do",
        TABLES,
    ),
    "copy": Command(
        "copying",
        "copy",
        "add_copy",
        "copy threads from Locus' checkpointers or LangGraph's savers, or the records of any tables",
        MOVE,
    ),
    "export": Command(
        "family_files",
        "export_records",
        "add_export",
        "export the records of any tables to a file of JSON lines",
        MOVE,
    ),
    "import": Command(
        "family_files",
        "import_file",
        "add_import",
        "import such a file",
        MOVE,
    ),
    "vacuum": Command(
        "maintenance",
        "vacuum",
        "add_vacuum",
        "remove threads that were not saved for some days, old checkpoints of the others, and expired items",
        RUN,
    ),
    "reencrypt": Command(
        "reencryption",
        "reencrypt_rows",
        "add_reencrypt",
        "encrypt stored rows with the active key: after a rotation of keys, or for the first time",
        TABLES,
    ),
    "embed": Command(
        "embedding",
        "embed_items",
        "add_embed",
        "embed items of long-term memory that have no embedding of a store's model",
        TABLES,
    ),
    "threads": Command(
        "inspection.threads",
        "threads",
        "add_threads",
        "list the threads saved to last, with their age, checkpoints and size",
        LOOK,
    ),
    "show": Command(
        "inspection.show",
        "show",
        "add_show",
        "show a conversation, now or at a checkpoint or a time",
        LOOK,
    ),
    "history": Command(
        "inspection.show",
        "history",
        "add_history",
        "list the checkpoints of a thread",
        LOOK,
    ),
    "diff": Command(
        "inspection.diff",
        "diff",
        "add_diff",
        "show what changed between two checkpoints of a thread",
        LOOK,
    ),
    "search": Command(
        "inspection.search",
        "search",
        "add_search",
        "find messages that contain words",
        LOOK,
    ),
    "stats": Command(
        "inspection.stats",
        "stats",
        "add_stats",
        "show how much is stored, and the largest threads with their growth",
        LOOK,
    ),
    "memories": Command(
        "inspection.memories",
        "run_memories",
        "add_memories",
        "list, show or delete items of long-term memory",
        LOOK,
    ),
    "session": Command(
        "inspection.sessions",
        "run_session",
        "add_session",
        "list, show or end sessions of working memory",
        LOOK,
    ),
    "rm": Command(
        "inspection.rm",
        "rm",
        "add_rm",
        "delete a thread or a checkpoint, after confirmation",
        LOOK,
    ),
    "health": Command(
        "maintenance",
        "health",
        "add_health",
        "check whether the server responds, accepts writes and has the tables",
        RUN,
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; None means those of the process.

    Returns:
        The exit code: 0 for success, 1 for failure, 2 for wrong arguments, 141 if the process that read the output has
        ended; `diff` has its own codes.
    """
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        try:
            return _run(given)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return PIPE_CLOSED


def _run(given: Sequence[str]) -> int:
    if COMPLETES in os.environ:
        _complete()
    chosen = [word for word in given if word in COMMANDS][:1]
    arguments = parser(chosen).parse_args(given)
    try:
        with stop_signals_raise():
            return int(arguments.command(arguments))
    except StopRequested as stop:
        return 128 + stop.signum
    except LocusMySQLError as error:
        notify(f"locus-mysql: {_as_typed(error, arguments)}{_hint(error, arguments)}")
        return WRONG if isinstance(error, WrongArgument) else int(arguments.failed)


def _complete() -> None:
    """Answer a shell that completes a command line, and end the process; do nothing without argcomplete."""
    if find_spec("argcomplete") is None:
        return
    import argcomplete

    words = os.environ.get("COMP_LINE", "").split()
    argcomplete.autocomplete(parser([word for word in words if word in COMMANDS][:1]))


def _as_typed(error: LocusMySQLError, arguments: argparse.Namespace) -> str:
    """Return the message of an error, with options of commands where it advises keywords of Python."""
    if not isinstance(error, DriverMissing) or not hasattr(arguments, "driver"):
        return str(error)
    return re.sub(r"set driver='([\w-]+)', or \?driver=[\w-]+ in the DSN", r"give --driver \1", str(error))


def _hint(error: LocusMySQLError, arguments: argparse.Namespace) -> str:
    """Return advice to name a server, if none was named and the server of this machine cannot be used."""
    if not isinstance(error, (Unavailable, AuthenticationFailed)) or getattr(arguments, "dsn", "") is not None:
        return ""
    if any(os.environ.get(f"LOCUS_MYSQL_{name}") for name in ("DSN", "HOST", "HOSTS", "PORT", "UNIX_SOCKET")):
        return ""
    return " No server was named: set LOCUS_MYSQL_DSN to mysql://user:password@host/database."


def parser(chosen: Collection[str]) -> Parser:
    """Return a parser that lists all commands, and has the arguments of the chosen ones."""
    made = Parser(
        prog="locus-mysql",
        usage="locus-mysql [-h] [--version] COMMAND ...",
        description=_listing(),
        epilog="Options not given are read from the environment: LOCUS_MYSQL_DSN, LOCUS_MYSQL_PASSWORD, …\n"
        "`locus-mysql COMMAND --help` lists the options of a command.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"locus-mysql {__version__}")
    commands = made.add_subparsers(required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    for name, command in COMMANDS.items():
        summary = command.summary
        added = commands.add_parser(name, description=f"{summary[0].upper()}{summary[1:]}.", prog=f"locus-mysql {name}")
        if name in chosen:
            module = import_module(f".{command.module}", __package__)
            added.allow_abbrev = False
            added.set_defaults(command=getattr(module, command.run), failed=FAILED)
            getattr(module, command.add_arguments)(added)
    return made


def _listing() -> str:
    """Return the commands by groups, wrapped to the width of the terminal."""
    width = min(shutil.get_terminal_size().columns, 120)
    first = max(map(len, COMMANDS)) + 4
    lines = ["The memory of AI agents in MySQL."]
    for group in GROUPS:
        lines += ["", f"{group}:"]
        for name, command in COMMANDS.items():
            if command.group == group:
                wrapped = textwrap.wrap(command.summary, max(20, width - first))
                lines += [f"  {name:<{first - 2}}{wrapped[0]}", *(" " * first + more for more in wrapped[1:])]
    return "\n".join(lines)
