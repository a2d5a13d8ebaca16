"""The work of working memory grows linearly with stored, queued and sent data."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.families.working.storages.outages import mirror
from locus_mysql.families.working.storages.outages.journal import Journal
from locus_mysql.families.working.storages.outages.merging import OwnWrites, Snapshot, doubtful_entries, merge
from locus_mysql.families.working.storages.outages.session_state import LearnedStamps, SessionStates

from ....growth import assert_linear, steps_of
from .storages.frail import call, variable


def noted(count: int) -> Journal:
    journal = Journal()
    for number in range(count):
        journal.record(call(calls.Write((variable(f"v{number}", 1),))), calls.Reply((None,), 1), 0)
    return journal


def test_queueing_writes_is_linear_in_their_number() -> None:
    assert_linear(lambda count: steps_of(noted, count), 250)


def test_removing_queued_writes_is_linear_in_their_number() -> None:
    def removed(journal: Journal) -> None:
        for part in list(journal.parts):
            journal.split(part)
        for part in list(journal.parts):
            journal.remove(part)
        assert (journal.entries, journal.size_bytes) == (0, 0)

    # `steps_of` runs its work twice: the second run finds an empty journal, so each run gets its own journal.
    assert_linear(lambda count: steps_of(lambda: removed(noted(count))), 250)


def snapshot(count: int, version: int = 1) -> Snapshot:
    versions = {f"v{number}": version for number in range(count)}
    found = {name: calls.Found(b"1", None) for name in versions}
    return Snapshot(calls.Versions(versions), found, None, (), version)


def test_merging_a_large_call_is_linear_in_its_variables() -> None:
    def merged(count: int) -> None:
        journal = Journal()
        write = calls.Write(tuple(variable(f"v{number}", 1) for number in range(count)))
        increments = tuple(calls.Increment(f"v{number}", 1) for number in range(count))
        journal.record_uncertain(call(write, calls.Clear(), *increments), calls.Reply((None, 0, *[1] * count), 1), 0)
        (part,) = journal.parts
        merge(part, snapshot(count, 9), OwnWrites(1), 0)
        doubtful, lost = doubtful_entries(part, snapshot(count, 9), OwnWrites(1))
        assert len(doubtful) == len(lost) == count
        journal.drop(part, doubtful)

    assert_linear(lambda count: steps_of(merged, count), 250)


def test_asking_whether_versions_are_own_is_nearly_linear_in_the_replayed_parts() -> None:
    def asked(count: int) -> None:
        own = OwnWrites()
        for stamp in range(count):
            own.wrote(3 * stamp, 3 * stamp + 1)  # another process writes between any two parts
        for stamp in range(count):
            assert own.version(3 * stamp + 1)
            assert not own.version(3 * stamp + 2)

    assert_linear(lambda count: steps_of(asked, count), 250)


def test_own_versions_without_others_between_are_one_span() -> None:
    own = OwnWrites()
    for before, stamp in pairwise((0, 4, 9, 12)):
        own.wrote(before, stamp)
    own.wrote(20, 22)
    assert own.spans == [(0, 12), (20, 22)]
    own.wrote(0, 30)  # the session did not exist, so it wrote all versions up to 30
    assert own.spans == [(0, 30)]
    assert [own.version(version) for version in (1, 30, 31)] == [True, True, False]


def test_comparing_read_notes_is_linear_in_their_number() -> None:
    def compared(count: int) -> list[calls.Command[Any]]:
        now = [b'"same"'] * count
        return mirror._differing_notes(now, [*now[1:], b'"other"'], count)

    assert compared(100) == [calls.Append(b'"other"')]
    assert_linear(lambda count: steps_of(compared, count), 250)


def test_the_last_notes_read_are_joined_at_their_longest_overlap() -> None:
    notes = [text.encode() for text in "abab"]
    for read, added in {"bab": "", "babc": "c", "ab": "", "abx": "x", "xyz": "xyz", "bb": "b", "ababab": "ab"}.items():
        then = [text.encode() for text in read]
        appended = mirror._differing_notes(notes, then, len(then))
        assert appended == [calls.Append(note.encode()) for note in added], read


def test_entering_sessions_in_an_outage_is_nearly_linear_in_their_number() -> None:
    def entered(count: int) -> None:
        states = SessionStates(10)
        for number in range(count):
            state = states.enter(calls.Address("t", f"s{number}"))
            state.offline = True
            states.count(state)
            states.leave(state)
        for state in list(states.waiting.values()):
            state.offline = False
            states.count(state)
        states.leave(states.enter(calls.Address("t", "last")))
        assert len(states._states) == 10

    assert_linear(lambda count: steps_of(entered, count), 250)


def test_learned_stamps_are_dropped_while_calls_overlap_continuously() -> None:
    learned = LearnedStamps()
    running = [learned.begin()]
    for number in range(1_000):
        running.append(learned.begin())
        learned.note(number, [f"v{number}"])
        assert learned.later(number - 1, f"v{number}")
        learned.end(running.pop(0))
    assert len(learned._current) + len(learned._previous) < 10


def test_stamps_learned_during_a_slow_call_are_kept_for_it() -> None:
    learned = LearnedStamps()
    slow = learned.begin()
    for number in range(100):
        fast = learned.begin()
        learned.note(number, [f"v{number}"])
        learned.end(fast)
    assert learned.later(50, "v99")
    assert all(learned.later(number - 1, f"v{number}") for number in range(100))
    learned.end(slow)


def test_writing_to_many_sessions_at_the_limit_is_linear_in_their_number() -> None:
    def written(count: int) -> None:
        storage = InMemoryStorage(max_sessions=count, forgets=True)
        for number in range(2 * count):
            address = calls.Address("t", f"s{number}")
            storage.execute_blocking(call(calls.Write((variable("a", 1),)), address=address, ttl_us=10**12))

    assert_linear(lambda count: steps_of(written, count), 100)
