"""Encoding of commands."""

from __future__ import annotations

import pytest

from locus_mysql.drivers.wire.literals import LARGEST_PART, query

from .answers import framed


@pytest.mark.parametrize("size", [1, 255, 70_000, LARGEST_PART - 2, LARGEST_PART - 1, LARGEST_PART, 2 * LARGEST_PART])
def test_a_query_is_split_into_packets_and_the_answer_continues_their_numbers(size: int) -> None:
    statements = b"x" * size
    command = query(statements)
    assert command.wire == framed([b"\x03" + statements], number=0)
    assert command.answer_number == (size + 1) // LARGEST_PART + 1
