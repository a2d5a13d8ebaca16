"""Bytes as they stand in a column: a byte for the format, a checksum, and the content, compressed where it pays.

The checksum of a row's payload covers the content and the row's `Place`: its thread and the columns beside the payload.
So a payload that stands in another row, or in a row of which such a column was changed, is noticed.

Format 1 is plain, format 2 deflated with a preset dictionary. Add formats, never change one.
"""

from __future__ import annotations

import struct
import zlib
from typing import Literal, NamedTuple

from ...errors import CorruptCheckpoint

#: Contents in this range are compressed: shorter ones gain nothing, and of longer ones a load would notice.
COMPRESS_BYTES = range(128, 32_768)

_PLAIN, _DEFLATED = b"\x01", b"\x02"
_CHECKSUM = struct.Struct(">I")  # in the order of SQL's HEX(), as copying a thread changes it on the server
_BEGINNING_BYTES = 1 + _CHECKSUM.size


class Place(NamedTuple):
    """Where content stands, as its checksum covers it.

    Args:
        thread: Checksum of the tenant and the thread id. It is combined by XOR, so that the server itself can make a
            copy for another thread.
        row: Checksum of the columns of the row that must not change.
    """

    thread: int
    row: int

    def checksum(self, content: bytes) -> int:
        """The checksum of content at this place."""
        return zlib.crc32(content, self.row) ^ self.thread


#: The place of a part: whatever refers to it knows the checksum of its content.
ANYWHERE = Place(0, 0)


def thread_checksum(tenant: str, thread_id: str) -> int:
    """The checksum of a thread's name; see also `removing`, where the server computes it."""
    return zlib.crc32(f"{tenant}\0{thread_id}".encode())


def seal(
    content: bytes, compression: Literal["zlib", "none"], place: Place = ANYWHERE, *, checksum: int | None = None
) -> bytes:
    """Bytes to store.

    Args:
        content: The content.
        compression: Whether it may be compressed.
        place: Where it stands.
        checksum: Its checksum there, if that is known.
    """
    checksum_bytes = _CHECKSUM.pack(place.checksum(content) if checksum is None else checksum)
    if compression == "zlib" and len(content) in COMPRESS_BYTES:
        compressor = zlib.compressobj(1, zlib.DEFLATED, -14, 6, zdict=DICTIONARY)
        deflated = compressor.compress(content) + compressor.flush()
        if len(deflated) < len(content):
            return b"".join((_DEFLATED, checksum_bytes, deflated))
    return b"".join((_PLAIN, checksum_bytes, content))


def unseal(stored: bytes, place: Place = ANYWHERE) -> bytes:
    """The content of stored bytes.

    Args:
        stored: The bytes.
        place: Where they were read.

    Raises:
        CorruptCheckpoint: They are damaged, were stored at another place, or have an unknown format.
    """
    kind = stored[:1]
    rest = memoryview(stored)[_BEGINNING_BYTES:]
    if kind == _PLAIN:
        content = bytes(rest)
    elif kind == _DEFLATED:
        try:
            inflating = zlib.decompressobj(-15, zdict=DICTIONARY)
            content = inflating.decompress(rest, COMPRESS_BYTES.stop)  # never more memory than a compressed one needs
        except zlib.error as error:
            raise CorruptCheckpoint("A stored checkpoint cannot be read back; its bytes are damaged.") from error
        if len(content) not in COMPRESS_BYTES:
            raise CorruptCheckpoint("A stored checkpoint cannot be read back; nothing of its size is compressed.")
        if not inflating.eof or inflating.unused_data:
            raise CorruptCheckpoint("A stored checkpoint cannot be read back; its bytes are cut short, or too many.")
    else:
        raise CorruptCheckpoint(
            "A stored checkpoint is of a format that this version does not know; upgrade locus-mysql."
        )
    if len(stored) < _BEGINNING_BYTES or checksum_of(stored) != place.checksum(content):
        raise CorruptCheckpoint("A stored checkpoint cannot be read back; its checksum is wrong.")
    return content


def checksum_of(stored: bytes) -> int:
    """The checksum that stored bytes begin with."""
    checksum: int = _CHECKSUM.unpack_from(stored, 1)[0]
    return checksum


#: What small contents repeat: the beginning of a payload, a checkpoint of a graph, a message in msgpack. Part of the
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
