"""Identification of a log's text by length and digest, reusing the hash of an earlier text."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.checkpoints.coding.codec import EncodedState
from locus_mysql.families.checkpoints.coding.digests import hash_logs, size_bytes
from locus_mysql.records import log_digests
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


@pytest.mark.parametrize("changed", [b"axc", b"ab", b"", b"xbcd"])
def test_a_text_that_does_not_extend_the_previous_one_is_hashed_from_its_start(changed: bytes) -> None:
    earlier = HashedLog(log(b"abc"))
    assert earlier.mark == mark_of(b"abc")
    assert HashedLog(log(changed), earlier).mark == mark_of(changed)


def test_two_texts_may_extend_the_same_one() -> None:
    stem = HashedLog(log(b"stem"))
    assert stem.mark == mark_of(b"stem")
    branches = [HashedLog(log(text), stem) for text in (b"stem one", b"stem two")]
    assert [branch.mark for branch in branches] == [mark_of(b"stem one"), mark_of(b"stem two")]
    assert all(branch.begins_with(stem.mark) for branch in branches)


def test_a_log_that_is_the_same_is_not_hashed_again() -> None:
    state = EncodedState(b"{}", (log(b"abc", 3), Log("tools", 9, b"", 0)))
    first = hash_logs(state, {})
    assert hash_logs(state, first)["messages"] is first["messages"]
    assert size_bytes(first) > 3


def test_the_number_of_known_prefixes_is_bounded() -> None:
    hashed = None
    for length in range(1, 200):
        hashed = HashedLog(log(b"x" * length), hashed)
        assert hashed.mark.length == length
    assert hashed is not None
    assert len(hashed._hashed.prefixes) < 50
    assert hashed.begins_with(mark_of(b"x"))


def test_a_longer_text_that_was_asked_about_is_not_taken_for_this_one() -> None:
    hashed = HashedLog(log(b"stem"))
    assert not hashed.begins_with(mark_of(b"stem and more"))
    assert HashedLog(log(b"stem and more"), hashed).mark == mark_of(b"stem and more")


class CountingHasher:
    """Counts the bytes hashed by it and its copies."""

    def __init__(self, counted: list[int], hasher: Any = None) -> None:
        self.counted = counted
        self.hasher = hasher or hashlib.sha256()

    def copy(self) -> CountingHasher:
        return CountingHasher(self.counted, self.hasher.copy())

    def update(self, data: memoryview) -> None:
        self.counted.append(len(data))
        self.hasher.update(data)

    def digest(self) -> bytes:
        return bytes(self.hasher.digest())


def test_a_text_that_grows_is_hashed_once_and_a_shorter_part_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(log_digests, "_NOTHING_HASHED", log_digests._Hashed(CountingHasher(counted), 0, {}))
    hashed = None
    marks = []
    for length in (10, 30, 60, 100):
        hashed = HashedLog(log(b"x" * length), hashed)
        marks.append(hashed.mark)
        assert all(hashed.begins_with(mark) for mark in marks)
    assert hashed is not None
    assert counted == [10, 20, 30, 40]
    assert hashed.begins_with(mark_of(b"x" * 20))
    assert hashed.begins_with(mark_of(b"x" * 20))
    assert counted[4:] == [20]  # from its beginning, once
    longer = HashedLog(log(b"x" * 150), hashed)
    assert longer.mark == mark_of(b"x" * 150)
    assert counted[5:] == [50]
    again = hash_logs(EncodedState(b"{}", (log(b"x" * 150),)), {"messages": longer})["messages"]
    assert again is longer
    empty = hash_logs(EncodedState(b"{}", (log(b""), Log("tools", 9, b"", 0))), {"messages": longer})
    assert empty["messages"] is empty["tools"]
    assert size_bytes(empty) == 0
    assert counted[6:] == []


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
