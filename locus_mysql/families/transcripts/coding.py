"""Keys and contents of transcripts as they are stored: checks, encodes and decodes them. No I/O."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from ...dialect.transcripts.moving import MovedItem
from ...dialect.transcripts.pieces import RowKey, header_checksum, item_checksum, row_identity, sealed_at
from ...dialect.transcripts.reading import StoredHeader, StoredItem
from ...errors import CorruptCheckpoint, InvalidInput
from ...records.framing import DamagedFrame, Frame, Framing
from ...runtime.exact_json import check_json, decode_json, encode_json
from ...runtime.sealing import Sealing
from ...runtime.server_times import aware
from .records import Header, Item, Transcript, TranscriptKey

#: Limits of texts, in bytes of UTF-8.
KIND_BYTES, NAME_BYTES, ID_BYTES = 32, 800, 255

#: The dictionary of the compression: texts common in conversations. It is part of format 2 and must never change. The
#: most frequent texts come last.
DICTIONARY = (
    b'{"data":{"kwargs":{"state":{"metadata":{"status":"completed","arguments":"{\\"command\\":\\"description\\":\\"'
    b'"file_path":"/","invocationId":"","actions":{"stateDelta":{},"artifactDelta":{}},"author":"","longRunningToolIds":'
    b'"kind":"request","parts":[{"part_kind":"user-prompt","timestamp":"","tool_name":"","tool_call_id":"","args":{'
    b'"instructions":null,"run_id":"","model_name":"","finish_reason":"stop","provider_name":"","provider_details":null,'
    b'"toolUseResult":{"stdout":"","stderr":"","interrupted":false,"isImage":false},"is_error":false,"type":"tool_result"'
    b',"tool_use_id":"toolu_","thinking":"","signature":"","type":"tool_use","id":"toolu_","name":"Bash","input":{'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,'
    b'"cache_read_input_tokens":0,"output_tokens":0,"service_tier":"standard"},"requestId":"req_",'
    b'"function_call_output","call_id":"call_","output":"","type":"function_call","type":"output_text","annotations":[],'
    b'"id":"msg_","model":"","type":"message","role":"assistant","content":[{"type":"text","text":"'
    b'"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/","sessionId":"","version":"","gitBranch":"main",'
    b'"type":"assistant","message":{"role":"user","content":"'
    b'"type":"user","uuid":"","timestamp":"2026-01-01T00:00:00.000Z"}'
)

# The checksum is a column, as the server combines it with the item's position.
_FRAMING = Framing(DICTIONARY, range(160, 65_537), struct.Struct("<I"))

#: An item as a statement returns it.
AnyItem: TypeAlias = StoredItem | MovedItem

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def encode_content(value: Any, what: str, compression: Literal["zlib", "none"]) -> bytes:
    """Return a JSON value as the bytes to store.

    Raises:
        InvalidInput: JSON cannot hold it exactly.
    """
    return frame(encode_exactly(value, what), compression)


def encode_exactly(value: Any, what: str) -> bytes:
    """Return a JSON value as text.

    Raises:
        InvalidInput: JSON cannot hold it exactly.
    """
    check_json(value, what)
    return encode_json(value)


def frame(text: bytes, compression: Literal["zlib", "none"]) -> bytes:
    """Return JSON text as the bytes to store."""
    kind, pieces = _FRAMING.compress((text,), compression)
    return b"".join((kind, *pieces))


def unframe(stored: bytes, what: str) -> bytes:
    """Return the JSON text in stored bytes.

    Raises:
        CorruptCheckpoint: They cannot be read.
    """
    try:
        if stored[:1] not in {b"\x01", b"\x02"}:
            raise DamagedFrame("its format is unknown; if a later version of locus-mysql wrote it, upgrade")
        return bytes(_FRAMING.content(Frame(stored[:1], 0, stored[1:])))
    except DamagedFrame as damage:
        raise CorruptCheckpoint(f"{what} cannot be read: {damage}.") from None


def seal_state(sealing: Sealing, key: RowKey, framed: bytes | None) -> bytes | None:
    """Return the state of a transcript as it is stored. Without encryption, the bytes stay as they are."""
    return framed if framed is None or not sealing.is_on else sealing.of(*key).seal(framed, "state")


def open_state(sealing: Sealing, key: RowKey, stored: bytes, what: str = "The state") -> bytes:
    """Return the JSON text of a stored state.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed or moved, or cannot be read.
    """
    return unframe(stored if sealing.leaves(stored) else sealing.of(*key).open(stored, what, "state"), what)


def seal_content(sealing: Sealing, key: RowKey, item_id: bytes | None, seq: int, framed: bytes) -> bytes:
    """Return the content of an item as it is stored. Without encryption, the bytes stay as they are.

    Args:
        sealing: Encrypts the family.
        key: The transcript.
        item_id: The item's id.
        seq: Its seq, which matters only if it has no id.
        framed: The content.
    """
    if not sealing.is_on:
        return framed
    return sealing.of(*key).seal(framed, "content", *row_identity(item_id, seq))


def open_content(sealing: Sealing, row: AnyItem, what: str) -> bytes:
    """Return the JSON text of a stored item.

    Args:
        sealing: Decrypts the rows of the transcript.
        row: The row.
        what: The name of the row, for errors.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed or moved, or cannot be read.
    """
    content = row.content
    if not sealing.leaves(content):
        content = sealing.open(content, what, "content", *row_identity(row.item_id, row.seq))
    return unframe(content, what)


def row_key(tenant: str, key: TranscriptKey) -> RowKey:
    """Return the key of a transcript's row, checked.

    Raises:
        InvalidInput: One of its texts is too long, is empty although required, or contains invalid characters.
    """
    kind, collection, name, part = key
    return RowKey(
        tenant,
        check_name(kind, "The kind of a transcript", KIND_BYTES),
        check_name(collection, "The collection of a transcript", least=0),
        check_name(name, "The name of a transcript"),
        check_name(part, "The part of a transcript", least=0),
    )


def check_name(value: object, what: str, limit: int = NAME_BYTES, least: int = 1) -> bytes:
    """Return a text as UTF-8.

    Raises:
        InvalidInput: It is no text, too long or too short, or has a NUL or a lone surrogate.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be text, not {type(value).__name__}.")
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{what} holds a lone surrogate, which UTF-8 cannot hold; remove it.") from None
    if len(encoded) < least:
        raise InvalidInput(f"{what} is empty; it must have 1 to {limit} bytes.")
    if len(encoded) > limit:
        raise InvalidInput(f"{what} is {len(encoded)} bytes long; the limit is {limit}. Shorten it or hash it.")
    if b"\0" in encoded:
        raise InvalidInput(f"{what} holds a NUL character; remove it.")
    return encoded


