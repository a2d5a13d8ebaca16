"""Checksums of rows with readable columns: `checksum`, and `checksum_sql` for the server.

The checksum of a row covers its key, such as tenant, namespace and name, and its content. It is the CRC32 of the names
of the key and of a summary of each content, with NUL bytes between them; the summary of text or bytes is their CRC32,
so that the server does not have to join large values. Both functions give the same number for the same row.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeAlias

Content: TypeAlias = str | bytes | int | None


def checksum(row_key: Sequence[str | bytes], *contents: Content) -> int:
    """Return the checksum of a row.

    Args:
        row_key: The names that identify the row.
        contents: Its other columns.
    """
    parts = [name.encode() if isinstance(name, str) else name for name in row_key]
    parts += [_summary(content) for content in contents]
    return zlib.crc32(b"\0".join(parts))


def _summary(content: Content) -> bytes:
    if content is None:
        return b""
    if isinstance(content, str):
        content = content.encode()
    return b"%d" % (content if isinstance(content, int) else zlib.crc32(content))


def checksum_sql(row_key: Sequence[str], texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> str:
    """Return the SQL expression that computes the same as `checksum`.

    Args:
        row_key: Expressions of names; none may be NULL.
        texts: Expressions of text or bytes.
        numbers: Expressions of whole numbers, which follow the texts.
    """
    summaries = [*(f"COALESCE(CRC32({text}), '')" for text in texts), *(f"COALESCE({one}, '')" for one in numbers)]
    return f"CRC32(CONCAT_WS(0x00, {', '.join([*row_key, *summaries])}))"


def with_version(checksum: int, version: int) -> int:
    """Return a checksum that also covers a version, such that the server can replace the version."""
    return checksum ^ (version ^ version >> 32) & 0xFFFFFFFF


def version_sql(version: str) -> str:
    """Return the SQL expression of the value that `with_version` combines with a checksum by XOR."""
    return f"(({version} ^ ({version} >> 32)) & 0xFFFFFFFF)"
