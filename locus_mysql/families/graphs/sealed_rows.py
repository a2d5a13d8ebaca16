"""Seals payloads and parts for a column: `seal` and `unseal`.

The seal of a row's payload covers the content and the `RowIdentity`: the row's thread and the columns beside the
payload. So a payload in another row, or in a row with such a column changed, is detected.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from ...errors import CorruptCheckpoint
from ...records.framing import DamagedFrame, Framing
from ...runtime.sealing import Sealing, Value


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


def seal(content: bytes, compression: Literal["zlib", "none"], identity: RowIdentity) -> bytes:
    """Return the bytes to store.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        identity: The identity of the row.
    """
    framed = _FRAMING.compress((content,), compression)
    return identity.thread.sealing.seal(*framed, identity.column, *identity.row)


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
    opened = identity.thread.sealing.open(stored, what, identity.column, *identity.row)
    try:
        return bytes(_FRAMING.content(opened))
    except DamagedFrame as damage:
        raise CorruptCheckpoint(f"{what} cannot be read back: {damage}.") from None


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
