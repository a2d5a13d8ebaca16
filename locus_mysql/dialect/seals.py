"""SQL for sealed bytes that are copied for another owner."""

from __future__ import annotations


def shifted(column: str) -> str:
    """Return the expression of bytes that are sealed for another owner; its parameter ``:shift`` is `Sealing.shift`.

    Bytes too short for a seal are those of no content, or damaged, and are copied as they are. OceanBase's operator ^
    takes bytes for numbers, as MySQL 5.7 does, so the checksum becomes a number.

    Args:
        column: The expression of the bytes: a format byte, a checksum of four bytes, and the content.
    """
    checksum = f"CAST(CONV(HEX(SUBSTRING({column}, 2, 4)), 16, 10) AS UNSIGNED) ^ :shift"
    moved = f"CONCAT(LEFT({column}, 1), UNHEX(LPAD(HEX({checksum}), 8, '0')), SUBSTRING({column}, 6))"
    return f"IF(LENGTH({column}) < 5, {column}, {moved})"
