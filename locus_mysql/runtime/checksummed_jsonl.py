"""Files of lines of JSON: sealed lines, a first line that says what follows, and a last one that counts it. No I/O.

Each line ends with a CRC32 of what stands before it; who writes lines by hand leaves that out. The last line tells a
file that is whole from one that was cut off.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isinf
from typing import Any, TypeAlias

from ..errors import InvalidInput

#: A number that may be larger than any float.
_MAY_OVERFLOW = re.compile(rb"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")

_SEAL = re.compile(rb',"crc32":"([0-9a-f]{8})"\}$')


@dataclass(frozen=True, slots=True)
class Head:
    """What a file says of itself in its first line.

    Args:
        format: What the lines are.
        content: Whose, and which.
    """

    format: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class End:
    """What a file says in its last line.

    Args:
        items: How many lines stand between it and the first one.
    """

    items: int


#: What a line says: of the file, or of something in it.
Content: TypeAlias = Head | End | dict[str, Any]


def sealed(content: Mapping[str, Any]) -> bytes:
    """A line, with its checksum and line feed."""
    return sealed_text(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())


def sealed_text(text: bytes) -> bytes:
    """The line of an object that is JSON text already."""
    body = text[:-1]
    return body + b',"crc32":"%08x"}\n' % zlib.crc32(body)


def end_line(items: int) -> bytes:
    """The last line, behind so many."""
    return sealed({"end": {"items": items}})


def content_of(line: bytes, number: int, *, constants: bool = False) -> Content:
    """What a line says.

    Args:
        line: With its line feed.
        number: Counted from 1.
        constants: Whether NaN and the infinities may stand in it, which JSON does not know.

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
        exact: dict[str, Callable[[str], Any]] = {} if constants else {"parse_constant": _refused}
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


def floats_text(raw: bytes) -> str:
    """32-bit floats as text."""
    return base64.b64encode(raw).decode()


def floats_bytes(text: Any) -> bytes:
    """The 32-bit floats of a text.

    Raises:
        InvalidInput: It is none of `floats_text`.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise InvalidInput("An embedding cannot be read: it must hold 32-bit floats in base 64, as float32.") from None
    if len(raw) % 4:
        raise InvalidInput("An embedding cannot be read: its bytes are not those of 32-bit floats.")
    return raw


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError
    return number


def _refused(name: str) -> Any:
    raise ValueError(name)
