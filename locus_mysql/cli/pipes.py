"""What happens when the process that reads the output of a command has ended, such as ``head``."""

from __future__ import annotations

import io
import os
from typing import IO

#: The exit code that a shell reports for a process that SIGPIPE ended.
PIPE_CLOSED = 128 + 13


def discard(stream: IO[str]) -> None:
    """Redirect a stream to the null device, so that the interpreter reports no error when it flushes it at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, io.UnsupportedOperation):
        return
