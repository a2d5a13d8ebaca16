"""Decodes the msgpack of LangGraph's serialiser as plain JSON values, for inspection. No I/O.

LangGraph's own decoder imports the modules that the bytes name and calls functions of them: with it, anyone with write
access to the tables could run code in the process of every reader. This decoder imports and constructs nothing: an
object is shown as its fields, with the name of its type under ``$type``. Damaged bytes, and values nested too deep, are
an error. Time and memory are at most linear in the number of bytes.
https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import pydantic_core

#: Greatest depth of values. An object counts twice: it is an array in an extension.
DEPTH_LIMIT = 120

#: The key of an object's type among its fields.
TYPE = "$type"

#: The kinds of extensions of LangGraph's serialiser.
_SINGLE, _POSITIONAL, _KEYWORDS, _METHOD, _PYDANTIC_1, _PYDANTIC_2, _ARRAY, _SNAPSHOT = range(8)

#: Types of objects that are shown as their only argument.
_AS_THEIR_ARGUMENT = frozenset(
    {
        ("decimal", "Decimal"),
        ("zoneinfo", "ZoneInfo"),
        ("builtins", "set"),
        ("builtins", "frozenset"),
        ("collections", "deque"),
        *(("ipaddress", f"IPv{version}{what}") for version in "46" for what in ("Address", "Interface", "Network")),
    }
)

#: Types of secrets. Their values are not shown, although the serialiser stores them in clear text.
_SECRETS = frozenset({"SecretStr", "SecretBytes"})

_NUMBERS: Mapping[int, struct.Struct] = {
    0xCA: struct.Struct(">f"),
    0xCB: struct.Struct(">d"),
    0xCC: struct.Struct(">B"),
    0xCD: struct.Struct(">H"),
    0xCE: struct.Struct(">I"),
    0xCF: struct.Struct(">Q"),
    0xD0: struct.Struct(">b"),
    0xD1: struct.Struct(">h"),
    0xD2: struct.Struct(">i"),
    0xD3: struct.Struct(">q"),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class Unreadable(ValueError):
    """The bytes are not msgpack, are truncated, or are nested too deep."""


def read_msgpack(data: bytes | bytearray | memoryview) -> Any:
    """Return the JSON value of some bytes.

    Raises:
        Unreadable: They are damaged, or nested too deep.
    """
    try:
        return _whole(memoryview(data), 0)
    except RecursionError:  # the caller's own stack is deep
        raise Unreadable("they are nested too deep") from None


class Items(Sequence[Any]):
    """The items of a long array, each decoded on access. A damaged item is a text that reports the damage.

    Args:
        data: The array's bytes.
        ends: The end of the header, then the end of each item.
    """

    def __init__(self, data: bytes, ends: Sequence[int]) -> None:
        self._data = data
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError("There are fewer items.")
        index %= len(self)
        start, end = self._ends[index], self._ends[index + 1]
        try:
            return _whole(memoryview(self._data)[start:end], 1)
        except (Unreadable, RecursionError):
            return describe_bytes("damaged msgpack", end - start)


def read_items(data: bytes, least: int) -> Items | None:
    """Return the items of an array that has at least this many; None for anything else.

    Raises:
        Unreadable: They are damaged.
    """
    header, count = array_header(data)
    if count is None or count < least:
        return None
    ends = item_ends(data, header, count)
    if ends[-1] != len(data):
        raise Unreadable("there are more bytes than the value has")
    return Items(data, ends)


def array_header(data: bytes) -> tuple[int, int | None]:
    """Return the size of an array's header in bytes, and its number of items; None for anything but an array."""
    first = data[0] if data else 0
    if 0x90 <= first < 0xA0:
        return 1, first & 0x0F
    size_bytes = {0xDC: 2, 0xDD: 4}.get(first)
    if size_bytes is None or len(data) <= size_bytes:
        return 0, None
    return 1 + size_bytes, int.from_bytes(data[1 : 1 + size_bytes], "big")


