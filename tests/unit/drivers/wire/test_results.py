"""Reading of results: any rows arrive intact in any pieces, and invalid answers are refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_mysql.drivers.interface import Result
from locus_mysql.drivers.wire.results import ErrorPacket, ProtocolSurprise, ReceiveBuffer, ResultReader

from ....thoroughness import FULL
from .answers import (
    BIGINT,
    BINARY,
    DECIMAL,
    DOUBLE,
    LARGEST,
    TEXT,
    Answer,
    Done,
    Raw,
    Refused,
    Rows,
    encoded,
    framed,
)


def read(data: bytes, *, pieces: Sequence[int] = (), number: int = 1) -> list[Result]:
    """Return the results in the bytes, cut into pieces of these sizes."""
    reader, inbox = ResultReader(number), ReceiveBuffer()
    complete = False
    for size in (*pieces, len(data)):
        piece, data = data[:size], data[size:]
        if piece:
            assert not complete
            complete = receive(piece, reader, inbox)
    assert complete, "the answer is not complete"
    return reader.results


def receive(piece: bytes, reader: ResultReader, inbox: ReceiveBuffer) -> bool:
    """Put a piece into the buffer, in parts if it does not fit; return whether the answer is complete."""
    complete = False
    while piece:
        room = inbox.room()
        count = min(len(room), len(piece))
        room[:count] = piece[:count]
        complete = inbox.received(count, reader)
        piece = piece[count:]
    return complete


def meant(answer: Answer) -> Result:
    """Return the expected results."""
    if isinstance(answer, Done):
        return Result((), answer.affected, answer.last_insert_id)
    assert isinstance(answer, Rows)
    return Result([tuple(map(_value, answer.columns, row)) for row in answer.rows])


def _value(column: tuple[int, int], raw: Raw) -> object:
    if raw is None or column == BINARY:
        return raw
    return int(raw) if column == BIGINT else raw.decode()


RAW = {
    TEXT: st.one_of(st.none(), st.text(max_size=300).map(str.encode), st.sampled_from([b"", b"a" * 250, b"a" * 251])),
    BINARY: st.one_of(st.none(), st.binary(max_size=300), st.sampled_from([b"\xfe" * 9, b"\xff", bytes(70_000)])),
    BIGINT: st.one_of(st.none(), st.integers(-(2**63), 2**64 - 1).map(lambda number: b"%d" % number)),
}
COLUMNS = st.lists(st.sampled_from([TEXT, BINARY, BIGINT]), min_size=1, max_size=4)
ROWS = COLUMNS.flatmap(
    lambda columns: st.lists(st.tuples(*(RAW[column] for column in columns)), max_size=5).map(
        lambda rows: Rows(columns, rows)
    )
)
COUNT = st.one_of(st.integers(0, 300), st.sampled_from([2**16, 2**24, 2**64 - 1]))
ANSWERS = st.lists(st.one_of(ROWS, st.builds(Done, COUNT, COUNT)), min_size=1, max_size=5)
FORM = st.fixed_dictionaries(
    {"eof": st.booleans(), "tracked": st.sampled_from([b"", b"\0\x07\x05\x04test"]), "number": st.integers(0, 255)}
)
PIECES = st.lists(st.integers(1, 400), max_size=20)


@given(ANSWERS, FORM, PIECES)
def test_any_answer_is_read_correctly_in_any_pieces(
    answers: list[Answer], form: dict[str, object], pieces: list[int]
) -> None:
    data = encoded(answers, **form)  # type: ignore[arg-type]
    assert read(data, pieces=pieces, number=form["number"]) == [*map(meant, answers)]  # type: ignore[arg-type]


@given(ANSWERS, FORM, st.data())
def test_an_answer_that_is_cut_short_is_never_complete(
    answers: list[Answer], form: dict[str, object], data: st.DataObject
) -> None:
    whole = encoded(answers, **form)  # type: ignore[arg-type]
    reader = ResultReader(form["number"])  # type: ignore[arg-type]
    assert not receive(whole[: data.draw(st.integers(0, len(whole) - 1))], reader, ReceiveBuffer())
    assert not reader.complete


@given(st.one_of(ROWS, st.none()), ANSWERS, st.booleans(), PIECES)
def test_an_error_at_any_position_ends_the_answer(
    after: Rows | None, before: list[Answer], eof: bool, pieces: list[int]
) -> None:
    data = encoded([*before, Refused(1690, "ä is out of range", after), Done()], eof=eof)
    with pytest.raises(ErrorPacket) as caught:
        read(data, pieces=pieces)
    assert (caught.value.errno, caught.value.msg) == (1690, "ä is out of range")


@settings(max_examples=400 if FULL else 100)
@given(st.binary(min_size=4, max_size=80), ANSWERS, st.data())
def test_nonsense_is_refused_or_waits_for_more(noise: bytes, answers: list[Answer], data: st.DataObject) -> None:
    whole = encoded(answers)
    begin = data.draw(st.integers(0, len(whole)))
    reader = ResultReader()
    try:
        receive(whole[:begin] + noise + whole[begin + len(noise) :], reader, ReceiveBuffer())
    except (ErrorPacket, ProtocolSurprise):
        pass
    else:
        assert len(reader.results) <= len(answers) + len(noise)


@pytest.mark.parametrize("column", [BIGINT, DECIMAL, DOUBLE, TEXT], ids=["whole", "decimal", "double", "text"])
@pytest.mark.parametrize("value", [b"", b"\0\0\0", b"1.2.3", b"\xff"], ids=repr)
def test_a_value_invalid_for_its_column_is_refused(column: tuple[int, int], value: bytes) -> None:
    if column == TEXT:
        value += b"\xff"  # anything else is text
    with pytest.raises(ProtocolSurprise, match="a packet that cannot be read"):
        read(encoded([Rows([column], [[value]])]))


@pytest.mark.parametrize("eof", [True, False])
@pytest.mark.parametrize("size", [LARGEST - 5, LARGEST - 4, LARGEST, 2 * LARGEST - 4], ids=str)
def test_a_row_larger_than_a_packet_is_joined(size: int, eof: bool) -> None:
    rows = Rows([BINARY, TEXT], [(bytes(size), None), (b"", b"after")])
    data = encoded([rows, Done(1)], eof=eof)
    first, last = read(data, pieces=[2**20] * 10)
    assert [tuple(row) for row in first.rows] == [(bytes(size), None), (b"", "after")]
    assert last.affected == 1


@pytest.mark.parametrize("pieces", [[], [30], [60, 20]])
def test_columns_that_were_read_before_are_distinguished_from_others(pieces: list[int]) -> None:
    columns = [(TEXT, b"a"), (BIGINT, b"1"), (BINARY, b"b")]
    for order in (columns, columns, columns[::-1], columns, columns[1:] + columns[:1], columns[::-1]):
        rows = Rows([column for column, _ in order], [[raw for _, raw in order]])
        first, second = read(encoded([rows, rows]), pieces=pieces)
        assert first == second == meant(rows)


@pytest.mark.parametrize("index", [1, 2, 3])
def test_columns_that_came_before_are_out_of_order_under_other_numbers(index: int) -> None:
    rows = Rows([TEXT, BINARY, BIGINT], [(b"a", b"b", b"1")])
    whole = encoded([rows])
    assert read(whole) == [meant(rows)]
    begin = 0
    for _ in range(index):
        begin += 4 + int.from_bytes(whole[begin : begin + 3], "little")
    shifted = bytearray(whole)
    shifted[begin + 3] += 1
    with pytest.raises(ProtocolSurprise, match="out of order"):
        read(bytes(shifted))
    with pytest.raises(ProtocolSurprise, match="out of order"):
        read(whole[:5] + encoded([rows], number=7)[5:])


@pytest.mark.parametrize("size", [100, 65_000, 66_000, 500_000])
def test_values_are_kept_when_the_next_answer_comes_where_they_stood(size: int) -> None:
    inbox, columns, answers = ReceiveBuffer(), [BINARY, TEXT, BIGINT], []
    for letter in (b"a", b"b"):
        reader = ResultReader()
        data = encoded([Rows(columns, [(letter * size, letter * size, b"%d" % size), (letter, None, b"1")])])
        for begin in range(0, len(data), 16_384):
            complete = receive(data[begin : begin + 16_384], reader, inbox)
        assert complete
        answers.append(reader.results[0])
    assert [list(row) for row in answers[0].rows] == [[b"a" * size, "a" * size, size], [b"a", None, 1]]


def test_a_large_answer_leaves_no_large_buffer() -> None:
    inbox, reader = ReceiveBuffer(), ResultReader()
    assert receive(encoded([Rows([BINARY], [(bytes(1_000_000),)])]), reader, inbox)
    assert len(inbox.room()) == len(ReceiveBuffer().room())


OK = b"\0\0\0\2\0\0\0"


@pytest.mark.parametrize(
    ("data", "surprise"),
    [
        (framed([OK], number=2), "out of order"),
        (framed([OK]) + framed([OK], number=2), "more than"),
        (framed([OK, OK]) + b"\0", "more than"),
        (framed([b"\xff\x10\x04#HY000no", OK]), "more than"),
        (framed([b"\xff\x10\x04no without a state"]), "error that cannot be read"),
        (framed([b"\xff\x10\x04#HY0"]), "error that cannot be read"),
        (framed([b"\xff\x10"]), "error that cannot be read"),
        (framed([b"\xff\0\0#HY000a number that is no error's"]), "error that cannot be read"),
        (framed([b"", OK]), "empty"),
        (framed([b"\xfb/etc/passwd"]), "neither rows"),
        (framed([b"\xfe\0\0\2\0"]), "neither rows"),
        (framed([b"\x01\x02"]), "number of columns"),
        (framed([b"\0\0\0\2"]), "cut short"),
        (framed([b"\x01", b"\x03def"]), "column"),
        (encoded([Rows([TEXT], [(b"a", b"b")])]), "another size"),
        (encoded([Rows([TEXT, TEXT], [(b"a",)])]), r"another size|cannot be read"),
        (encoded([Rows([TEXT], [(b"\xff\xff",)])]), "cannot be read"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "out of order"),
    ],
)
def test_an_invalid_answer_is_refused(data: bytes, surprise: str) -> None:
    with pytest.raises(ProtocolSurprise, match=surprise):
        ResultReader().take(data)


def test_an_error_sent_before_the_server_closes_is_read_whatever_its_packet_number() -> None:
    data = encoded([Refused(4031, "The client was disconnected by the server because of inactivity.")], number=0)
    with pytest.raises(ErrorPacket) as caught:
        ResultReader(1).take(data)
    assert caught.value.errno == 4031


def test_a_reader_and_its_bytes_are_freed_at_once() -> None:
    reader = ResultReader()
    assert receive(encoded([Rows([TEXT], [(b"a",)]), Done()]), reader, ReceiveBuffer())
    gone = weakref.ref(reader)
    gc.disable()
    try:
        del reader
        assert gone() is None
    finally:
        gc.enable()
