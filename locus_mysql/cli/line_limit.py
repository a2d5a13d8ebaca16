"""Lines of a file that may hold anything, none longer than a limit: `limited_lines`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ..errors import InvalidInput

#: The longest line. MySQL takes no larger packet, so nothing that was exported is longer.
MAX_LINE_BYTES = 1 << 30


def limited_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, with their line feeds; the last one may have none.

    Raises:
        InvalidInput: A line is longer than `MAX_LINE_BYTES`, or than the memory that is left.
    """
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except MemoryError:
            raise InvalidInput(
                f"Line {number} does not end within the memory that is left, and the limit of a line is "
                f"{MAX_LINE_BYTES:,} bytes. Is this the file of an export?"
            ) from None
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(
                f"Line {number} is longer than {MAX_LINE_BYTES:,} bytes, the limit of a line. Is this the file of an "
                "export?"
            )
        if not line:
            return
        yield line
