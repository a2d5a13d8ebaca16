"""Commands of the command line, shown as they are typed: `Shell`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from locus_mysql.config import MySQLConfig

from .display import Screen
from .process import options_of

#: Maximum number of output lines shown per command.
_SHOWN_LINES = 14


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of a command.

    Args:
        code: Its exit code.
        out: Its output.
        err: Its error messages.
    """

    code: int
    out: str
    err: str


class Shell:
    """Runs commands, each in its own process.

    Args:
        screen: Shows each command and its output.
        config: The database.
        program: The module to run, and its first arguments.
        variables: Further environment variables.
    """

    def __init__(
        self,
        screen: Screen,
        config: MySQLConfig,
        program: Sequence[str] = ("locus_mysql",),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = screen
        self._environment = {**os.environ, "NO_COLOR": "1", **_variables(options_of(config)), **(variables or {})}
        self._program = tuple(program)

    async def run(self, *arguments: str, shown: int = _SHOWN_LINES) -> Shown:
        """Run a command, and show the first lines of its output."""
        typed = [f'"{argument}"' if " " in argument else argument for argument in arguments]
        self._screen.line("$", f"locus-mysql {' '.join(typed)}"[:95])
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", *self._program, *arguments),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = (stream.decode() for stream in await process.communicate())
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        for line in [line for line in (out or err).splitlines() if line][:shown]:
            self._screen.line("", line[:95])
        return Shown(process.returncode or 0, out, err)


def _variables(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as environment variables."""
    found = {}
    for name, value in options.items():
        if isinstance(value, list):
            value = ",".join(map(str, value))
        if value is not None:
            found[f"LOCUS_MYSQL_{name.upper()}"] = str(value)
    return found
