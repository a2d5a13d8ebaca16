"""The bytes of rows: payloads of checkpoints and of writes, and parts of values, each with its seal. No I/O.

A checkpoint's payload has a header, the head and the small values. The seal of a payload covers the content and the
`RowIdentity`: the row's thread and the columns beside the payload. So a payload in another row, or in a row with such
a column changed, is detected.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, TypeAlias

from ...errors import CorruptCheckpoint, DecryptionFailed
from ...records.framing import DamagedFrame, Framing
from ...runtime.exact_json import decode_json, encode_json
from ...runtime.sealing import Sealing, Value
from .records import LabelledValue
from .statements.tables import OWN_PARTS
from .values import EncodedValue, Inline, Link, Stored

#: Whether bytes may be compressed.
Compression: TypeAlias = Literal["zlib", "none"]

_LENGTH = struct.Struct("<I")

_TITLES = {"payload": "checkpoint", "chunk": "part of a value", "write": "write of a task"}

#: Common bytes of small contents: beginning of a payload, a checkpoint of a graph, a message in msgpack. Part of the
#: format: never change it, only add another beside it under a new format byte.
DICTIONARY = (
    b'","fsfromisoformat","langgraph.types","Send","Interrupt"additional_kwargsresponse_metadatafinish_reasonstop'
    b"model_namemodel_providertoken_usageusage_metadatainput_tokensoutput_tokenstotal_tokensinput_token_details"
    b"output_token_detailscache_readreasoningtool_callsinvalid_tool_callsargsidcall_typetool_callartifactstatussuccess"
    b"tool_call_idtool\xc7\x05\x94\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xa0"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xa0\xa2id\xd9$"
    b"\xactool_call_id\xa5call_\xa8artifact\xc0\xa6status\xa7success\xb3model_validate_json"
    b"\xc8\x05\x94\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xd9"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x82\xaamodel_name\xadfinish_reason\xa4stop\xa4type\xa2ai\xa4name\xc0"
    b"\xa2id\xd9\xaatool_calls\x90\xb2invalid_tool_calls\x90\xaeusage_metadata\x83\xacinput_tokens\n"
    b"\xadoutput_tokens\x14\xactotal_tokens\x1e\xb3model_validate_json"
    b"\xc8\x05\x94\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xd9"
    b"\xb1additional_kwargs\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$"
    b"\xb3model_validate_json"
    b'{"s":"json","h":"json","n":2,"c":[["","",null,"json",'
    b'{"s":"graph","h":"json","n":600,"c":[["messages","00000000000000000000000000000001.0.","msgpack","9","",1,"",[['
    b'["branch:to:model","00000000000000000000000000000002.0.","null",0],["__start__",'
    b'{"v":4,"ts":"2026-01-01T00:00:00.000000+00:00","id":"1f0","channel_versions":{"__start__":'
    b'"00000000000000000000000000000002.0.","messages":"00000000000000000000000000000003.0.","branch:to:tools":'
    b'"00000000000000000000000000000004.0."},"versions_seen":{"__input__":{},"__start__":{"__start__":'
    b'"00000000000000000000000000000001.0."},"model":{"branch:to:model":"00000000000000000000000000000002.0."}},'
    b'"updated_channels":["branch:to:model","messages"]}'
)

_FRAMING = Framing(DICTIONARY, range(128, 32_768))


class Content(NamedTuple):
    """The content of a payload.

    Args:
        codec: The name of the class that encoded it.
        head: Everything except its values.
        values: The values by name.
        snapshots: Names of values that this checkpoint holds as a snapshot, or lacks because an ancestor holds the
            snapshot from which the value is rebuilt.
    """

    codec: str
    head: EncodedValue
    values: Mapping[str, LabelledValue]
    snapshots: frozenset[str] = frozenset()


def pack(content: Content, compression: Compression, identity: RowIdentity) -> bytes:
    """Return the payload of a row. Parts of the row's own have numbers below `OWN_PARTS`.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        identity: The identity of the row that it is written to.
    """
    entries: list[list[Any]] = []
    pieces = [content.head.data]
    for name, (label, value) in content.values.items():
        if isinstance(value, Inline):
            entries.append([name, label, value.value.kind, len(value.value.data)])
            pieces.append(value.value.data)
        else:
            chain = _packed_chain(value.chain)
            around = (value.front.hex(), value.back.hex())
            entries.append([name, label, value.kind, *around, value.position, value.digest.hex(), chain])
    fields: dict[str, Any] = {"s": content.codec, "h": content.head.kind, "n": len(content.head.data), "c": entries}
    if content.snapshots:
        fields["d"] = sorted(content.snapshots)
    header = encode_json(fields)
    return seal(b"".join((_LENGTH.pack(len(header)), header, *pieces)), compression, identity)


def unpack(payload: bytes, stored_seq: int, identity: RowIdentity) -> Content:
    """Return the content of a payload, with the numbers of parts in their table.

    Args:
        payload: The row's.
        stored_seq: The seq of its own parts.
        identity: The identity of the row that it was read from.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    body = unseal(payload, identity)
    try:
        return _unpack(body, stored_seq)
    except (struct.error, KeyError, ValueError, TypeError, IndexError) as error:
        raise CorruptCheckpoint("A checkpoint row cannot be read back; its header is damaged.") from error


