"""Keys and contents of transcripts as they are stored: checks, encodes and decodes them. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ...engine.operation import Operation, compute
from ...errors import CorruptCheckpoint, InvalidInput
from ...records.framing import DamagedFrame, Frame, Framing
from ...runtime.arguments import check_type
from ...runtime.exact_json import check_json, decode_json, encode_json
from ...runtime.sealing import Opened, Sealing, sealed_by
from ...runtime.server_rows import aware
from .records import Header, Item, Transcript, TranscriptKey
from .statements.reading import StoredHeader, StoredItem
from .statements.tables import RowKey, encrypted_identity
from .statements.writing import HeaderRow

#: Limits of texts, in bytes of UTF-8.
KIND_BYTES, NAME_BYTES, ID_BYTES = 32, 800, 255

#: Stored bytes of items from which they are decoded in a thread: that takes about a millisecond.
LARGE_BYTES = 65_536

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

_FRAMING = Framing(DICTIONARY, range(160, 65_537))

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_US = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def encode_content(value: Any, what: str, compression: Literal["zlib", "none"]) -> Frame:
    """Return a JSON value that is ready to be sealed.

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


def frame(text: bytes, compression: Literal["zlib", "none"]) -> Frame:
    """Return JSON text that is ready to be sealed."""
    return _FRAMING.compress((text,), compression)


def unframe(opened: Opened, what: str) -> bytes:
    """Return the JSON text in content that was sealed.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    try:
        return bytes(_FRAMING.content(opened))
    except DamagedFrame as damage:
        raise CorruptCheckpoint(f"{what} cannot be read: {damage}.") from None


def header_row(sealing: Sealing, tag: bytes | None, scope: bytes | None, state: bytes | None) -> HeaderRow:
    """Return the caller's columns of a transcript, with their seal.

    Args:
        sealing: That of the transcript.
        tag: The tag.
        scope: The scope.
        state: The sealed state. The seal covers only whether there is one, so that it stays when the keys change.
    """
    return HeaderRow(tag, scope, state, sealing.checksum("header", tag, scope, int(state is not None)))


def seal_state(sealing: Sealing, framed: Frame | None) -> bytes | None:
    """Return the state of a transcript as it is stored; ``sealing`` is that of the transcript."""
    return None if framed is None else sealing.seal(*framed, "state")


def open_state(sealing: Sealing, stored: bytes, what: str) -> bytes:
    """Return the JSON text of a stored state; ``sealing`` is that of the transcript.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed or moved, or cannot be read.
    """
    return unframe(sealing.open(stored, what, "state"), what)


def seal_content(sealing: Sealing, item_id: bytes | None, seq: int, framed: Frame) -> bytes:
    """Return the content of an item as it is stored.

    Args:
        sealing: That of the transcript.
        item_id: The item's id.
        seq: Its seq, which matters only if it has no id and is encrypted.
        framed: The content.
    """
    return sealing.seal(*framed, "content", *_identity(item_id, seq, encrypted=sealing.is_on))


def open_content(sealing: Sealing, row: StoredItem, what: str) -> bytes:
    """Return the JSON text of a stored item.

    Args:
        sealing: That of the transcript.
        row: The row.
        what: The name of the row, for errors.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed or moved, or cannot be read.
    """
    identity = _identity(row.item_id, row.seq, encrypted=sealed_by(row.content) is not None)
    return unframe(sealing.open(row.content, what, "content", *identity), what)


def _identity(item_id: bytes | None, seq: int, *, encrypted: bool) -> tuple[bytes | int | None, ...]:
    """Return what the content of an item is bound to: its id; without one, the seq, which costs a round trip.

    That is paid for with encryption only, so that nobody can exchange items.
    """
    return encrypted_identity(item_id, seq) if encrypted else (item_id,)


def row_key(tenant: str, key: TranscriptKey) -> RowKey:
    """Return the key of a transcript's row, checked.

    Raises:
        InvalidInput: One of its texts is too long, is empty although required, or contains invalid characters.
    """
    kind, collection, name, part = check_type(key, TranscriptKey, "The key of a transcript")
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
        sealing: Opens rows of the family.
        has_state: Whether the state was read. Without it, the seal is not verified.

    Raises:
        CorruptCheckpoint: It does not fit its seal, or its state cannot be read.
    """
    key = key_of(row)
    what = f"Transcript {key.name!r} of {key.kind!r}"
    sealing = sealing.of(tenant, *row[:4])
    if has_state and row.seal != header_row(sealing, row.tag, row.scope, row.state).seal:
        raise CorruptCheckpoint(
            f"{what} does not fit its seal: its tag or scope was changed, or it was moved. Delete it."
        )
    state = None if row.state is None else decode_json(open_state(sealing, row.state, what))
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
        sealing: That of the transcript.

    Raises:
        EncryptionError: There is no key for it, or it is in clear text although keys are given.
        CorruptCheckpoint: It was changed or moved, or cannot be read.
    """
    what = f"Item {row.seq} of transcript {key.name.decode(errors='replace')!r}"
    item_id = None if row.item_id is None else row.item_id.decode()
    return Item(row.seq, item_id, decode_json(open_content(sealing, row, what)), aware(row.created_at))


def decoded(
    key: RowKey, rows: Sequence[StoredItem], sealing: Sealing, *, backwards: bool = False
) -> Operation[list[Item]]:
    """Return the items in rows; large ones are decoded in a thread.

    Args:
        key: Their transcript.
        rows: The rows.
        sealing: Decrypts the family.
        backwards: Begin with the last row.

    Raises:
        CorruptCheckpoint: A row is damaged.
    """
    own = sealing.of(*key)

    def decode() -> list[Item]:
        return [item_of(key, row, own) for row in (reversed(rows) if backwards else rows)]

    if sum(len(row.content) for row in rows) < LARGE_BYTES:
        return decode()
    return (yield from compute(decode))


def time_of(revision: int) -> datetime:
    """Return the time of a revision."""
    return _EPOCH + timedelta(microseconds=min(revision, _MOST_US))
