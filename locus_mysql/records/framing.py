"""The formats of content that is sealed: as it is, or compressed if that helps: `Framing`.

Format 1 stores the content unchanged, format 2 deflates it with a preset dictionary. A family may have more formats,
whose content it reads in another way. Add formats, never change one.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from ..runtime.sealing import Opened

UNCOMPRESSED, DEFLATED = b"\x01", b"\x02"

#: Bytes, to be joined.
Pieces: TypeAlias = Sequence[bytes | memoryview]


class DamagedFrame(Exception):
    """Stored bytes are damaged. The message is a clause that never contains their content."""


class Frame(NamedTuple):
    """Content that is ready to be sealed: the arguments of `Sealing.seal`.

    Args:
        kind: The format.
        pieces: The content in this format, possibly compressed.
    """

    kind: bytes
    pieces: Pieces


@dataclass(frozen=True, slots=True)
class Framing:
    """The formats of one kind of content.

    Args:
        dictionary: Bytes common to small contents. Part of the format.
        compressed_bytes: Contents whose length is in this range are compressed: shorter ones gain nothing, and
            longer ones would slow down a load.
        formats: The formats that are read, each with the one of the two that its content is stored in.
    """

    dictionary: bytes
    compressed_bytes: range
    formats: Mapping[bytes, bytes] = field(default_factory=lambda: {UNCOMPRESSED: UNCOMPRESSED, DEFLATED: DEFLATED})

    def compress(self, pieces: Pieces, compression: Literal["zlib", "none"]) -> Frame:
        """Return content in pieces as the one of the two formats that is shorter."""
        if compression == "zlib" and (length := sum(map(len, pieces))) in self.compressed_bytes:
            # A window of 16 KB and small tables: creating them for each content takes as long as the compression.
            compressor = zlib.compressobj(1, zlib.DEFLATED, -14, 6, zdict=self.dictionary)
            deflated = compressor.compress(b"".join(pieces)) + compressor.flush()
            if len(deflated) < length:
                return Frame(DEFLATED, (deflated,))
        return Frame(UNCOMPRESSED, pieces)

    def content(self, opened: Opened) -> bytes | memoryview:
        """Return content that was sealed, in no more memory than a compressed one needs.

        Raises:
            DamagedFrame: Its format is unknown, or it cannot be decompressed.
        """
        if self._stored_as(opened) == UNCOMPRESSED:
            return opened.body
        inflater = zlib.decompressobj(-15, zdict=self.dictionary)
        content = self._inflate(inflater, opened)
        if len(content) not in self.compressed_bytes:
            raise DamagedFrame("nothing of its size is compressed")
        if not inflater.eof or inflater.unused_data:
            raise DamagedFrame("its bytes are cut short, or too many")
        return content

    def beginning(self, opened: Opened) -> bytes | memoryview:
        """Return the beginning of content, of which only the beginning was read.

        Raises:
            DamagedFrame: Its format is unknown, or it cannot be decompressed.
        """
        if self._stored_as(opened) == UNCOMPRESSED:
            return opened.body
        return self._inflate(zlib.decompressobj(-15, zdict=self.dictionary), opened)

    def _stored_as(self, opened: Opened) -> bytes:
        if opened.kind not in self.formats:
            raise DamagedFrame("its format is unknown; if a later version of locus-mysql wrote it, upgrade")
        return self.formats[opened.kind]

    def _inflate(self, inflater: zlib._Decompress, opened: Opened) -> bytes:
        try:
            return inflater.decompress(opened.body, self.compressed_bytes.stop)
        except zlib.error:
            raise DamagedFrame("it cannot be decompressed") from None