def item_ends(data: bytes, start: int, count: int) -> list[int]:
    """Return the start of the first of several consecutive values, then the end of each.

    Decodes nothing, and skips an object, whose length is stored, in one step.

    Raises:
        Unreadable: The bytes are truncated, or are not values.
    """
    ends, offset = [start], start
    for _ in range(count):
        waiting = 1
        while waiting:
            if offset >= len(data):
                raise Unreadable("they are cut short")
            waiting -= 1
            first = data[offset]
            offset += 1
            if first < 0x80 or first >= 0xE0 or first in _CONSTANTS:
                continue
            if first < 0x90:
                waiting += 2 * (first & 0x0F)
            elif first < 0xA0:
                waiting += first & 0x0F
            elif first < 0xC0:
                offset += first & 0x1F
            elif first in _NUMBERS:
                offset += _NUMBERS[first].size
            elif 0xD4 <= first <= 0xD8:
                offset += 1 + (1 << (first - 0xD4))
            elif first in _SIZED:
                size_bytes, read = _SIZED[first]
                size = int.from_bytes(data[offset : offset + size_bytes], "big")
                offset += size_bytes
                if read is _Reader._array or read is _Reader._map:
                    waiting += size if read is _Reader._array else 2 * size
                else:
                    offset += size + (read is _Reader._extension)
            else:
                raise Unreadable(f"no value begins with byte {first:#x}")
        if offset > len(data):
            raise Unreadable("they are cut short")
        ends.append(offset)
    return ends


def value_end(data: bytes, offset: int) -> int:
    """Return the end of the value that begins at a position.

    Raises:
        Unreadable: It is damaged.
    """
    return item_ends(data, offset, 1)[1]


def read_at(data: bytes, offset: int) -> Any:
    """Return the value that begins at a position.

    Raises:
        Unreadable: It is damaged, or nested too deep.
    """
    return _Reader(memoryview(data)[offset:], 0).value()


def describe_bytes(kind: str, size: int) -> str:
    """Return the text shown in place of bytes."""
    return f"<{kind}, {size:,} byte{'' if size == 1 else 's'}>"


def _whole(data: memoryview, depth: int) -> Any:
    reader = _Reader(data, depth)
    value = reader.value()
    if reader.offset != len(data):
        raise Unreadable("there are more bytes than the value has")
    return value


class _Reader:
    """Decodes consecutive values.

    Args:
        data: The bytes.
        depth: Their depth in other values.
    """

    def __init__(self, data: memoryview, depth: int) -> None:
        self.offset = 0
        self._data = data
        self._depth = depth

    def value(self) -> Any:
        """Return the next value."""
        first = self._take(1)[0]
        if first < 0x80:
            return first
        if first >= 0xE0:
            return first - 0x100
        if first < 0x90:
            return self._map(first & 0x0F)
        if first < 0xA0:
            return self._array(first & 0x0F)
        if first < 0xC0:
            return self._text(first & 0x1F)
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        if 0xD4 <= first <= 0xD8:
            return self._extension(1 << (first - 0xD4))
        reads = _SIZED.get(first)
        if reads is None:
            raise Unreadable(f"no value begins with byte {first:#x}")
        size_bytes, read = reads
        return read(self, int.from_bytes(self._take(size_bytes), "big"))

    def _take(self, count: int) -> memoryview:
        end = self.offset + count
        if end > len(self._data):
            raise Unreadable("they are cut short")
        taken = self._data[self.offset : end]
        self.offset = end
        return taken

    def _number(self, form: struct.Struct) -> int | float | str:
        (number,) = form.unpack(self._take(form.size))
        if isinstance(number, float) and not math.isfinite(number):
            return str(number)  # JSON lacks these
        return int(number) if isinstance(number, int) else float(number)

    def _text(self, count: int) -> str:
        return str(self._take(count), "utf-8", "replace")

    def _bytes(self, count: int) -> str:
        self._take(count)
        return describe_bytes("bytes", count)

    def _array(self, count: int) -> list[Any]:
        self._deeper()
        found = [self.value() for _ in range(count)]
        self._depth -= 1
        return found

    def _map(self, count: int) -> dict[str, Any]:
        self._deeper()
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.value()
            name = key if isinstance(key, str) else _key_text(key)
            if name in found and not isinstance(key, str):  # 1 and "1" are two keys in msgpack, and one in JSON
                name = f"{name} ({type(key).__name__})"
            found[name] = self.value()
        self._depth -= 1
        return found

    def _extension(self, count: int) -> Any:
        code = int.from_bytes(self._take(1), "big", signed=True)
        data = self._take(count)
        self._deeper()
        try:
            return _object(code, data, self._depth)
        finally:
            self._depth -= 1

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise Unreadable(f"they are nested more than {DEPTH_LIMIT} deep")


