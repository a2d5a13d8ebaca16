"""Encoding of statements: quoting of hostile values, and splitting into packets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.dialect.statement import Statement
from locus_mysql.drivers.wire import literals
from locus_mysql.drivers.wire.literals import LARGEST_PART, literal, packets, query
from locus_mysql.errors import InvalidInput

from .answers import framed


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, b"NULL"),
        (5, b"5"),
        (-(2**63), b"-9223372036854775808"),
        (True, b"1"),
        ("it's", b"'it''s'"),
        ("\\'", b"'\\\\'''"),
        ("ä😀", "'ä😀'".encode()),
        (b"\x00\xff'\\", b"_binary'\x00\xff''\\\\'"),
    ],
)
def test_a_literal_is_quoted_by_doubling(value: str | bytes | int | None, expected: bytes) -> None:
    assert literal(value) == expected


@given(st.one_of(st.text(), st.binary()))
def test_a_value_never_leaves_its_quotes(value: str | bytes) -> None:
    quoted = literal(value)
    inside = quoted[quoted.index(b"'") + 1 : -1]
    assert b"'" not in inside.replace(b"\\\\", b"").replace(b"''", b"")
    raw = value if isinstance(value, bytes) else value.encode()
    assert inside.replace(b"''", b"'").replace(b"\\\\", b"\\") == raw


@pytest.mark.parametrize("value", [1.5, [1], bytearray(b"x"), object()])
def test_a_type_that_no_column_holds_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="must be str, bytes, int or None"):
        literal(value)  # type: ignore[arg-type]


def test_too_few_or_too_many_parameters_are_refused() -> None:
    for params in ((), (1, 2)):
        with pytest.raises(TypeError, match="1 placeholders"):
            packets([Statement("SELECT %s", params)], pipeline=True, limit_bytes=1024)


def test_a_percent_sign_in_a_value_is_no_placeholder_for_another() -> None:
    (packet,) = packets([Statement("SELECT %s, %s", ("%s", "a"))], pipeline=True, limit_bytes=1024)
    assert packet == b"SELECT '%s', 'a'"


def test_a_long_statement_is_not_remembered() -> None:
    before = literals._remembered_pieces.cache_info().currsize
    values = tuple(range(40_000))
    statement = Statement(f"SELECT {', '.join(['%s'] * len(values))}", values)
    assert b"39998, 39999" in packets([statement], pipeline=True, limit_bytes=1 << 24)[0]
    assert literals._remembered_pieces.cache_info().currsize == before


def test_a_text_with_a_lone_surrogate_is_named_by_its_position_and_not_shown() -> None:
    with pytest.raises(InvalidInput, match="7 characters holds a lone surrogate at position 6") as caught:
        literal("secret\ud800")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("size", [1, 255, 70_000, LARGEST_PART - 2, LARGEST_PART - 1, LARGEST_PART, 2 * LARGEST_PART])
def test_a_query_is_split_into_packets_and_the_answer_continues_their_numbers(size: int) -> None:
    statements = b"x" * size
    command = query(statements)
    assert command.wire == framed([b"\x03" + statements], number=0)
    assert command.answer_number == (size + 1) // LARGEST_PART + 1