def _unpack(body: bytes, stored_seq: int) -> Content:
    start = _LENGTH.size
    end = start + _LENGTH.unpack_from(body, 0)[0]
    header = decode_json(body[start:end])
    start, end = end, end + header["n"]
    head = EncodedValue(header["h"], body[start:end])
    values: dict[str, LabelledValue] = {}
    for name, label, kind, *rest in header["c"]:
        if len(rest) == 1:
            start, end = end, end + rest[0]
            values[name] = LabelledValue(label, Inline(EncodedValue(kind, body[start:end])))
        else:
            front, back, position, digest, chain = rest
            links = _unpacked_chain(chain, stored_seq)
            if len(links) != position.bit_count() + 1:
                raise ValueError("a chain whose length does not fit its position")
            stored = Stored(kind, bytes.fromhex(front), bytes.fromhex(back), position, bytes.fromhex(digest), links)
            values[name] = LabelledValue(label, stored)
    if end != len(body):
        raise ValueError("more bytes than the header says")
    return Content(header["s"], head, values, frozenset(header.get("d", ())))


def _packed_chain(chain: tuple[Link, ...]) -> list[int]:
    """Four small numbers for each link: its part, its start from the end of the one before, its bytes, its checksum."""
    numbers: list[int] = []
    end = 0
    for link in chain:
        numbers += (link.part, link.start - end, link.length - link.start, link.checksum)
        end = link.length
    return numbers


def _unpacked_chain(numbers: list[int], stored_seq: int) -> tuple[Link, ...]:
    links = []
    end = 0
    for part, start, size, checksum in zip(numbers[::4], numbers[1::4], numbers[2::4], numbers[3::4], strict=True):
        start_of = end + start
        end = start_of + size
        links.append(Link(part_number(part, stored_seq), start_of, end, checksum))
    return tuple(links)


def part_number(part: int, stored_seq: int) -> int:
    """The number of a part in its table."""
    return stored_seq * OWN_PARTS + part if part < OWN_PARTS else part


def number_parts(values: Mapping[str, LabelledValue], stored_seq: int) -> dict[str, LabelledValue]:
    """Return the values with the numbers of their parts in the table, once the seq is known."""
    numbered = {}
    for name, (label, value) in values.items():
        if isinstance(value, Stored):
            chain = tuple(link._replace(part=part_number(link.part, stored_seq)) for link in value.chain)
            value = value._replace(chain=chain)
        numbered[name] = LabelledValue(label, value)
    return numbered


def pack_write(value: EncodedValue, compression: Compression, identity: RowIdentity) -> bytes:
    """Return the payload of a write's row: the length of the kind, the kind, the bytes."""
    kind = value.kind.encode()
    return seal(b"".join((len(kind).to_bytes(2, "little"), kind, value.data)), compression, identity)


