"""Another process of the application, which can be started, read and killed: `OtherProcess`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

from locus_mysql.config import MySQLConfig

from .agents.worker import Assignment

#: Seconds until the process must report its next event.
_PATIENCE_S = 30.0


class OtherProcess:
    """A running `worker`.

    Args:
        process: The process, with its streams.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def next_event(self) -> dict[str, str]:
        """Return the next event of the process; an empty one if it ended."""
        assert self._process.stdout is not None  # noqa: S101 - for the type checker; it was started with a pipe
        line = await asyncio.wait_for(self._process.stdout.readline(), _PATIENCE_S)
        return cast("dict[str, str]", json.loads(line)) if line else {}

    async def kill(self) -> int:
        """End the process with SIGKILL, which it cannot handle; returns its exit code, -9."""
        self._process.kill()
        return await self._process.wait()


@contextlib.asynccontextmanager
async def other_process(
    config: MySQLConfig, executions: Path, thread_id: str, prompt: str, *, hang_in: str | None = None
) -> AsyncIterator[OtherProcess]:
    """Run a turn in another process, which is killed at the end of the block.

    Args:
        config: The database.
        executions: The file to which tools add their executions.
        thread_id: The conversation.
        prompt: The user's message.
        hang_in: The tool in which it stops until it is killed.
    """
    assignment = Assignment(
        options=options_of(config), thread_id=thread_id, prompt=prompt, executions=str(executions), hang_in=hang_in
    )
    async with running("examples.agents.worker", assignment) as other:
        yield other


def options_of(config: MySQLConfig) -> dict[str, Any]:
    """Return the options that another process needs for the same tables, as JSON values."""
    options = config.model_dump(mode="json")
    options = {name: value for name, value in options.items() if name in config.model_fields_set}
    options["password"] = config.password_text
    return options


@contextlib.asynccontextmanager
async def running(module: str, assignment: object) -> AsyncIterator[OtherProcess]:
    """Run a module in another process, which is killed at the end of the block.

    Args:
        module: Its name.
        assignment: The line of JSON that it reads first.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdin is not None  # noqa: S101 - for the type checker; it was started with a pipe
        process.stdin.write(json.dumps(assignment).encode() + b"\n")
        await process.stdin.drain()
        yield OtherProcess(process)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
