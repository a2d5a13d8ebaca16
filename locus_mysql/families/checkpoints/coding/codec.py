"""States as text: a dict of JSON values, encoded field by field, and back.

A state is split into its *head*, which is the JSON text of the whole without the insides of the top-level lists, and
its *logs*, which are the texts that were cut out. ``{"a":1,"messages":[{…},{…}]}`` is the head
``{"a":1,"messages":[]}`` with one log ``{…},{…}`` that belongs at the cut. With the logs put back at the cuts, the text
is whole again, so what is loaded is what was saved, in the same order.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ....records.log_digests import HashedLog, Log
from ....runtime.exact_json import encode_json


class EncodedList(NamedTuple):
    """A list that was encoded elsewhere: its items' JSON text without the brackets."""

    text: bytes
    item_count: int


_NO_ITEMS = EncodedList(b"", 0)

#: Stands in the place of a list while the head is encoded. It is random, so that no state can hold it.
_PLACEHOLDER = secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class EncodedState:
    """A state as text, ready to be compared with the one before it."""

    head: bytes
    logs: tuple[Log, ...]

    @property
    def size_bytes(self) -> int:
        """Length of the whole text."""
        size = len(self.head)
        for log in self.logs:
            size += len(log.text)
        return size

    def text(self) -> bytes:
        """The whole text."""
        pieces = []
        done = 0
        for log in self.logs:
            pieces += [self.head[done : log.cut], log.text]
            done = log.cut
        return b"".join([*pieces, self.head[done:]])


def encode(state: Mapping[str, Any]) -> EncodedState:
    """The text of a state.

    Args:
        state: A dict of JSON values, or of `EncodedList` at the top level.

    Raises:
        InvalidInput: A value has no JSON form, or is nested too deeply.
    """
    fields: dict[str, Any] = {}
    lists: list[tuple[str, EncodedList]] = []
    for name, value in state.items():
        if type(value) is list:
            value = EncodedList(encode_json(value)[1:-1], len(value)) if value else _NO_ITEMS
        if isinstance(value, EncodedList):
            lists.append((name, value))
            value = _PLACEHOLDER
        fields[name] = value
    pieces = encode_json(fields).split(b'"%b"' % _PLACEHOLDER.encode())
    logs = []
    cut = 1
    for (name, items), piece in zip(lists, pieces, strict=False):
        cut += len(piece)
        logs.append(Log(name, cut, items.text, items.item_count))
        cut += len(b"[]")
    return EncodedState(b"[]".join(pieces), tuple(logs))


_NO_LOG = HashedLog(Log("", 0, b"", 0))

#: The logs of one state by name; empty logs are not distinguished.
HashedLogs = Mapping[str, HashedLog]

#: Approximate memory of a hashed log, without its text.
_OVERHEAD_BYTES = 2_000


def hash_logs(state: EncodedState, before: HashedLogs) -> HashedLogs:
    """Compute the digests of a state's logs.

    Args:
        state: The state.
        before: Those of a state that this one may continue; for speed only.
    """
    hashed = {}
    for log in state.logs:
        if not log.text:
            hashed[log.name] = _NO_LOG
            continue
        earlier = before.get(log.name)
        same = earlier is not None and earlier.log.text == log.text
        hashed[log.name] = earlier if earlier is not None and same else HashedLog(log, earlier)
    return hashed


def size_bytes(logs: HashedLogs) -> int:
    """Approximate memory of hashed logs."""
    size = 0
    for hashed in logs.values():
        if hashed.log.text:
            size += len(hashed.log.text) + _OVERHEAD_BYTES
    return size
