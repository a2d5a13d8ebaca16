"""Frames content for a column: a format byte, a checksum, and the content, compressed if that helps: `Framing`.

Format 1 stores the content unchanged, format 2 deflates it with a preset dictionary. A family may have more formats,
whose content it reads in another way. Add formats, never change one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

UNCOMPRESSED, DEFLATED = b"\x01", b"\x02"

_CHECKSUM_BYTES = 4

#: Bytes, to be joined.
Pieces: TypeAlias = Sequence[bytes | memoryview]


class DamagedFrame(Exception):
    """Stored bytes are damaged. The message is a clause that never contains their content."""


class Frame(NamedTuple):
    """Stored bytes, divided.

    Args:
        kind: The format.
        checksum: The checksum.
        body: The content as stored, possibly compressed.
    """

    kind: bytes
    checksum: int
    body: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Framing:
    """The frames of one kind of content.

    Args:
        dictionary: Bytes common to small contents. Part of the format.
        compressed_bytes: Contents whose length is in this range are compressed: shorter ones gain nothing, and
            longer ones would slow down a load.
        checksum: How the checksum is stored.
        formats: The formats that are read, each with the one of the two that its content is stored in.
    """

    dictionary: bytes
    compressed_bytes: range
    checksum: struct.Struct
    formats: Mapping[bytes, bytes] = field(default_factory=lambda: {UNCOMPRESSED: UNCOMPRESSED, DEFLATED: DEFLATED})

    def compress(self, pieces: Pieces, compression: Literal["zlib", "none"]) -> tuple[bytes, Pieces]:
        """Return the format and the body of content, in pieces."""
        if compression == "zlib" and (length := sum(map(len, pieces))) in self.compressed_bytes:
            # A window of 16 KB and small tables: creating them for each content takes as long as the compression.
            compressor = zlib.compressobj(1, zlib.DEFLATED, -14, 6, zdict=self.dictionary)
            deflated = compressor.compress(b"".join(pieces)) + compressor.flush()
            if len(deflated) < length:
                return DEFLATED, (deflated,)
        return UNCOMPRESSED, pieces

    def join(self, kind: bytes, checksum: int, body: Pieces) -> bytes:
        """Return the bytes to store."""
        return b"".join((kind, self.checksum.pack(checksum), *body))

    def split(self, stored: bytes) -> Frame:
        """Return the parts of stored bytes.

        Raises:
            DamagedFrame: They have no checksum, or an unknown format.
        """
        if not stored:
            raise DamagedFrame("it is empty")
        if stored[:1] not in self.formats:
            raise DamagedFrame("its format is unknown; if a later version of locus-mysql wrote it, upgrade")
        if len(stored) < 1 + _CHECKSUM_BYTES:
            raise DamagedFrame("it is cut short")
        checksum: int = self.checksum.unpack_from(stored, 1)[0]
        return Frame(stored[:1], checksum, memoryview(stored)[1 + _CHECKSUM_BYTES :])

    def content(self, frame: Frame) -> bytes | memoryview:
        """Return the content of a frame, in no more memory than a compressed one needs.

        Raises:
            DamagedFrame: It cannot be decompressed.
        """
        if self.formats[frame.kind] == UNCOMPRESSED:
            return frame.body
        inflater = zlib.decompressobj(-15, zdict=self.dictionary)
        content = self._inflate(inflater, frame)
        if len(content) not in self.compressed_bytes:
            raise DamagedFrame("nothing of its size is compressed")
        if not inflater.eof or inflater.unused_data:
            raise DamagedFrame("its bytes are cut short, or too many")
        return content

    def beginning(self, stored: bytes) -> bytes | memoryview:
        """Return the beginning of content from the beginning of the stored bytes. It is not verified by a checksum.

        Raises:
            DamagedFrame: It cannot be decompressed, or has an unknown format.
        """
        frame = self.split(stored)
        if self.formats[frame.kind] == UNCOMPRESSED:
            return frame.body
        return self._inflate(zlib.decompressobj(-15, zdict=self.dictionary), frame)

    def _inflate(self, inflater: zlib._Decompress, frame: Frame) -> bytes:
        try:
            return inflater.decompress(frame.body, self.compressed_bytes.stop)
        except zlib.error:
            raise DamagedFrame("it cannot be decompressed") from None
