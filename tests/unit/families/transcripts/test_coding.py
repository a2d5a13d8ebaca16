"""Stored forms of transcripts: the dictionary that must never change, ids as threads."""

from __future__ import annotations

import hashlib

import pytest

from locus_mysql.families.inspection.owner_rows import Naming
from locus_mysql.families.transcripts.coding import DICTIONARY
from locus_mysql.families.transcripts.family import tables
from locus_mysql.families.transcripts.records import TranscriptKey

KEY = TranscriptKey("test", "project", "session")

NAMING = Naming(tables("locus_"))


def test_the_dictionary_of_the_compressed_format_is_what_stored_items_were_compressed_with() -> None:
    assert hashlib.sha256(DICTIONARY).hexdigest() == "01168a31e61389b91ca8472e745231370737281a3b7257d6317802b9684911ab"


@pytest.mark.parametrize(
    ("key", "thread_id"),
    [
        (KEY, "test/project/session"),
        (KEY._replace(collection="", part="sub/agent"), "test//session/sub~1agent"),
        (KEY._replace(name="~1/~0\0"), "test/project/~01~1~00~2"),
    ],
)
def test_the_id_of_a_thread_names_one_transcript(key: TranscriptKey, thread_id: str) -> None:
    assert NAMING.id_of(dict(zip(NAMING.columns, (one.encode() for one in key), strict=True))) == thread_id
    assert NAMING.key_of(thread_id) == tuple(one.encode() for one in key)


@pytest.mark.parametrize("thread_id", ["", "a", "a/b", "a/b/c/d/e"])
def test_another_id_names_no_transcript(thread_id: str) -> None:
    assert NAMING.key_of(thread_id) is None
