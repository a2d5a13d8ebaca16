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
from .arguments import FAILED, PIPE_CLOSED, WRONG, Parser, WrongArgument, discard, notify

#: The variable by which a shell asks argcomplete to complete a command line.
COMPLETES = "_ARGCOMPLETE"


class Command(NamedTuple):
    """A command. Its module is imported when the command is used, as each command needs other parts of the package.

    Args:
        module: A module of this folder; its function ``add_NAME`` adds the command's arguments to a parser.
        run: The name of the function that runs it.
        summary: One line of help.
    """

    module: str
    run: str
    summary: str


#: The commands, by the headings under which the help lists them.
GROUPS = {
    "look at what is stored, and delete it": {
        "threads": Command(
            "inspection.threads", "threads", "list the threads saved to last, with their age, checkpoints and size"
        ),
        "show": Command("inspection.show", "show", "show a conversation, now or at a checkpoint or a time"),
        "history": Command("inspection.show", "history", "list the checkpoints of a thread"),
        "diff": Command("inspection.show", "diff", "show what changed between two checkpoints of a thread"),
        "search": Command("inspection.threads", "search", "find messages that contain words"),
        "stats": Command(
            "inspection.threads", "stats", "show how much is stored, and the largest threads with their growth"
        ),
        "memories": Command("inspection.records", "run_records", "list, show or delete items of long-term memory"),
        "session": Command("inspection.records", "run_records", "list, show or end sessions of working memory"),
        "tenants": Command("tenants", "tenants", "list tenants with what they have stored in each family"),
        "rm": Command("inspection.threads", "rm", "delete a thread or a checkpoint, after confirmation"),
        "forget": Command("tenants", "forget", "remove all that is stored of a customer, in all families"),
    },
    "move data": {
        "copy": Command(
            "copying",
            "copy",
            "copy threads from Locus' checkpointers or LangGraph's savers, or the records of any tables",
        ),
        "export": Command("family_files", "export_records", "export the records of any tables to a file of JSON lines"),
        "import": Command("family_files", "import_file", "import such a file"),
    },
    "tables": {
        "schema": Command("tables", "schema", "print the statements that create the tables, for a migration"),
        "grants": Command("tables", "grants", "print the GRANT statements that an account needs"),
        "migrate": Command(
            "rewriting", "migrate", "upgrade the tables of an older version, or show what that would do"
        ),
        "reencrypt": Command(
            "rewriting",
            "reencrypt_rows",
            "encrypt stored rows with the active key: after a rotation of keys, or for the first time",
        ),
        "embed": Command(
            "rewriting", "embed_items", "embed items of long-term memory that have no embedding of a store's model"
        ),
    },
    "run and maintain": {
        "serve": Command("serving", "serve", "run the HTTP service, and the inspector in the browser, until Ctrl-C"),
        "token": Command("serving", "token", "create a token for the HTTP service"),
        "vacuum": Command(
            "maintenance",
            "vacuum",
            "remove threads that were not saved for some days, old checkpoints of the others, and expired items",
        ),
        "health": Command(
            "maintenance", "health", "check whether the server responds, accepts writes and has the tables"
        ),
    },
}

COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}


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
            getattr(module, f"add_{name}")(added)
    return made


def _listing() -> str:
    """Return the commands by groups, wrapped to the width of the terminal."""
    width = min(shutil.get_terminal_size().columns, 120)
    first = max(map(len, COMMANDS)) + 4
    lines = ["The memory of AI agents in MySQL."]
    for heading, commands in GROUPS.items():
        lines += ["", f"{heading}:"]
        for name, command in commands.items():
            wrapped = textwrap.wrap(command.summary, max(20, width - first))
            lines += [f"  {name:<{first - 2}}{wrapped[0]}", *(" " * first + more for more in wrapped[1:])]
    return "\n".join(lines)
