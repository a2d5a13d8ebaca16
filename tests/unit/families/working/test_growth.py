"""The work of working memory grows linearly with stored, queued and sent data."""

from __future__ import annotations

from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.in_memory import InMemoryStorage
from locus_mysql.working import FallbackStorage

from ....growth import assert_linear, steps_of
from .storages.frail import Frail, call, variable


def test_queueing_and_replaying_writes_is_linear_in_their_number() -> None:
    def written(count: int) -> None:
        primary = Frail()
        primary.away = True
        storage = FallbackStorage(primary, timeout_s=60, first_retry_s=3_600, longest_retry_s=3_600)
        for number in range(count):
            storage.execute_blocking(call(calls.Write((variable(f"v{number}", 1),)), calls.Append(b"1")))
        primary.away = False
        assert storage.flush_blocking() == 0

    assert_linear(lambda count: steps_of(written, count), 250)


def test_a_write_to_a_large_session_does_not_touch_the_rest_of_it() -> None:
    def written(count: int) -> int:
        storage = InMemoryStorage()
        storage.execute_blocking(call(calls.Write(tuple(variable(f"v{number}", 1) for number in range(count)))))
        return steps_of(lambda: storage.execute_blocking(call(calls.Write((variable("v1", 2),)))))

    assert written(4_000) < 2 * written(10)


def test_writing_to_many_sessions_at_the_limit_is_linear_in_their_number() -> None:
    def written(count: int) -> None:
        storage = InMemoryStorage(max_sessions=count, forgets=True)
        for number in range(2 * count):
            address = calls.Address("t", f"s{number}")
            storage.execute_blocking(call(calls.Write((variable("a", 1),)), address=address, ttl_us=10**12))

    assert_linear(lambda count: steps_of(written, count), 100)
