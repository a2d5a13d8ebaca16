"""What a process remembers of threads."""

from __future__ import annotations

from typing import Any

from locus_mysql.checkpoints.codec import encode
from locus_mysql.checkpoints.delta import Lineage, encode_delta, extend
from locus_mysql.checkpoints.known import KnownThreads


def lineage_of(seq: int, state: dict[str, Any]) -> Lineage:
    return extend((), encode_delta(encode(state), ()), seq, seq.to_bytes(16))


A, B = {"m": ["a"]}, {"m": ["b"]}


def test_threads_unused_for_longest_are_forgotten_first() -> None:
    known = KnownThreads(limit=2)
    for number, name in enumerate("abc", start=1):
        known.saved(name, lineage_of(number, A))
    assert known.lineage_for("a", encode(A)) == ()
    known.saved("b", lineage_of(9, A))
    known.saved("d", lineage_of(4, A))
    assert known.lineage_for("b", encode(A))[0].seq == 9
    assert known.lineage_for("c", encode(A)) == ()


def test_a_state_goes_on_from_the_loaded_or_the_saved_one_whichever_it_has_more_of() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(2, B))
    known.loaded("t", lineage_of(1, A), last_seq=None)
    assert known.lineage_for("t", encode({"m": ["a", "more"]}))[0].seq == 1
    assert known.lineage_for("t", encode({"m": ["b", "more"]}))[0].seq == 2


def test_a_save_replaces_what_was_known() -> None:
    known = KnownThreads()
    known.loaded("t", lineage_of(1, A), last_seq=1)
    known.saved("t", lineage_of(2, B))
    assert known.lineage_for("t", encode(A))[0].seq == 2
    assert known.newest("t")[1] == 2


def test_a_forgotten_thread_is_unknown() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(1, A))
    known.forget("t")
    known.forget("never known")
    assert known.lineage_for("t", encode(A)) == ()
    assert known.newest("t")[0] == ()


def test_reading_an_older_checkpoint_does_not_make_it_the_newest() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(5, B))
    known.loaded("t", lineage_of(1, A), last_seq=None)
    newest, last_seq = known.newest("t")
    assert (newest[0].seq, last_seq) == (5, 5)


def test_a_delete_of_ours_keeps_the_newest_known_unless_it_was_the_newest() -> None:
    known = KnownThreads()
    known.saved("t", lineage_of(5, A))
    known.deleted("t", 3, 6)
    assert known.newest("t")[1] == 6
    known.deleted("t", 5, 7)
    assert known.newest("t")[1] != 7
    known.deleted("t", 3, 9)
    assert known.newest("t")[1] != 9
