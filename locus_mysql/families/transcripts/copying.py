"""Copies a transcript under another key: `CopyingOperations`. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...records.copying import copy_owner
from ...records.moving import Moving
from ...runtime.arguments import tenant_of
from .coding import row_key
from .operations import TranscriptOperations
from .records import Transcript, TranscriptKey
from .tables import tables

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CopyingOperations:
    """Copies transcripts.

    Args:
        config: The options, with the tenant.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = TranscriptOperations(config)
        self._moving = Moving(tables(config.table_prefix), config)
        self._tenant = tenant_of(config)

    def copy(self, key: TranscriptKey, new: TranscriptKey) -> Operation[bool]:
        """Copy a transcript, without those of its parts; return False if it does not exist.

        Items keep their positions, as a state may name items by them. The copy is visible when it is complete.

        Raises:
            InvalidInput: The copy could not be used under the new key; nothing was written.
            VersionConflict: The transcript was written to whenever it was read; no copy is left.
            ThreadExists: There is a transcript of the new key; nothing was written.
            CorruptCheckpoint: A row is damaged; no copy is left.
        """
        transcript = yield from self._operations.get(key)
        if transcript is None:
            return False
        refuse_unusable(transcript, new)
        names = dict(zip(self._moving.tables.owner.key, row_key(self._tenant, new)[1:], strict=True))

        def change(row: dict[str, Any], now: str) -> None:
            revision = (datetime.fromisoformat(now).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
            row.update(names, revision=revision, prior=0)

        return (yield from copy_owner(self._moving, row_key(self._tenant, key)[1:], tuple(names.values()), change))


def refuse_unusable(transcript: Transcript, new: TranscriptKey) -> None:
    """Refuse a copy that its framework could not use.

    Raises:
        InvalidInput: The kinds differ, the new name has other parts, or the state names the transcript itself.
    """
    key = transcript.key
    if new.kind != key.kind:
        raise InvalidInput(
            f"A transcript of the kind {key.kind!r} cannot be copied to one of {new.kind!r}: other software reads "
            f"that. Write the target as {key.kind}/collection/name. Nothing was written."
        )
    if new.name.count("/") != key.name.count("/"):
        raise InvalidInput(
            f"The name {new.name!r} has another number of parts than {key.name!r}, so its framework could not read the "
            "copy. Write `/` in a name as ~1. Nothing was written."
        )
    if new.name != key.name and key.name in _texts(transcript.header.state):
        raise InvalidInput(
            f"The state of transcript {key.name!r} holds its own name, so a copy under another one could not be used. "
            "Copy it with the framework that wrote it. Nothing was written."
        )


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value that are not keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
