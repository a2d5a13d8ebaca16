"""Stored forms of transcripts: the dictionary that must never change, ids as threads, lines of exports."""

from __future__ import annotations

import hashlib

import pytest

from locus_mysql.families.transcripts.coding import DICTIONARY
from locus_mysql.families.transcripts.inspection import key_of_thread, thread_id_of
from locus_mysql.families.transcripts.records import TranscriptKey
from locus_mysql.families.transcripts.transfer import line_of, record_of
from locus_mysql.runtime.checksummed_jsonl import content_of

KEY = TranscriptKey("test", "project", "session")


def test_the_dictionary_of_the_compressed_format_is_what_stored_items_were_compressed_with() -> None:
    assert hashlib.sha256(DICTIONARY).hexdigest() == "01168a31e61389b91ca8472e745231370737281a3b7257d6317802b9684911ab"


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


def test_a_record_is_read_from_its_line_equal() -> None:
    names = {"kind": "k", "collection": "", "name": "n", "part": "p"}
    time = "2026-01-02T03:04:05.000006Z"
    for fields in (
        {"seq": 3, "id": None, "content": ["\ud800", float("inf"), 2**70], "created_at": time},
        {
            "revision": 1,
            "tag": "t",
            "scope": None,
            "state": {"b": 1, "a": 2},
            "created_at": time,
            "expires_at": None,
            "last_seq": 7,
        },
    ):
        record = record_of({**names, **fields})
        again = content_of(line_of(record), 2, constants=True)
        assert again == {**names, **fields}
