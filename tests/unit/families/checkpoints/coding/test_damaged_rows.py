"""Damaged and forged rows of a state are noticed and named; none gives another state."""

from __future__ import annotations

import json
import struct
import tracemalloc
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.coding.delta import PAYLOAD, StoredRow, assemble
from locus_mysql.families.checkpoints.coding.payload import DICTIONARY

from .....thoroughness import FULL
from ..states import CLEAR
from .stored_rows import State, Table, message


class TestDamage:
    """Damage to the rows of a state is detected, or leaves the state unchanged."""

    @staticmethod
    def rows(turns: int = 63) -> list[StoredRow]:
        """Return the longest lineage of a conversation: rows of three formats, the newest provisional."""
        table, lineage = Table(), ()
        state: State = {"run_id": "r", "messages": [message(0, 3_000)], "steps": [1]}
        for turn in range(turns):
            state["messages"].append(message(turn, 480))
            if turn == turns // 2:
                state["messages"][1] = message(-1, 480)
            state["steps"] = [turn]
            _, lineage = table.save(state, lineage, compression="none" if turn % 3 else "zlib")
        table.save({**state, "iteration": 1}, lineage, provisional=True)
        return max((table.chain(seq) for seq in table.rows), key=len)

    def test_the_rows_have_copies_and_are_compressed_or_not(self) -> None:
        assert {row.payload[:1] for row in self.rows()} == {b"\x01", b"\x02", b"\x03"}

    def assert_noticed(self, rows: list[StoredRow], which: int, payload: bytes) -> None:
        if payload == rows[which].payload:
            return
        damaged = [row._replace(payload=payload) if n == which else row for n, row in enumerate(rows)]
        with pytest.raises(CorruptCheckpoint, match=rf"row {rows[which].seq} of thread 't'"):
            assemble(damaged, "t", CLEAR)

    def test_a_missing_row_is_noticed(self) -> None:
        rows = self.rows()
        for missing in range(1, len(rows)):
            with pytest.raises(CorruptCheckpoint):
                assemble([*rows[:missing], *rows[missing + 1 :]], "t", CLEAR)

    def test_a_row_too_many_is_noticed(self) -> None:
        rows = self.rows()
        for twice in range(len(rows)):
            with pytest.raises(CorruptCheckpoint):
                assemble([*rows[:twice], rows[twice], *rows[twice:]], "t", CLEAR)

    def test_single_bits_that_flip_are_noticed(self) -> None:
        rows, step = self.rows(4), 1 if FULL else 7  # every bit of a byte now and then
        for which, row in enumerate(rows):
            for bit in range(0, 8 * len(row.payload), step):
                flipped = bytearray(row.payload)
                flipped[bit // 8] ^= 1 << bit % 8
                self.assert_noticed(rows, which, bytes(flipped))

    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_other_damage_of_any_row_is_noticed(self, data: st.DataObject) -> None:
        rows = self.rows()
        which = data.draw(st.integers(0, len(rows) - 1))
        payload = rows[which].payload
        offset = data.draw(st.integers(0, len(payload) - 1))
        other = data.draw(st.binary(max_size=6))
        for damaged in (
            payload[:offset],  # cut off
            payload[offset:],
            payload[:offset] + other + payload[offset + len(other) :],  # overwritten
            payload[:offset] + other + payload[offset:],  # put in
            payload[:offset] + payload[offset + 1 :],  # left out
            data.draw(st.sampled_from(rows)).payload,  # that of another row
        ):
            self.assert_noticed(rows, which, damaged)

    @given(st.integers(0, 4), st.binary(min_size=16, max_size=16))
    @settings(max_examples=30, deadline=None)
    def test_another_token_is_noticed(self, which: int, token: bytes) -> None:
        rows = self.rows()
        damaged = [row._replace(token=token) if n == which else row for n, row in enumerate(rows)]
        with pytest.raises(CorruptCheckpoint):
            assemble(damaged, "t", CLEAR)

    def test_a_format_of_a_later_version_is_named(self) -> None:
        with pytest.raises(CorruptCheckpoint, match="later version"):
            assemble([checked(b"\x09", b"whatever")], "t", CLEAR)


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

    @pytest.mark.parametrize("body", [b"", b"\x00", b"\x00" * 7])
    def test_a_body_too_short_for_its_lengths_is_refused(self, body: bytes) -> None:
        with pytest.raises(CorruptCheckpoint, match="row 7 of thread 't'"):
            assemble([checked(b"\x01", body)], "t", CLEAR)

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
