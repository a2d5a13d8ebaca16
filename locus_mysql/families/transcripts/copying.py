"""Copies a transcript under another key: `CopyingOperations`. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...config import MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import next_page
from ...errors import CorruptCheckpoint, InvalidInput, LocusMySQLError, ThreadExists, VersionConflict
from .coding import row_key
from .moving import Kept, KeptHeader, MovingOperations, Position
from .operations import TranscriptOperations
from .records import Header, NewItem, Transcript, TranscriptKey
from .writing import ITEMS_LIMIT

#: Items that are read and written at once, where a copy needs several transactions.
AT_ONCE = 500


class CopyingOperations:
    """Copies transcripts.

    Args:
        config: The options, with the tenant.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._operations = TranscriptOperations(config)
        self._moving = MovingOperations(config)
        self._tenant = config.tenant

    def copy(self, key: TranscriptKey, new: TranscriptKey) -> Operation[bool]:
        """Copy a transcript, without those of its parts; return False if it does not exist.

        Up to 10,000 items are copied in one transaction; more in several, the last of which stores the header.

        Raises:
            InvalidInput: The copy could not be used under the new key; nothing was written.
            VersionConflict: A long transcript was written to while it was copied; no copy is left.
            ThreadExists: There is a transcript of the new key; nothing was written.
            CorruptCheckpoint: A row is damaged.
        """
        transcript = yield from self._operations.get(key)
        if transcript is None:
            return False
        refuse_unusable(transcript, new)
        # A state may name items by their seqs, which stay the same in one transaction only where there are no gaps.
        if transcript.items <= ITEMS_LIMIT and transcript.items == transcript.last_seq:
            return (yield from self._at_once(key, new))
        yield from self._in_portions(transcript, new)
        return True

    def _at_once(self, key: TranscriptKey, new: TranscriptKey) -> Operation[bool]:
        found = yield from self._operations.open(key)
        if found is None:
            return False
        transcript, items = found
        copies = [NewItem(item.content, item.item_id) for item in items]
        try:
            yield from self._operations.append(new, copies, header=transcript.header, expected=0)
        except VersionConflict as error:
            raise _exists(new) from error
        return True

    def _in_portions(self, transcript: Transcript, new: TranscriptKey) -> Operation[None]:
        names = row_key(self._tenant, transcript.key)[1:]
        try:
            # It holds the name from now on. The header follows last, so that a state never names missing items.
            written = yield from self._operations.append(new, header=Header(), expected=0)
        except VersionConflict as error:
            raise _exists(new) from error
        try:
            after: Position = (*names, 0)
            while some := [one for one in (yield from self._moving.page(after, AT_ONCE)) if one.names == names]:
                after = next_page(after, some[-1].position)
                yield from self._moving.restore(list(_renamed(some, row_key(self._tenant, new)[1:])), overwrite=False)
            now = yield from self._operations.get(transcript.key)
            if now is None or now.revision != transcript.revision:  # the copy would have a part of that write
                raise VersionConflict(
                    f"Transcript {transcript.key.name!r} was written to while it was copied. No copy is left. Try it "
                    "again when no agent uses it."
                )
            header, last_seq = transcript.header, transcript.last_seq
            yield from self._moving.finish(row_key(self._tenant, new), last_seq)
            yield from self._operations.append(new, header=header, expected=written.revision)
        except LocusMySQLError:
            yield from self._operations.delete(new)
            raise


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


def _renamed(records: list[Kept], names: tuple[bytes, bytes, bytes, bytes]) -> Iterator[Kept]:
    for record in records:
        if record.damaged:
            raise CorruptCheckpoint(f"Item {record.position[4]} cannot be read: it was changed or moved.")
        if not isinstance(record, KeptHeader):
            yield record._replace(names=names)


def _exists(key: TranscriptKey) -> ThreadExists:
    return ThreadExists(f"There is a transcript {key.name!r} of {key.kind!r} already. Choose another name.")


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
