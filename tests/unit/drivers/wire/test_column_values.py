"""Decoding of column values."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from locus_mysql.drivers.wire.results import decoder, parse_datetime

BINARY, UTF8 = 63, 255


@pytest.mark.parametrize(
    ("column_type", "charset", "raw", "value"),
    [
        (8, BINARY, b"18446744073709551615", 2**64 - 1),
        (253, UTF8, b"\xc3\xa4", "ä"),
        (253, BINARY, b"\xc3\xa4", b"\xc3\xa4"),
        (252, UTF8, b"text", "text"),
        (252, BINARY, b"\xff", b"\xff"),
        (245, BINARY, b'{"\xc3\xa4": 1}', '{"ä": 1}'),
        (246, BINARY, b"1.50", Decimal("1.50")),
        (5, BINARY, b"1e3", 1000.0),
        (12, BINARY, b"2024-02-29 01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500_000)),
        (10, BINARY, b"2024-02-29", "2024-02-29"),
    ],
)
def test_a_column_s_type_and_charset_decide(column_type: int, charset: int, raw: bytes, value: object) -> None:
    decoded = decoder(column_type, charset)(raw)
    assert decoded == value
    assert type(decoded) is type(value)


def test_a_zero_date_stays_text() -> None:
    assert parse_datetime("0000-00-00 00:00:00") == "0000-00-00 00:00:00"
