"""What a process remembers of threads."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.checkpoints.delta import Lineage, extend
from locus_mysql.checkpoints.known import KnownThreads

from .states import delta_of, hashed


def lineage_of(seq: int, state: dict[str, Any]) -> Lineage:
    return extend((), delta_of(state), seq, seq.to_bytes(16))


A, B = {"m": ["a"]}, {"m": ["b"]}


def test_threads_unused_for_longest_are_forgotten_first() -> None:
    known = KnownThreads(limit=2)
    for number, name in enumerate("abc", start=1):
        known.saved(name, lineage_of(number, A))
    assert known.lineage_for("a", hashed(A)) == ()
    known.saved("b", lineage_of(9, A))
    known.saved("d", lineage_of(4, A))
    assert known.lineage_for("b", hashed(A))[0].seq == 9
    assert known.lineage_for("c", hashed(A)) == ()


@pytest.mark.parametrize("unpacked", [0, 1, 3])
def test_threads_kept_packed_are_known_as_well_and_forgotten_in_the_same_order(unpacked: int) -> None:
    known = KnownThreads(limit=4, unpacked=unpacked)
    for number, name in enumerate("abcde", start=1):
        known.saved(name, lineage_of(number, A))
    assert [known.newest(name) for name in "abcde"] == [
        ((), None),
        *((lineage_of(number, A), number.to_bytes(16)) for number in range(2, 6)),
    ]
    known.saved("b", lineage_of(9, B))
    known.saved("f", lineage_of(6, B))
    assert known.newest("b")[0] == lineage_of(9, B)
    assert known.newest("c") == ((), None)
    known.forget("d")
    assert known.newest("d") == ((), None)


def test_a_state_goes_on_from_the_loaded_or_the_saved_one_whichever_it_has_more_of() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(2, B))
    known.loaded("t", lineage_of(1, A), version=None)
    assert known.lineage_for("t", hashed({"m": ["a", "more"]}))[0].seq == 1
    assert known.lineage_for("t", hashed({"m": ["b", "more"]}))[0].seq == 2


def test_a_save_replaces_what_was_known() -> None:
    known = KnownThreads()
    known.loaded("t", lineage_of(1, A), version=b"1")
    known.saved("t", lineage_of(2, B))
    assert known.lineage_for("t", hashed(A))[0].seq == 2
    assert known.newest("t")[1] == lineage_of(2, B)[0].token


def test_a_forgotten_thread_is_unknown() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(1, A))
    known.forget("t")
    known.forget("never known")
    assert known.lineage_for("t", hashed(A)) == ()
    assert known.newest("t")[0] == ()


def test_reading_an_older_checkpoint_does_not_make_it_the_newest() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(5, B))
    known.loaded("t", lineage_of(1, A), version=None)
    newest, version = known.newest("t")
    assert (newest[0].seq, version) == (5, newest[0].token)


def test_a_delete_of_ours_keeps_the_newest_known_unless_it_was_the_newest() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(5, A))
    before = lineage_of(5, A)[0].token
    known.deleted("t", 3, before, b"after")
    assert known.newest("t")[1] == b"after"
    known.deleted("t", 5, b"after", b"later")
    assert known.newest("t")[1] == b"after"
    known.deleted("t", 3, b"another", b"later")
    assert known.newest("t")[1] == b"after"


def test_where_processes_take_turns_the_version_is_not_asked_for_before_a_load() -> None:
    known = KnownThreads()
    known.loaded("t", lineage_of(1, A), version=b"1")
    assert known.newest("t")[1] == b"1"
    known.loaded("t", lineage_of(2, A), version=b"2")  # another process saved
    assert known.newest("t") == (lineage_of(2, A), None)
    assert known.version("t") == b"2"  # a save after this load may rely on it
    known.saved("t", lineage_of(3, A))
    assert known.newest("t")[1] is None
    known.loaded("t", lineage_of(3, A), version=lineage_of(3, A)[0].token)  # nobody else saved this time
    assert known.newest("t") == (lineage_of(3, A), lineage_of(3, A)[0].token)