#: By type byte: the number of bytes of the value's size, and the method that reads the value.
_SIZED: Mapping[int, tuple[int, Callable[[_Reader, int], Any]]] = {
    0xC4: (1, _Reader._bytes),
    0xC5: (2, _Reader._bytes),
    0xC6: (4, _Reader._bytes),
    0xC7: (1, _Reader._extension),
    0xC8: (2, _Reader._extension),
    0xC9: (4, _Reader._extension),
    0xD9: (1, _Reader._text),
    0xDA: (2, _Reader._text),
    0xDB: (4, _Reader._text),
    0xDC: (2, _Reader._array),
    0xDD: (4, _Reader._array),
    0xDE: (2, _Reader._map),
    0xDF: (4, _Reader._map),
}


def _object(code: int, data: memoryview, depth: int) -> Any:
    """Return the JSON value by which an object is shown."""
    if code == _SNAPSHOT:
        return _whole(data, depth)
    if code == _ARRAY:
        return _array_text(data, depth)
    if not _SINGLE <= code <= _PYDANTIC_2:
        return describe_bytes(f"extension {code}", len(data))
    parts = _whole(data, depth)
    if not isinstance(parts, list) or len(parts) < 3 or not isinstance(parts[0], str) or not isinstance(parts[1], str):
        return parts
    module, name, content = parts[:3]
    if name in _SECRETS:
        return "**********"
    if (module, name) == ("uuid", "UUID") and isinstance(content, str) and len(content) == 32:
        return "-".join((content[:8], content[8:12], content[12:16], content[16:20], content[20:]))
    if (module, name) in _AS_THEIR_ARGUMENT or (code == _METHOD and module == "datetime"):
        return content
    if module.partition(".")[0] == "pathlib" and isinstance(content, list):
        return "/".join(map(str, content)).replace("//", "/", 1)
    if (module, name) == ("datetime", "date") and isinstance(content, list):
        return "-".join(f"{part:02}" if isinstance(part, int) else str(part) for part in content)
    shown: dict[str, Any] = {TYPE: f"{module}.{name}"}
    if isinstance(content, dict) and code in (_KEYWORDS, _PYDANTIC_1, _PYDANTIC_2):
        return {**shown, **content}
    return {**shown, "args" if code == _POSITIONAL else "value": content}


def _array_text(data: memoryview, depth: int) -> str:
    """Return the text shown in place of an array of numbers."""
    try:
        kind, shape, *_ = _whole(data, depth)
        return describe_bytes(f"array of {kind} {'x'.join(map(str, shape))}"[:80], len(data))
    except (TypeError, ValueError):
        return describe_bytes("array", len(data))


def _key_text(key: Any) -> str:
    """Return the text shown in place of a dict's key that is not a text."""
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    return str(key)[:200]


#: Shown in place of a value whose checksum is wrong.
DAMAGED = "<damaged: its checksum is wrong>"


def metadata_of(text: object) -> tuple[dict[str, Any], str | None]:
    """Return the metadata of a row, and a message if it is damaged; it is empty then."""
    if text is None:
        return {}, None
    try:
        found = finite(json.loads(str(text)))
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found, None
    return {}, "The metadata is no JSON object; it was changed by hand. Save it again, with its metadata."


def finite(value: Any) -> Any:
    """Return a value of `json` with NaN and infinities, which JSON does not have, as text."""
    try:
        text = pydantic_core.to_json(value, inf_nan_mode="constants")
    except ValueError:  # a lone surrogate, or very deep
        return _finite(value)
    return _finite(value) if b"NaN" in text or b"Infinity" in text else value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [_finite(part) for part in value]
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return value