def check_optional(value: object, what: str, limit: int = NAME_BYTES) -> bytes | None:
    """Return a text as UTF-8, or None."""
    return None if value is None else check_name(value, what, limit, least=0)


def key_of(row: StoredHeader) -> TranscriptKey:
    """Return the key in a row."""
    return TranscriptKey(*(text.decode(errors="replace") for text in row[:4]))


def transcript_of(tenant: str, row: StoredHeader, sealing: Sealing, *, has_state: bool = True) -> Transcript:
    """Return the transcript in a row.

    Args:
        tenant: The tenant.
        row: The row.
        sealing: Decrypts the family.
        has_state: Whether the state was read. Without it, the checksum cannot be verified.

    Raises:
        CorruptCheckpoint: Its checksum is wrong, or its state cannot be read.
    """
    key = key_of(row)
    what = f"Transcript {key.name!r} of {key.kind!r}"
    if has_state and row.checksum != header_checksum(RowKey(tenant, *row[:4]), row.tag, row.scope, row.state):
        raise CorruptCheckpoint(f"{what} cannot be read: its checksum is wrong. Delete it.")
    state = None if row.state is None else decode_json(open_state(sealing, RowKey(tenant, *row[:4]), row.state, what))
    tag = None if row.tag is None else row.tag.decode()
    scope = None if row.scope is None else row.scope.decode()
    return Transcript(
        key,
        row.revision,
        Header(state, tag, scope),
        row.items,
        row.size_bytes,
        row.last_seq,
        aware(row.created_at),
        time_of(row.revision),
        None if row.expires_at is None else aware(row.expires_at),
    )


def item_of(key: RowKey, row: StoredItem, sealing: Sealing) -> Item:
    """Return the item in a row.

    Args:
        key: The transcript.
        row: The row.
        sealing: Decrypts the rows of the transcript.

    Raises:
        CorruptCheckpoint: Its checksum is wrong, or it cannot be read.
    """
    what = f"Item {row.seq} of transcript {key.name.decode(errors='replace')!r}"
    if row.checksum != sealed_at(item_checksum(key, row.item_id, row.content), row.seq):
        raise CorruptCheckpoint(f"{what} cannot be read: its checksum is wrong. Clear or delete the transcript.")
    item_id = None if row.item_id is None else row.item_id.decode()
    return Item(row.seq, item_id, decode_json(open_content(sealing, row, what)), aware(row.created_at))


def time_of(revision: int) -> datetime:
    """Return the time of a revision."""
    return _EPOCH + timedelta(microseconds=min(revision, _MOST_US))
