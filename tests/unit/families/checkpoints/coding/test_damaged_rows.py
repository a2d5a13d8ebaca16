"""Damaged and forged rows of a state are noticed and named; none gives another state."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.coding.delta import PAYLOAD, StoredRow, assemble
from locus_mysql.families.checkpoints.coding.payload import DICTIONARY

from ..states import CLEAR
from .stored_rows import State

HEADER: State = {"p": 0, "t": 0, "c": {"a": 6}, "l": [["a", 0, 3, 2, "00" * 16]]}


def forged(header: Any, head: bytes = b'{"a":[]}', suffixes: bytes = b"1,2", **lengths: int) -> StoredRow:
    """Return a row with a valid seal, as anybody with write access to the tables can make it."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = (
        struct.pack("<II", lengths.get("of_text", len(text)), lengths.get("of_head", len(head)))
        + text
        + head
        + suffixes
    )
    return checked(b"\x01", body)


def checked(kind: bytes, body: bytes) -> StoredRow:
    token = b"t" * 16
    return StoredRow(7, token, CLEAR.seal(kind, (body,), PAYLOAD, token))


class TestForgedRows:
    """Rows with valid seals whose content no save writes."""

    def test_a_row_as_a_save_writes_it_is_read(self) -> None:
        assert assemble([forged(HEADER)], "t", CLEAR)[0].text() == b'{"a":[1,2]}'

    @pytest.mark.parametrize(
        "header",
        [
            b"",
            b"{",
            b"\xff",
            b"[" * 100_000,
            [],
            5,
            None,
            {},
            {**HEADER, "p": -1},
            {**HEADER, "p": 0.5},
            {**HEADER, "p": True},
            {**HEADER, "p": "0"},
            {**HEADER, "t": None},
            {**HEADER, "c": []},
            {**HEADER, "c": {"a": -6}},
            {**HEADER, "c": {"a": 5}},
            {**HEADER, "c": {"a": 10**30}},
            {**HEADER, "c": {"a": 6, "b": 6}},
            {**HEADER, "c": {"a": None}},
            {**HEADER, "l": 5},
            {**HEADER, "l": {"a": 1}},
            {**HEADER, "l": [5]},
            {**HEADER, "l": []},
            {**HEADER, "l": [["b", 0, 3, 2, "00" * 16]]},
            {**HEADER, "l": [[[], 0, 3, 2, "00" * 16]]},
            {**HEADER, "l": [["a", 1, 3, 2, "00" * 16]]},
            {**HEADER, "l": [["a", 0, -3, 2, "00" * 16], ["a", 0, 6, 2, "00" * 16]]},
            {**HEADER, "l": [["a", 0, 4, 2, "00" * 16]]},
            {**HEADER, "l": [["a", 0, 2, 2, "00" * 16]]},
            {**HEADER, "l": [["a", 0, 3, -2, "00" * 16]]},
            {**HEADER, "l": [["a", 0, 3, 2, "zz" * 16]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00"]]},
            {**HEADER, "l": [["a", 0, 3, 2, 5]]},
            {**HEADER, "l": [["a", 0, 3, 2]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, []]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, 5]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [0, 0]]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [0, 0, 4]]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [0, 1, 3]]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [-1, 0, 3]]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [0, "0", 3]]]},
            {**HEADER, "l": [["a", 1, 3, 2, "00" * 16, [0, 0, 3]]]},
            {**HEADER, "l": [["a", 0, 3, 2, "00" * 16, [0, 0, 3], []]]},
        ],
        ids=lambda header: repr(header)[:60],
    )
    def test_a_header_of_another_shape_is_refused(self, header: Any) -> None:
        with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
            assemble([forged(header)], "t", CLEAR)

    @pytest.mark.parametrize("head", [b"", b"[]", b"5", b'"a"', b'{"a":[]', b'{"a":5 }', b' "a":[]}'])
    def test_a_head_that_is_not_of_an_object_is_refused(self, head: bytes) -> None:
        with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
            assemble([forged(HEADER, head)], "t", CLEAR)
        with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
            assemble([forged({**HEADER, "c": {}, "l": []}, head[:-1], b"")], "t", CLEAR)

    @pytest.mark.parametrize(
        "lengths", [{"of_text": 2**32 - 1}, {"of_head": 2**32 - 1}, {"of_text": 0}, {"of_head": 9}]
    )
    def test_lengths_that_are_not_there_are_refused(self, lengths: dict[str, int]) -> None:
        with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
            assemble([forged(HEADER, **lengths)], "t", CLEAR)

    @pytest.mark.parametrize(
        ("row", "words"),
        [
            (StoredRow(7, b"t" * 16, b""), "it is empty"),
            (StoredRow(7, b"t" * 16, b"\x01\x00"), "it is cut short"),
            (StoredRow(7, b"t" * 16, b"\x05" + bytes(9)), "its bytes were changed"),
            (checked(b"\x05", bytes(9)), "a later version"),
            (forged(HEADER, of_head=9, suffixes=b""), "it was cut off"),
        ],
    )
    def test_the_error_names_the_damage(self, row: StoredRow, words: str) -> None:
        with pytest.raises(CorruptCheckpoint, match=words):
            assemble([row], "t", CLEAR)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda deflated: deflated[:-1], id="cut off"),
            pytest.param(lambda deflated: deflated + b"x", id="something behind it"),
        ],
    )
    def test_a_compressed_payload_must_be_complete_without_trailing_bytes(self, change: Any) -> None:
        def compressed(body: bytes, change: Any = bytes) -> StoredRow:
            compressor = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=DICTIONARY)
            return checked(b"\x02", change(compressor.compress(body) + compressor.flush()))

        text = forged({**HEADER, "l": [["a", 0, 300, 150, "00" * 16]]}, suffixes=b"1," * 149 + b"10").payload
        assert text is not None
        body = text[5:]
        assert len(assemble([compressed(body)], "t", CLEAR)[0].text()) == 308
        with pytest.raises(CorruptCheckpoint, match="cut short, or too many"):
            assemble([compressed(body, change)], "t", CLEAR)
        short = forged(HEADER).payload
        assert short is not None
        with pytest.raises(CorruptCheckpoint, match="of its size"):  # so short a body is not compressed
            assemble([compressed(short[5:])], "t", CLEAR)

    def test_a_payload_that_inflates_without_end_is_refused_at_a_bound(self) -> None:
        compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
        deflated = b"".join(compressor.compress(bytes(2**24)) for _ in range(16)) + compressor.flush()
        row = checked(b"\x02", deflated)
        tracemalloc.start()
        try:
            with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
                assemble([row], "t", CLEAR)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 500_000
