"""Stored forms of transcripts: formats that must never change, checks of names, ids as threads."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.transcripts.dialect import TranscriptDialect
from locus_mysql.errors import CorruptCheckpoint, InvalidInput
from locus_mysql.families.transcripts.coding import DICTIONARY, encode_content, row_key, unframe
from locus_mysql.families.transcripts.inspection import key_of_thread, thread_id_of
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey, Write
from locus_mysql.families.transcripts.writing import ITEMS_LIMIT, PlannedWrite, WritingOperations
from locus_mysql.runtime.sealing import Opened, Sealing

KEY = TranscriptKey("test", "project", "session")
CONFIG = MySQLConfig(database="app")


def test_the_dictionary_of_the_compressed_format_is_what_stored_items_were_compressed_with() -> None:
    assert hashlib.sha256(DICTIONARY).hexdigest() == "01168a31e61389b91ca8472e745231370737281a3b7257d6317802b9684911ab"


@pytest.mark.parametrize("length", [0, 1, 150, 170, 5_000, 65_530, 70_000])
@pytest.mark.parametrize("compression", ["zlib", "none"])
def test_content_is_stored_and_read_equal(length: int, compression: Any) -> None:
    text = "abc" * (length // 3)
    stored = encode_content(text, "The item", compression)
    assert unframe(opened(stored.kind, b"".join(stored.pieces)), "Item 1") == b'"%s"' % text.encode()
    assert stored.kind == (b"\x02" if compression == "zlib" and 170 <= length <= 65_530 else b"\x01")


@pytest.mark.parametrize(("kind", "body"), [(b"", b""), (b"\x03", b"x"), (b"\x02", b""), (b"\x02", b"abc")])
def test_content_of_an_unknown_format_or_cut_off_is_damage(kind: bytes, body: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="Item 1 cannot be read"):
        unframe(opened(kind, body), "Item 1")


def opened(kind: bytes, body: bytes) -> Opened:
    return Opened(kind, memoryview(body))


@pytest.mark.parametrize(
    ("key", "thread_id"),
    [
        (KEY, "test/project/session"),
        (KEY._replace(collection="", part="sub/agent"), "test//session/sub~1agent"),
        (KEY._replace(name="~1/~0"), "test/project/~01~1~00"),
    ],
)
def test_the_id_of_a_thread_names_one_transcript(key: TranscriptKey, thread_id: str) -> None:
    assert thread_id_of(key) == thread_id
    assert key_of_thread(thread_id) == key


@pytest.mark.parametrize("thread_id", ["", "a", "a/b", "a/b/", "/b/c", "a/b/c/d/e"])
def test_another_id_names_no_transcript(thread_id: str) -> None:
    assert key_of_thread(thread_id) is None


@pytest.mark.parametrize(
    "key", [KEY._replace(kind=""), KEY._replace(kind="k" * 33), KEY._replace(name="é" * 401), KEY._replace(part="\0")]
)
def test_a_key_that_does_not_fit_is_refused(key: TranscriptKey) -> None:
    with pytest.raises(InvalidInput):
        row_key("default", key)


def test_a_write_is_checked_before_anything_is_sent() -> None:
    writing = WritingOperations(CONFIG, TranscriptDialect())
    many = [NewItem(number) for number in range(ITEMS_LIMIT + 1)]
    for writes in ([Write(KEY, many)], [Write(KEY, [NewItem(object())])], [Write(KEY), Write(KEY)]):
        with pytest.raises(InvalidInput):
            next(writing.write(writes))


def test_of_items_with_one_id_in_a_write_the_first_counts() -> None:
    planned = PlannedWrite(
        CONFIG, Write(KEY, [NewItem(1, "a"), NewItem(2, "a"), NewItem(3), NewItem(3)]), Sealing(None, "transcripts")
    )
    assert [one.item.content for one in planned.items] == [1, 3, 3]
