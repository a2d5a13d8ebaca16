"""The cache of threads: its content, and answers that it must not keep."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.families.checkpoints.coding.codec import encode
from locus_mysql.families.checkpoints.coding.delta import Lineage, extend
from locus_mysql.families.checkpoints.coding.digests import hash_logs
from locus_mysql.families.checkpoints.thread_cache import CachedState, Snapshot, ThreadCache, ThreadKey
from locus_mysql.lru_cache import LRUCache

from .states import delta_of, hashed

T: ThreadKey = ("tenant", "t")
A, B = {"m": ["a"]}, {"m": ["b"]}
LIMIT_BYTES = 1_000_000


def key(name: str) -> ThreadKey:
    return ("tenant", name)


def lineage_of(seq: int, state: dict[str, Any]) -> Lineage:
    return extend((), delta_of(state), seq, seq.to_bytes(16))


def kept(state: dict[str, Any], memo: object = None, memo_bytes: int = 0) -> CachedState:
    encoded = encode(state)
    return CachedState(encoded, hash_logs(encoded, {}), memo, memo_bytes)


def save(memory: ThreadCache, where: ThreadKey, seq: int, state: dict[str, Any]) -> None:
    before = memory.snapshot(where)
    memory.remember(where, before, before.after_save(lineage_of(seq, state), kept(state)))


def known(memory: ThreadCache, name: str) -> int | None:
    newest = memory.snapshot(key(name)).newest
    return newest[0].seq if newest else None


@pytest.mark.parametrize("unpacked", [0, 1, 3])
def test_threads_unused_for_longest_are_forgotten_first_packed_or_not(unpacked: int) -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES), limit=4, unpacked=unpacked)
    for number, name in enumerate("abcde", start=1):
        save(memory, key(name), number, A)
    assert [known(memory, name) for name in "abcde"] == [None, 2, 3, 4, 5]
    save(memory, key("b"), 9, B)
    save(memory, key("f"), 6, B)
    assert memory.snapshot(key("b")).newest == lineage_of(9, B)
    assert known(memory, "c") is None
    memory.forget(key("d"))
    assert known(memory, "d") is None


def test_a_state_builds_on_the_loaded_or_saved_one_with_which_it_shares_more() -> None:
    snapshot = Snapshot().after_save(lineage_of(2, B), kept(B))
    assert snapshot.version is not None
    snapshot = snapshot.after_loading(lineage_of(1, A), snapshot.version)
    assert snapshot.lineage_for(hashed({"m": ["a", "more"]}))[0].seq == 1
    assert snapshot.lineage_for(hashed({"m": ["b", "more"]}))[0].seq == 2
    assert snapshot.newest[0].seq == 2


def test_a_state_read_at_another_version_is_independent() -> None:
    snapshot = Snapshot().after_save(lineage_of(2, B), kept(B)).after_loading(lineage_of(1, A), b"another")
    assert snapshot == Snapshot((lineage_of(1, A),), (), b"another")


def test_an_answer_that_arrives_after_another_operation_ended_is_not_remembered() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 1, A)
    before = memory.snapshot(T)  # a load begins
    memory.delete_checkpoint(T, before, 1, b"after the delete")
    memory.remember(T, before, before.after_loading(lineage_of(1, A), lineage_of(1, A)[0].token))
    now = memory.snapshot(T)
    assert (now.lineages, now.newest, now.state, now.version) == ((), (), None, b"after the delete")


@pytest.mark.parametrize("known_before", [True, False])
def test_an_answer_that_arrives_after_its_thread_was_forgotten_is_not_remembered(known_before: bool) -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    if known_before:
        save(memory, T, 1, A)
    before = memory.snapshot(T)
    memory.forget(T)
    memory.remember(T, before, before.after_loading_newest(lineage_of(1, A), b"v", kept(A)))
    assert memory.snapshot(T).lineages == ()
    assert memory.snapshot(T).state is None


def test_of_two_saves_at_once_the_later_one_is_remembered_in_whichever_order_they_end() -> None:
    for order in ((1, 2), (2, 1)):
        memory = ThreadCache(LRUCache(LIMIT_BYTES))
        before = memory.snapshot(T)
        for seq in order:
            memory.remember(T, before, before.after_save(lineage_of(seq, A), kept(A)))
        assert memory.snapshot(T).newest[0].seq == 2


def test_a_load_that_finds_nothing_keeps_a_concurrent_save_in_the_cache() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    before = memory.snapshot(T)
    save(memory, T, 1, A)
    memory.forget(T, before)
    assert memory.snapshot(T).newest[0].seq == 1
    memory.forget(T, memory.snapshot(T))
    assert memory.snapshot(T).newest == ()


def test_a_delete_of_ours_keeps_the_newest_known_unless_it_was_the_newest() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 5, A)
    memory.delete_checkpoint(T, memory.snapshot(T), 3, b"after")
    assert (memory.snapshot(T).newest[0].seq, memory.snapshot(T).version) == (5, b"after")
    assert memory.snapshot(T).state is not None
    memory.delete_checkpoint(T, memory.snapshot(T), 3, None)  # another process had written: the version is unknown
    assert memory.snapshot(T).version == b"after"
    memory.delete_checkpoint(T, memory.snapshot(T), 5, b"later")
    assert memory.snapshot(T).newest == ()
    assert memory.snapshot(T).state is None


def test_where_processes_take_turns_a_thread_is_marked_as_shared() -> None:
    first = Snapshot().after_loading_newest(lineage_of(1, A), b"1", kept(A))
    assert not first.shared
    second = first.after_loading_newest(lineage_of(2, A), b"2", kept(A))  # another process saved
    assert second.shared
    third = second.after_save(lineage_of(3, A), kept(A))
    assert third.shared
    assert third.version is not None
    assert not third.after_loading_newest(lineage_of(3, A), third.version, kept(A)).shared


def test_a_thread_not_loaded_again_so_far_is_taken_for_shared_if_the_one_before_was() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 1, A)
    assert not memory.is_shared(memory.snapshot(T))
    before = memory.snapshot(T)
    memory.remember(T, before, before.after_loading_newest(lineage_of(2, A), b"2", kept(A)))  # another process saved
    save(memory, key("other"), 1, A)
    assert memory.is_shared(memory.snapshot(key("other")))
    before = memory.snapshot(key("other"))
    assert before.version is not None
    memory.remember(key("other"), before, before.after_loading_newest(lineage_of(1, A), before.version, kept(A)))
    save(memory, key("third"), 1, A)
    assert not memory.is_shared(memory.snapshot(key("third")))
    assert memory.is_shared(memory.snapshot(T))


def test_states_kept_stay_within_the_limit_and_those_used_longest_ago_go_first() -> None:
    memory = ThreadCache(LRUCache(2 * kept(A, memo_bytes=10_000).size_bytes))
    for name in "ab":
        before = memory.snapshot(key(name))
        memory.remember(key(name), before, before.after_save(lineage_of(1, A), kept(A, memo_bytes=10_000)))
    assert memory.snapshot(key("a")).state is not None
    before = memory.snapshot(key("c"))
    memory.remember(key("c"), before, before.after_save(lineage_of(1, A), kept(A, memo_bytes=10_000)))
    assert [memory.snapshot(key(name)).state is not None for name in "abc"] == [True, False, True]
    assert known(memory, "b") == 1
    before = memory.snapshot(key("c"))
    memory.remember(key("c"), before, before.after_save(lineage_of(2, A), kept(A, memo_bytes=LIMIT_BYTES)))
    assert [memory.snapshot(key(name)).state is not None for name in "abc"] == [True, False, False]


def test_a_limit_of_zero_keeps_no_state() -> None:
    memory = ThreadCache(LRUCache(0))
    save(memory, T, 1, A)
    assert memory.snapshot(T).state is None
    assert memory.snapshot(T).newest[0].seq == 1


def test_a_load_of_a_saved_state_keeps_the_memo_of_its_encoder() -> None:
    snapshot = Snapshot().after_save(lineage_of(1, A), kept(A, memo="texts", memo_bytes=5))
    assert snapshot.version is not None
    loaded = snapshot.after_loading_newest(lineage_of(1, A), snapshot.version, kept(A))
    assert loaded.state is not None
    assert (loaded.state.memo, loaded.state.memo_bytes) == ("texts", 5)


def test_of_states_that_are_as_they_are_the_one_used_last_stays_longest() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES), limit=2, unpacked=2)
    save(memory, key("a"), 1, A)
    save(memory, key("b"), 2, A)
    save(memory, key("a"), 3, A)
    save(memory, key("c"), 4, A)
    assert [known(memory, name) for name in "abc"] == [3, None, 4]
    assert memory.snapshot(key("b")).state is None


def test_a_state_as_large_as_the_limit_is_kept() -> None:
    memory = ThreadCache(LRUCache(kept(A).size_bytes))
    save(memory, T, 1, A)
    assert memory.snapshot(T).state is not None


def test_a_state_loaded_again_does_not_put_the_other_one_out() -> None:
    snapshot = Snapshot().after_save(lineage_of(2, B), kept(B))
    assert snapshot.version is not None
    for seq, state in ((1, A), (2, B), (2, B), (1, A), (3, {"m": ["c"]}), (2, B)):
        snapshot = snapshot.after_loading(lineage_of(seq, state), snapshot.version)
        assert len(snapshot.lineages) <= 2
        assert snapshot.lineages[0][0].seq == seq
    assert [lineage[0].seq for lineage in snapshot.lineages] == [2, 3]


def test_a_delete_begun_before_another_save_ended_does_not_determine_the_version() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 1, A)
    before = memory.snapshot(T)
    save(memory, T, 2, B)
    memory.delete_checkpoint(T, before, 1, b"after the delete")
    assert memory.snapshot(T).version == lineage_of(2, B)[0].token


def test_a_delete_of_the_newest_after_another_process_wrote_keeps_the_known_version() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 1, A)
    memory.delete_checkpoint(T, memory.snapshot(T), 1, None)
    assert memory.snapshot(T).version == lineage_of(1, A)[0].token


def test_a_delete_without_a_known_newest_forgets_only_the_deleted_checkpoint() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    before = memory.snapshot(T)
    memory.remember(T, before, before.after_loading(lineage_of(1, A), b"version"))
    memory.delete_checkpoint(T, memory.snapshot(T), 2, b"after")
    assert memory.snapshot(T).lineages == (lineage_of(1, A),)
    memory.delete_checkpoint(T, memory.snapshot(T), 1, b"later")
    assert (memory.snapshot(T).lineages, memory.snapshot(T).version) == ((), b"later")


def test_a_delete_that_found_nothing_forgets_nothing() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 1, A)
    memory.delete_checkpoint(T, memory.snapshot(T), None, b"after")
    assert (memory.snapshot(T).newest, memory.snapshot(T).version) == (lineage_of(1, A), b"after")


def test_a_load_that_began_before_a_delete_of_an_unknown_thread_is_not_remembered() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    before = memory.snapshot(T)
    memory.delete_checkpoint(T, before, 1, b"after")
    memory.remember(T, before, before.after_loading_newest(lineage_of(1, A), b"before", kept(A)))
    assert memory.snapshot(T)[:5] == Snapshot()[:5]


def test_an_answer_that_is_as_new_but_late_changes_nothing() -> None:
    memory = ThreadCache(LRUCache(LIMIT_BYTES))
    save(memory, T, 2, A)
    before = memory.snapshot(T)  # a load begins
    memory.delete_checkpoint(T, before, 1, b"after the delete")
    memory.remember(T, before, before.after_loading_newest(lineage_of(2, A), b"before the delete", kept(A)))
    assert memory.snapshot(T).version == b"after the delete"
    memory.remember(T, before, before.after_loading(lineage_of(3, B), b"another"))  # it may not be the newest
    assert memory.snapshot(T).newest == lineage_of(2, A)
