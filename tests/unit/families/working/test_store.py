"""Methods of sessions, on the storage in memory; both sides."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from locus_mysql import MySQLConfig
from locus_mysql.errors import (
    CapacityExceeded,
    ConfigError,
    CorruptCheckpoint,
    InvalidInput,
    NotFound,
)
from locus_mysql.families.working.calls import Address, Call, Limits, Variable, Write, WriteTask
from locus_mysql.families.working.values import encode
from locus_mysql.runtime.exact_json import encode_json
from locus_mysql.working import (
    InMemoryStorage,
    SyncWorkingMemory,
    WorkingMemory,
)

from ....either_side import AnyStore as AnyMemory

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    2**200,
    1.5,
    -0.0,
    1e300,
    "",
    "text",
    "\0\n\"'\\%_🙂\x7f",
    "\ud800",
    [],
    {},
    [1, [2, {"a": [None]}]],
    {"b": 1, "a": {"": 2, "🙂": [True]}},
    "x" * 100_000,
]


@pytest.mark.parametrize("kind", [WorkingMemory, SyncWorkingMemory])
def test_a_turn_needs_a_session_in_mysql(kind: Any) -> None:
    with pytest.raises(ConfigError, match="InMemoryStorage"):
        kind("session", InMemoryStorage()).turn()


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:20])
async def test_reading_returns_the_written_value(memory: AnyMemory, value: Any) -> None:
    await memory.set("key", value)
    for read in (
        await memory.get("key", "default"),
        (await memory.get_many(["key"]))["key"],
        (await memory.get_all())["key"],
    ):
        assert read == value
        assert type(read) is type(value)
        if isinstance(value, dict):
            assert list(read) == list(value)
    assert await memory.exists("key")


@pytest.mark.parametrize(
    "value",
    [object(), (1,), {1: 2}, b"x", {1}, datetime(2026, 1, 1, tzinfo=UTC), [{"a": (1,)}], "\ud83d\ude42"],
    ids=["object", "tuple", "keys", "bytes", "set", "time", "within", "split pair"],
)
async def test_values_that_json_cannot_represent_are_refused(memory: AnyMemory, value: Any) -> None:
    await memory.set("key", 1)
    for call in (
        memory.set("key", value),
        memory.set_many({"key": 2, "other": value}),
        memory.compare_and_set("key", 1, value),
        memory.compare_and_set("key", value, 2),
    ):
        with pytest.raises(InvalidInput):
            await call
    assert await memory.get_all() == {"key": 1}


class Seat(BaseModel):
    row: int
    at: datetime
    ratio: float = 0.0
    tags: set[str] = set()


class Forgetful(BaseModel):
    secret: SecretStr


async def test_models_come_back_equal(memory: AnyMemory) -> None:
    seat = Seat(row=12, at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), ratio=math.inf, tags={"a", "\ud800"})
    await memory.set("seat", seat)
    assert await memory.get_as(Seat, "seat") == seat
    assert await memory.get_as(Seat, "none") is None
    assert (await memory.get("seat"))["row"] == 12
    await memory.set("seat", {"row": "twelve"})
    with pytest.raises(InvalidInput, match=r"not a Seat: row: .*; at: "):
        await memory.get_as(Seat, "seat")
    with pytest.raises(InvalidInput, match="Forgetful that does not come back equal"):
        await memory.set("key", Forgetful(secret=SecretStr("x")))
    assert not await memory.exists("key")


@pytest.mark.parametrize("key", ["", "x" * 513, "a\0b", "\ud800", 1, None, b"k"], ids=ascii)
async def test_invalid_keys_are_refused(memory: AnyMemory, key: Any) -> None:
    for call in (
        memory.set(key, 1),
        memory.set_many({key: 1}),
        memory.get(key),
        memory.get_many([key]),
        memory.get_as(Seat, key),
        memory.exists(key),
        memory.delete(key),
        memory.delete_many([key]),
        memory.increment(key),
        memory.compare_and_set(key, 1, 2),
        memory.ttl(key),
    ):
        with pytest.raises(InvalidInput, match="key"):
            await call
    assert (await memory.stats()).keys == 0


async def test_other_misuse_is_refused_with_advice(memory: AnyMemory) -> None:
    for call, words in (
        (memory.set("k", 1, ttl_s=0), "ttl_s"),
        (memory.set("k", 1, ttl_s=-1), "ttl_s"),
        (memory.set("k", 1, ttl_s=math.nan), "ttl_s"),
        (memory.set("k", 1, ttl_s=math.inf), "ttl_s"),
        (memory.set("k", 1, ttl_s=True), "ttl_s"),
        (memory.set("k", 1, ttl_s="1"), "ttl_s"),
        (memory.touch(0), "ttl_s"),
        (memory.increment("k", 1.5), "whole number"),
        (memory.increment("k", True), "whole number"),
        (memory.increment("k", 2**63), "64 bits"),
        (memory.append_scratchpad(1), "text"),
        (memory.get_scratchpad(-1), "last"),
        (memory.get_scratchpad(True), "last"),
        (memory.set_task_state({"task_id": "x"}), "TaskState"),
        (memory.set_many([("k", 1)]), "dict"),
        (memory.get_many("abc"), "list"),
        (memory.list_keys(1), "pattern"),
        (memory.get_as(dict, "k"), "pydantic models"),
        (memory.get_as(list[Seat], "k"), "pydantic models"),
        (memory.create_checkpoint("x" * 1_001), "1000"),
        (memory.create_checkpoint(1), "label"),
        (memory.restore_checkpoint(""), "Checkpoint id"),
        (memory.delete_checkpoint(None), "Checkpoint id"),
    ):
        with pytest.raises(InvalidInput, match=words):
            await call
    with pytest.raises(NotFound, match="list_checkpoints returns"):
        await memory.restore_checkpoint("none")
    assert (await memory.stats()).keys == 0


@pytest.mark.parametrize(
    "options",
    [
        {"max_keys": 0},
        {"max_keys": 1.5},
        {"max_value_bytes": True},
        {"max_session_bytes": -1},
        {"max_scratchpad_entries": 0},
        {"max_checkpoints": 10_001},
        {"on_full": "forget"},
        {"driver": "pymysql"},
    ],
    ids=str,
)
def test_invalid_options_are_refused(options: dict[str, Any], storage: InMemoryStorage) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=name):
        WorkingMemory("session", storage, **options)


@pytest.mark.parametrize("kind", [WorkingMemory, SyncWorkingMemory])
@pytest.mark.parametrize("dsn", ["mysql://u:s3cret@host/app", "REDIS://:s3cret@host", "rediss://:s3cret@host/1"])
def test_a_dsn_in_place_of_the_session_id_is_refused_without_repeating_it(
    kind: type[WorkingMemory] | type[SyncWorkingMemory], dsn: str, storage: InMemoryStorage
) -> None:
    with pytest.raises(ConfigError, match="second argument") as raised:
        kind(dsn, storage)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "where",
    ["mysql://user:password@localhost/app", "redis://localhost/0", InMemoryStorage()],
    ids=["mysql", "redis", "storage"],
)
@pytest.mark.parametrize("kind", [WorkingMemory, SyncWorkingMemory])
def test_the_error_of_an_unknown_option_lists_the_known_ones(kind: Any, where: Any) -> None:
    for begin in (
        lambda: kind("session", where, max_key=5),
        lambda: kind.open(where, session_id="session", max_key=5),
    ):
        with pytest.raises(ConfigError, match="max_key: there is no such option") as refused:
            begin()
        for name in (
            "session_ttl_s",
            "end_on_exit",
            "max_keys",
            "max_checkpoints",
            "on_full",
            "tenant",
            "driver",
        ):
            assert name in str(refused.value)


def test_a_session_needs_an_id_and_a_time_above_zero(storage: InMemoryStorage) -> None:
    for wrong in ("", "x" * 513, "a\0", None):
        with pytest.raises(InvalidInput, match="Session id"):
            WorkingMemory(wrong, storage)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInput, match="session_ttl_s"):
        WorkingMemory("session", storage, session_ttl_s=0)
    with pytest.raises(InvalidInput, match="Tenant"):
        WorkingMemory("session", storage, tenant="")


def test_a_storage_can_be_given_in_several_ways(storage: InMemoryStorage) -> None:
    dsn = "mysql://user:password@localhost/app"
    for memory in (
        WorkingMemory("session", dsn, driver="pymysql", tenant="acme"),
        WorkingMemory.open(dsn, session_id="session", driver="pymysql", tenant="acme"),
        WorkingMemory.open(session_id="session", dsn=dsn, driver="pymysql", tenant="acme"),
        WorkingMemory("session", SecretStr(dsn), driver="pymysql", tenant="acme"),
        WorkingMemory("session", MySQLConfig(dsn=dsn, driver="pymysql", tenant="acme")),
        WorkingMemory.open(storage, session_id="session", tenant="acme"),
    ):
        assert (memory.session_id, memory.tenant) == ("session", "acme")
        assert "password" not in repr(memory)
        assert "session" in repr(memory)
    assert WorkingMemory("session", storage).tenant == "default"


def test_the_error_of_a_driver_without_a_blocking_side_names_the_alternatives() -> None:
    with pytest.raises(ConfigError, match=r"no synchronous side.* or WorkingMemory"):
        SyncWorkingMemory("session", "mysql://user:password@localhost/app", driver="asyncmy").get("key")


async def test_a_session_is_ended_only_if_asked(storage: InMemoryStorage) -> None:
    async with WorkingMemory("one", storage) as memory:
        await memory.set("key", 1)
    async with WorkingMemory("one", storage, end_on_exit=True) as memory:
        assert await memory.get("key") == 1
    with SyncWorkingMemory("one", storage, end_on_exit=True) as blocking:
        assert blocking.get("key") is None
        blocking.set("key", 2)
    assert await memory.get("key") is None
    with pytest.raises(ConfigError, match="async with"):
        WorkingMemory("one", storage).__enter__()


async def test_the_error_of_a_full_session_names_the_limit(open_memory: Callable[..., AnyMemory]) -> None:
    memory = open_memory(
        "full", max_keys=2, max_value_bytes=20, max_session_bytes=40, max_scratchpad_entries=1, max_checkpoints=1
    )
    await memory.set_many({"a": 1, "b": 2})
    await memory.append_scratchpad("note")
    for call, limit, used, allowed in (
        (memory.set("c", 3), "max_keys", 3, 2),
        (memory.increment("c"), "max_keys", 3, 2),
        (memory.set("a", "x" * 19), "max_value_bytes", 21, 20),
        (memory.append_scratchpad("x" * 19), "max_value_bytes", 21, 20),
        (memory.append_scratchpad("two"), "max_scratchpad_entries", 2, 1),
        (memory.set_many({"a": "x" * 15, "b": "y" * 15}), "max_session_bytes", 42, 40),
    ):
        with pytest.raises(CapacityExceeded, match=f"(?s)session 'full'.*{limit}.*limit is {allowed}") as refused:
            await call
        assert (refused.value.limit, refused.value.used, refused.value.allowed) == (limit, used, allowed)
    assert await memory.get_all() == {"a": 1, "b": 2}
    first, second = await memory.create_checkpoint(), await memory.create_checkpoint()
    assert [info.checkpoint_id for info in await memory.list_checkpoints()] == [second]
    assert first != second


async def test_stats_count_stored_data(open_memory: Callable[..., AnyMemory]) -> None:
    memory = open_memory(session_ttl_s=80, max_keys=5)
    assert (await memory.stats()).expires_in_s is None
    await memory.set("é", "x")
    await memory.append_scratchpad("one")
    await memory.create_checkpoint()
    stats = await memory.stats()
    assert (stats.keys, stats.size_bytes, stats.scratchpad_entries, stats.checkpoints) == (1, 5 + 5, 1, 1)
    assert stats.expires_in_s == pytest.approx(90, abs=1)
    assert (stats.limits.keys, stats.degraded, stats.pending, stats.lost) == (5, False, 0, ())


async def test_damaged_data_is_reported(memory: AnyMemory, storage: InMemoryStorage) -> None:
    damage = (Write((Variable("key", b"1"),)), WriteTask(b'{"task_id": ""}'))
    call = Call("damage", Address("default", "session"), damage, Limits(), token=b"x" * 16)
    await storage.execute(call)
    with pytest.raises(CorruptCheckpoint, match="task state of session 'session'"):
        await memory.get_task_state()
    await memory.set_task_state(None)
    assert await memory.get_task_state() is None


def _cpu_s(work: Callable[[], object]) -> float:
    """Processor time of the fastest of three runs, in seconds."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


@pytest.mark.parametrize("value", [[1] * 2_000_000, [{"k": n, "x": [n, None]} for n in range(100_000)]])
def test_a_value_beyond_the_limit_is_refused_by_its_size_before_it_is_checked(value: Any) -> None:
    def refused() -> None:
        with pytest.raises(CapacityExceeded):
            encode(value, "It", 1_000_000, "s")

    assert _cpu_s(refused) < 4 * _cpu_s(lambda: encode_json(value))
