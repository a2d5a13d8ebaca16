"""Encodes payloads and parts for a column, in frames with a checksum: `seal` and `unseal`.

The checksum of a row's payload covers the content and the `RowIdentity`: the row's thread and the columns beside the
payload. So a payload in another row, or in a row with such a column changed, is detected.
"""

from __future__ import annotations

import struct
import zlib
from typing import Literal, NamedTuple

from ...errors import CorruptCheckpoint
from ...records.framing import DamagedFrame, Framing
from ...runtime.sealing import Sealing
from . import keys


class StoredThread(NamedTuple):
    """A thread as its rows are stored.

    Args:
        checksum: See `thread_checksum`.
        thread_id: The thread.
        sealing: Encrypts the rows of the thread.
    """

    checksum: int
    thread_id: str
    sealing: Sealing


class RowIdentity(NamedTuple):
    """What the checksum of a payload covers besides its content, and what its encrypted bytes are bound to.

    Args:
        thread: Checksum of the tenant and the thread id. It is combined by XOR, so that the server itself can make a
            copy for another thread.
        row: Checksum of the columns of the row that must not change.
        stored_in: The thread, which encrypts the bytes; None if they are not encrypted.
        column: The name under which the bytes are bound to their column.
        row_key: What identifies the row in the thread.
    """

    thread: int
    row: int
    stored_in: StoredThread | None = None
    column: str = "chunk"
    row_key: tuple[str | bytes, ...] = ()

    def checksum(self, content: bytes) -> int:
        """Return the checksum of content in this row."""
        return zlib.crc32(content, self.row) ^ self.thread


#: The identity of a part: every reference to it contains the checksum of its content.
ANY_ROW = RowIdentity(0, 0)


def thread_checksum(tenant: str, thread_id: str) -> int:
    """Return the checksum of a thread's name; see also `removing`, where the server computes it."""
    return zlib.crc32(f"{tenant}\0{thread_id}".encode())


def stored_thread(tenant: str, thread_id: str, sealing: Sealing) -> StoredThread:
    """Return a thread as its rows are stored; ``sealing`` encrypts the family."""
    return StoredThread(thread_checksum(tenant, thread_id), thread_id, sealing.of(tenant, thread_id))


def part_identity(thread: StoredThread) -> RowIdentity:
    """Return the identity of any part of a thread."""
    return ANY_ROW._replace(stored_in=thread)


def checkpoint_identity(
    thread: StoredThread, checkpoint_key: bytes, parent_key: bytes | None, needs: int, metadata_checksum: int | None
) -> RowIdentity:
    """Return the identity of a checkpoint's row.

    Args:
        thread: The thread.
        checkpoint_key: The checkpoint's key, which represents its namespace and id.
        parent_key: The parent's key.
        needs: Which content of its parent it needs.
        metadata_checksum: See `text_checksum`.
    """
    columns = f"{needs} {metadata_checksum}".encode()
    checksum = zlib.crc32(columns, zlib.crc32(checkpoint_key + (parent_key or b"")))
    return RowIdentity(thread.checksum, checksum, thread, "payload", (checkpoint_key,))


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
    columns = f"{idx} {len(task_id)} {len(channel)} {task_id}{channel}{task_path}".encode("utf-8", "surrogatepass")
    row_key = (checkpoint_key, keys.task_key(task_id), str(idx)) if thread.sealing.is_on else ()
    return RowIdentity(thread.checksum, zlib.crc32(columns, zlib.crc32(checkpoint_key)), thread, "write", row_key)


def text_checksum(text: str | None) -> int | None:
    """Return the checksum of a text as the server's CRC32() computes it; None for None."""
    return None if text is None else zlib.crc32(text.encode("utf-8", "surrogatepass"))


def seal(
    content: bytes,
    compression: Literal["zlib", "none"],
    identity: RowIdentity = ANY_ROW,
    *,
    checksum: int | None = None,
) -> bytes:
    """Return the bytes to store.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        identity: The identity of the row.
        checksum: Its checksum there, if it is known.
    """
    kind, body = _FRAMING.compress((content,), compression)
    stored = _FRAMING.join(kind, identity.checksum(content) if checksum is None else checksum, body)
    if identity.stored_in is None or not identity.stored_in.sealing.is_on:
        return stored
    return identity.stored_in.sealing.seal(stored, identity.column, *identity.row_key)


def unseal(stored: bytes, identity: RowIdentity = ANY_ROW) -> bytes:
    """Return the content of stored bytes.

    Args:
        stored: The bytes.
        identity: The identity of the row that they were read from.

    Raises:
        EncryptionError: There is no key for them, or they are in clear text although keys are given.
        CorruptCheckpoint: They are damaged, were stored in another row, or have an unknown format.
    """
    return unseal_with_checksum(stored, identity)[0]


def unseal_with_checksum(stored: bytes, identity: RowIdentity) -> tuple[bytes, int]:
    """Return the content of stored bytes, and its checksum; see `unseal`."""
    if identity.stored_in is not None and not identity.stored_in.sealing.leaves(stored):
        sealing, thread_id = identity.stored_in.sealing, identity.stored_in.thread_id
        what = f"A {_TITLES[identity.column]} of thread {thread_id!r}"
        stored = sealing.open(stored, what, identity.column, *identity.row_key)
    try:
        frame = _FRAMING.split(stored)
        content = bytes(_FRAMING.content(frame))
        if frame.checksum != identity.checksum(content):
            raise DamagedFrame("its checksum is wrong")
    except DamagedFrame as damage:
        raise CorruptCheckpoint(f"A stored checkpoint cannot be read back: {damage}.") from None
    return content, frame.checksum


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

# The checksum is in the order of SQL's HEX(), because copying a thread changes it on the server.
_FRAMING = Framing(DICTIONARY, range(128, 32_768), struct.Struct(">I"))
