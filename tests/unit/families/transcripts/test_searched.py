"""A search in transcripts reads a bounded number of bytes, in pages."""

from __future__ import annotations

from locus_mysql.dialect.transcripts.inspection import SizeRow
from locus_mysql.dialect.transcripts.pieces import RowKey
from locus_mysql.families.transcripts.searched import PAGE_BYTES, SEARCHED_BYTES, pages_of, pieces_of

ONE, TWO = RowKey("t", b"k", b"", b"one", b""), RowKey("t", b"k", b"", b"two", b"")


def test_small_items_of_several_transcripts_are_one_page() -> None:
    sizes = {ONE: [SizeRow(9, 10), SizeRow(7, 10)], TWO: [SizeRow(3, 10)]}
    ((one, two),) = pages_of(pieces_of(sizes))
    assert (one.key, one.first, one.last, one.size_bytes) == (ONE, 7, 9, 20)
    assert (two.key, two.first, two.last) == (TWO, 3, 3)


def test_pages_and_their_sum_are_bounded_and_the_newest_items_come_first() -> None:
    sizes = {ONE: [SizeRow(seq, PAGE_BYTES // 3) for seq in range(200, 0, -1)], TWO: [SizeRow(1, PAGE_BYTES)]}
    pages = list(pages_of(pieces_of(sizes)))
    assert all(sum(piece.size_bytes for piece in page) <= PAGE_BYTES for page in pages)
    read = sum(piece.size_bytes for page in pages for piece in page)
    assert SEARCHED_BYTES - PAGE_BYTES < read <= SEARCHED_BYTES
    assert pages[0][0].last == 200
    assert {piece.key for page in pages for piece in page} == {ONE}


def test_an_item_larger_than_a_page_is_read_alone_and_one_larger_than_all_is_not() -> None:
    sizes = {ONE: [SizeRow(2, 3 * PAGE_BYTES), SizeRow(1, 1)], TWO: [SizeRow(2, SEARCHED_BYTES)]}
    pages = list(pages_of(pieces_of(sizes)))
    assert [[(piece.first, piece.last) for piece in page] for page in pages] == [[(2, 2)], [(1, 1)]]
