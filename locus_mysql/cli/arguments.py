"""The arguments that commands share, and what they say."""

from __future__ import annotations

import argparse
import re
import sys
from importlib.util import find_spec
from typing import Any, Never

from ..errors import InvalidInput, SetupError
from .sanitize import sanitize

OK, FAILED, WRONG = 0, 1, 2


class WrongArgument(InvalidInput):
    """An argument cannot be understood. The exit code is that of argparse."""


_DSN_HELP = (
    "mysql://user:password@host:port/database?option=value. Better in the environment as LOCUS_MYSQL_DSN, where "
    "other users of the machine cannot read the password"
)

#: What ``--scope`` is, of each command that has it.
SCOPE_HELP = (
    "the fields of memU's user model, joined by commas, with ':int', ':bool', ':uuid' or ':datetime' behind what is no "
    "text"
)


class Parser(argparse.ArgumentParser):
    """Repeats no password when it complains about an argument."""

    def error(self, message: str) -> Never:
        """End the process with 2."""
        bare = re.sub(r"//.*@", "//***@", message, flags=re.DOTALL)
        super().error(re.sub(r"(//[^\s?]*)\?\S*", r"\1?***", bare))  # an option of a DSN may be a password


def add_connection(parser: argparse.ArgumentParser, purpose: str = "") -> None:
    """Which server."""
    parser.add_argument("--dsn", help=f"{_DSN_HELP}{purpose}")
    parser.add_argument("--driver", metavar="NAME", help="mysql-connector, aiomysql, pymysql or asyncmy")


def add_tenant(parser: argparse.ArgumentParser, what: str = "checkpoints") -> None:
    """Whose."""
    parser.add_argument("--tenant", help=f"whose {what} (default)")


def add_prefix(parser: argparse.ArgumentParser, default: str = "locus_") -> None:
    """Which tables."""
    parser.add_argument("--prefix", dest="table_prefix", help=f"put before the names of the tables ({default})")


def add_which_threads(parser: argparse.ArgumentParser) -> None:
    """Which threads."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--thread", action="append", metavar="ID", help="only this thread; may stand several times")
    chosen.add_argument("--pattern", default="*", metavar="GLOB", help="only threads whose ids match it (*)")


def add_limit(parser: argparse.ArgumentParser, default: int, what: str = "") -> None:
    """How many."""
    told = f"at most so many{what} ({default})"
    parser.add_argument("-n", "--limit", type=at_least_one, default=default, metavar="N", help=told)


def at_least_one(text: str) -> int:
    """A number of things, as argparse reads it."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text[:20]!r}")
    return int(text)


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of `MySQLConfig` that were given as arguments."""
    names = ("dsn", "driver", "tenant", "table_prefix", "search", "search_parser")
    given = {name: getattr(arguments, name, None) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def fields_of(scope: str) -> list[str]:
    """The fields that ``--scope`` names."""
    return [field for field in scope.split(",") if field]


def need_langgraph(what: str) -> None:
    """Refuse a command that needs LangGraph where it is not installed."""
    if find_spec("langgraph") is None:
        raise SetupError(f"{what} needs LangGraph, which is not installed. Run pip install 'locus-mysql[langgraph]'.")


def tell(text: str) -> None:
    """Say something beside the output. It may hold what is stored."""
    print(sanitize(text), file=sys.stderr, flush=True)
