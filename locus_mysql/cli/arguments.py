"""Arguments that several commands share, and output: messages, closed pipes, and stored text sanitized for a terminal.

A conversation contains text of users, web pages and tools. Control characters could move the cursor, rename the window,
write to the clipboard or create misleading links; characters that change the direction of writing could disguise text;
others are invisible. All of these are shown by their names or code points.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from importlib.util import find_spec
from typing import IO, Any, Never

from ..encryption import Encryption
from ..errors import InvalidInput, SetupError
from ..extras import install_command
from ..wording import did_you_mean

OK, FAILED, WRONG = 0, 1, 2

_DSN_HELP = (
    "mysql://user:password@host:port/database?option=value. Better in the environment as LOCUS_MYSQL_DSN, where "
    "other users of the machine cannot read the password"
)

#: The help of ``--scope``, for each command that has it.
SCOPE_HELP = (
    "the fields of memU's user model, joined by commas, with ':int', ':bool', ':uuid' or ':datetime' after "
    "each that is not text"
)

#: The exit code that a shell reports for a process that SIGPIPE ended.
PIPE_CLOSED = 128 + 13

#: Unicode has a picture character for each C0 control and DEL.
_PICTURES = {**{code: chr(0x2400 + code) for code in range(0x20)}, 0x7F: "\u2421"}

# C1 controls, soft hyphen, direction marks and overrides, zero-width characters, line separators, fillers, lone
# surrogates, variation selectors beyond the common ones, tags, private noncharacters. Joiners (U+200C, U+200D) stay, as
# languages and emoji need them.
_UNSEEN = (
    r"\x80-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_HARMFUL = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f{_UNSEEN}]")

_HARMFUL_IN_A_LINE = re.compile(rf"[\x00-\x1f\x7f{_UNSEEN}]")

_HARMFUL_IN_JSON = re.compile(rf"[\x7f{_UNSEEN}]")

#: More than four combining marks on one character could cover the lines around it.
_MARKS = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f"
    r"\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)

_TAB = "    "


class WrongArgument(InvalidInput):
    """An argument cannot be understood. The exit code is that of argparse."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose error messages contain no password, and name the argument that was probably meant."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments, and refuse unknown options here, where the options of the command are known."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> Never:
        """Print a message without passwords and exit with 2."""
        bare = re.sub(r"//.*@", "//***@", message, flags=re.DOTALL)
        bare = re.sub(r"(//[^\s?]*)\?\S*", r"\1?***", bare)  # an option of a DSN may be a password
        super().error(f"{bare}{self._meant(message)}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print a message. argparse's own method ignores that the reader of a pipe has ended."""
        if message:
            (file or sys.stderr).write(message)

    def _meant(self, message: str) -> str:
        """Return a question with the option or the choice that an unknown word resembles; empty if there is none."""
        word = re.match(r"unrecognized arguments: (--?[\w-]+)", message)
        known = self._option_string_actions
        if word is None:
            word = re.match(r"argument [^:]*: invalid choice: '([^']*)'", message)
            known = {str(choice): action for action in self._actions for choice in action.choices or ()}
        hint = did_you_mean(word[1], known) if word else ""
        return f".{hint}" if hint else ""


def add_connection(parser: argparse.ArgumentParser, purpose: str = "") -> None:
    """Add the arguments that name a server."""
    parser.add_argument("--dsn", help=f"{_DSN_HELP}{purpose}")
    parser.add_argument("--driver", metavar="NAME", help="mysql-connector, aiomysql, pymysql or asyncmy")
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="the keys of encryption, as lines of ID=BASE64, the active one first; or in the environment as "
        "LOCUS_MYSQL_ENCRYPTION",
    )


def add_tenant(parser: argparse._ActionsContainer, what: str = "checkpoints") -> None:
    """Add ``--tenant``."""
    parser.add_argument("--tenant", help=f"whose {what} (default)")


def add_tenants(parser: argparse.ArgumentParser) -> None:
    """Add ``--tenant`` and ``--all-tenants``."""
    which = parser.add_mutually_exclusive_group()
    add_tenant(which)
    which.add_argument("--all-tenants", action="store_true", help="all tenants, one after another")


def add_prefix(parser: argparse.ArgumentParser, default: str = "locus_") -> None:
    """Add ``--table-prefix``."""
    parser.add_argument("--table-prefix", dest="table_prefix", help=f"put before the names of the tables ({default})")


def add_which_threads(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select threads."""
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--thread", action="append", metavar="ID", help="only this thread; may be given more than once")
    chosen.add_argument("--pattern", default="*", metavar="GLOB", help="only threads whose ids match it (*)")


def add_limit(parser: argparse.ArgumentParser, default: int, what: str = "") -> None:
    """Add ``--limit``."""
    text = f"maximum number{what} ({default})"
    parser.add_argument("-n", "--limit", type=at_least_one, default=default, metavar="N", help=text)


def at_least_one(text: str) -> int:
    """Return a positive whole number, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text[:20]!r}")
    return int(text)


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `MySQLConfig` that were given as arguments."""
    names = ("dsn", "driver", "tenant", "table_prefix", "search", "search_parser")
    given = {name: getattr(arguments, name, None) for name in names}
    if getattr(arguments, "key_file", None) is not None:
        given["encryption"] = Encryption.from_file(arguments.key_file)
    return {name: value for name, value in given.items() if value is not None}


def fields_of(scope: str) -> list[str]:
    """Return the fields that ``--scope`` names."""
    return [field for field in scope.split(",") if field]


def need_langgraph(what: str) -> None:
    """Refuse a command that needs LangGraph where it is not installed."""
    if find_spec("langgraph") is None:
        raise SetupError(f"{what} needs LangGraph, which is not installed. Run {install_command('langgraph')}.")


def notify(text: str) -> None:
    """Print a message to the standard error. It may contain stored text, which is sanitized."""
    print(sanitize(text), file=sys.stderr, flush=True)


def discard(stream: IO[str]) -> None:
    """Redirect a stream to the null device, so that the interpreter reports no error when it flushes it at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, io.UnsupportedOperation):
        return


def sanitize(text: str) -> str:
    """Return a text of several lines without control characters and hidden characters."""
    text = text.replace("\r\n", "\n").replace("\t", _TAB)
    return _MARKS.sub(r"\1", _HARMFUL.sub(_named, text))


def sanitize_line(text: str) -> str:
    """Return a text for one line, such as an id, without control characters; line breaks are escaped, too."""
    return _MARKS.sub(r"\1", _HARMFUL_IN_A_LINE.sub(_named, text))


def sanitize_json(text: str) -> str:
    """Return JSON text with harmful characters as JSON escapes."""
    return _HARMFUL_IN_JSON.sub(_escaped, text)


def cut(text: str, limit: int | None) -> str:
    """Return the beginning of a text and the number of characters that follow; the whole text without a limit."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def _named(found: re.Match[str]) -> str:
    code = ord(found.group())
    return _PICTURES.get(code) or f"<U+{code:04X}>"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
