"""Lines of JSON with checksums: one that describes the file, records, and one with their number.

Each line ends with a CRC32 of the text before it, which may be left out in lines written by hand. The last line shows
that a file was not cut off.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, BinaryIO, TypeAlias

from ..errors import InvalidInput

#: The longest line. MySQL takes no larger packet, so no exported line is longer.
MAX_LINE_BYTES = 1 << 30

#: A number that may be larger than any float.
_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")

_SEAL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}$')


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a file.

    Args:
        format: The format of the lines.
        content: All its fields, such as the tenant and the selection.
    """

    format: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """The last line of a file.

    Args:
        items: Number of lines between the first and the last one.
    """

    items: int


#: The content of a line: the first one, the last one, or a record.
Content: TypeAlias = Head | End | dict[str, Any]


def checksummed(content: Mapping[str, Any]) -> bytes:
    """Return the line of an object, with its checksum and line feed."""
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


def end_line(items: int) -> bytes:
    """Return the last line of a file with a number of records."""
    return checksummed({"end": {"items": items}})


def content_of(line: bytes, number: int) -> Content:
    """Read a line.

    Args:
        line: The line, with its line feed.
        number: Its number in the file, counted from 1.

    Raises:
        InvalidInput: It is damaged.
    """
    if not line.endswith(b"\n"):
        raise InvalidInput("It is cut off: it ends without a line feed.")
    body = line[:-1]
    seal = _SEAL.search(body)
    if seal is not None:
        body = body[: seal.start()]
        if zlib.crc32(body) != int(seal[1], 16):
            raise InvalidInput("It is damaged: it does not have the checksum that it was written with.")
        body += b"}"
    try:
        exact: dict[str, Callable[[str], Any]] = {"parse_constant": _refused}
        if _MAY_OVERFLOW.search(body):  # a number larger than any float would become an infinity
            exact["parse_float"] = _finite
        content = json.loads(body, **exact)  # type: ignore[arg-type]  # names of other options are not among these
    except (ValueError, RecursionError):
        raise InvalidInput("It is damaged: it is no JSON.") from None
    if not isinstance(content, dict):
        raise InvalidInput("It is no JSON object.")
    if number == 1:
        name = content.get("format")
        if not isinstance(name, str) or not name.startswith("locus-mysql "):
            raise InvalidInput("The file is no export: its first line does not say so.")
        return Head(name, content)
    if content.keys() == {"end"}:
        end = content["end"]
        if not isinstance(end, dict) or not isinstance(end.get("items"), int):
            raise InvalidInput("It ends the file, and does not say how many items there are.")
        return End(end["items"])
    return content


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError
    return number


def _refused(name: str) -> Any:
    raise ValueError(name)


def limited_lines(file: BinaryIO) -> Iterator[bytes]:
    """Read the lines of a file that may hold anything. The last line may have no line feed.

    Raises:
        InvalidInput: A line is longer than `MAX_LINE_BYTES`, or than the free memory.
    """
    number = 0
    while True:
        number += 1
        try:
            line = file.readline(MAX_LINE_BYTES + 1)
        except MemoryError:
            raise InvalidInput(
                f"Line {number} does not end within the free memory, and the limit of a line is {MAX_LINE_BYTES:,} "
                "bytes. Is this the file of an export?"
            ) from None
        if len(line) > MAX_LINE_BYTES:
            raise InvalidInput(
                f"Line {number} is longer than {MAX_LINE_BYTES:,} bytes, the limit of a line. Is this the file of an "
                "export?"
            )
        if not line:
            return
        yield line