def unpack_write(payload: bytes, identity: RowIdentity) -> EncodedValue:
    """Return the value of a write's row.

    Raises:
        CorruptCheckpoint: It cannot be read.
    """
    content = unseal(payload, identity)
    end = 2 + int.from_bytes(content[:2], "little")
    if end > len(content):
        raise CorruptCheckpoint("A stored write cannot be read back; its bytes are damaged.")
    return EncodedValue(content[2:end].decode(), content[end:])


class StoredThread(NamedTuple):
    """A thread as its rows are stored.

    Args:
        thread_id: The thread.
        sealing: Seals the rows of the thread.
    """

    thread_id: str
    sealing: Sealing


class RowIdentity(NamedTuple):
    """What the seal of bytes covers besides them.

    Args:
        thread: The thread.
        column: The name under which the bytes are bound to their column.
        row: The columns of the row that must not change.
    """

    thread: StoredThread
    column: str
    row: tuple[Value, ...] = ()


def stored_thread(tenant: str, thread_id: str, sealing: Sealing) -> StoredThread:
    """Return a thread as its rows are stored; ``sealing`` is that of the family."""
    return StoredThread(thread_id, sealing.of(tenant, thread_id))


def part_identity(thread: StoredThread) -> RowIdentity:
    """Return the identity of any part of a thread: every reference to it contains the checksum of its content."""
    return RowIdentity(thread, "chunk")


def checkpoint_identity(
    thread: StoredThread, checkpoint_key: bytes, parent_key: bytes | None, needs: int, metadata: str | None
) -> RowIdentity:
    """Return the identity of a checkpoint's row.

    Args:
        thread: The thread.
        checkpoint_key: The checkpoint's key, which represents its namespace and id.
        parent_key: The parent's key.
        needs: Which content of its parent it needs.
        metadata: Its metadata.
    """
    return RowIdentity(thread, "payload", (checkpoint_key, parent_key, needs, metadata))


def write_identity(
    thread: StoredThread, checkpoint_key: bytes, task_id: str, idx: int, channel: str, task_path: str
) -> RowIdentity:
    """Return the identity of a write's row.

    Args:
        thread: The thread.
        checkpoint_key: The key of its checkpoint.
        task_id: The task.
        idx: The write's index among those of the task.
        channel: Its channel.
        task_path: The task's path.
    """
    return RowIdentity(thread, "write", (checkpoint_key, task_id, idx, channel, task_path))


def seal(content: bytes, compression: Compression, identity: RowIdentity) -> bytes:
    """Return the bytes to store.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        identity: The identity of the row.
    """
    divided = _FRAMING.compress((content,), compression)
    return identity.thread.sealing.seal(*divided, identity.column, *identity.row)


def unseal(stored: bytes, identity: RowIdentity) -> bytes:
    """Return the content of stored bytes.

    Args:
        stored: The bytes.
        identity: The identity of the row that they were read from.

    Raises:
        EncryptionError: There is no key for them, or they are in clear text although keys are given.
        CorruptCheckpoint: They are damaged, were stored in another row, or have an unknown format.
    """
    what = f"A {_TITLES[identity.column]} of thread {identity.thread.thread_id!r}"
    divided = identity.thread.sealing.open(stored, what, identity.column, *identity.row)
    try:
        return bytes(_FRAMING.content(divided))
    except DamagedFrame as damage:
        raise CorruptCheckpoint(f"{what} cannot be read back: {damage}.") from None


class naming_checkpoint:  # used like a function; a generator would take three times as long
    """A context that adds the names of thread and checkpoint to an error about damaged rows.

    Args:
        thread_id: The thread.
        checkpoint_id: The checkpoint.

    Raises:
        CorruptCheckpoint: The rows are damaged.
    """

    __slots__ = ("_checkpoint_id", "_thread_id")

    def __init__(self, thread_id: str, checkpoint_id: str) -> None:
        self._thread_id = thread_id
        self._checkpoint_id = checkpoint_id

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, CorruptCheckpoint):
            raise (DecryptionFailed if isinstance(error, DecryptionFailed) else CorruptCheckpoint)(
                f"Checkpoint {self._checkpoint_id!r} of thread {self._thread_id!r} is damaged. {error}"
            ) from error
