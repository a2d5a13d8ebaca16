"""Identification of a log's text by length and digest, reusing the hash of an earlier text."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.records.log_digests import EMPTY, HashedLog, Log, Mark

TEXTS = st.lists(st.binary(max_size=40), min_size=1, max_size=50)


def log(text: bytes, count: int = 1) -> Log:
    return Log("messages", 5, text, count)


def mark_of(text: bytes, count: int = 1) -> Mark:
    return Mark(len(text), count, hashlib.sha256(text).digest()[:16]) if text else EMPTY


@given(TEXTS, st.booleans())
def test_a_text_that_grows_has_the_marks_of_one_hashed_whole(pieces: Sequence[bytes], ask_in_between: bool) -> None:
    text = b""
    marks = []
    hashed = None
    for piece in pieces:
        text += piece
        hashed = HashedLog(log(text), hashed)
        if ask_in_between:
            assert hashed.mark == mark_of(text)
        marks.append(mark_of(text))
    assert hashed is not None
    assert all(hashed.begins_with(mark) for mark in reversed(marks))
    assert hashed.mark == mark_of(text)


@given(st.binary(max_size=30), st.binary(max_size=30), st.binary(max_size=30))
def test_a_text_begins_with_a_mark_exactly_if_it_begins_with_its_text(one: bytes, two: bytes, before: bytes) -> None:
    earlier = HashedLog(log(before))
    assert earlier.mark == mark_of(before)
    for hashed in (HashedLog(log(two)), HashedLog(log(two), earlier)):
        assert hashed.begins_with(mark_of(one)) is two.startswith(one)


def test_threads_may_ask_one_log_at_once() -> None:
    text = bytes(range(256)) * 40_000  # long enough for the hasher to let other threads run
    lengths = [len(text) // 4 * quarter for quarter in range(1, 5)]
    expected = {length: mark_of(text[:length]) for length in lengths}
    with ThreadPoolExecutor(4) as threads:
        for _ in range(8):
            shared, together = HashedLog(log(text)), threading.Barrier(4)

            def ask(length: int, shared: HashedLog = shared, together: threading.Barrier = together) -> bool:
                together.wait()
                return shared.begins_with(expected[length]) and shared.mark == expected[len(text)]

            assert all(threads.map(ask, lengths))
            assert HashedLog(log(text + b"!"), shared).mark == mark_of(text + b"!")
