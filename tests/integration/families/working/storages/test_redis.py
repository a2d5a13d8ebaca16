"""The Redis storage: keys, time to live, errors, event loops, forks and lost answers."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from locus_mysql.errors import (
    AuthenticationFailed,
    ConfigError,
    LocusMySQLError,
    PoolTimeout,
    SetupError,
    Unavailable,
)
from locus_mysql.families.working import calls
from locus_mysql.families.working.storages.redis import RedisStorage

from ..servers import OwnServer
from .sides import SIDES, Execute, blocking

pytestmark = pytest.mark.slow

HOUR_US = 3_600_000_000
PATIENCE_S = 60.0

both_sides = pytest.mark.parametrize("execute", SIDES, ids=lambda side: side.__name__)


def variable(key: str, value: bytes = b"1", ttl_us: int | None = None) -> calls.Variable:
    return calls.Variable(key, value, ttl_us)


@pytest.fixture
def prefix() -> str:
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def storage(redis_server: OwnServer, prefix: str) -> Iterator[RedisStorage]:
    storage = RedisStorage(redis_server.url, prefix=prefix, timeout_s=60.0)
    yield storage
    storage.close()


def call(*commands: Any, **options: Any) -> calls.Call:
    address = options.pop("address", calls.Address("tenant", "session"))
    return calls.Call("test", address, commands, **{"token": secrets.token_bytes(16), **options})


EVERYTHING = (
    calls.Write((variable("a"), variable("b", b"2", HOUR_US))),
    calls.WriteTask(b"{}"),
    calls.Append(b"1"),
    calls.CreateCheckpoint("c"),
    calls.Remove(("a",)),
    calls.Append(b"2"),
    calls.CreateCheckpoint("d"),
)


def keys(server: OwnServer, prefix: str) -> dict[bytes, int]:
    """Return the keys of a prefix, without tokens, with their remaining milliseconds (-1: no expiry)."""
    with server.client() as client:
        found = [key for key in client.keys(f"{prefix}:*") if b":token:" not in key]
        return {key: client.pttl(key) for key in found}


@both_sides
def test_each_call_is_one_command(execute: Execute, own_redis: OwnServer, prefix: str) -> None:
    storage = RedisStorage(own_redis.url, prefix=prefix, timeout_s=60.0)
    blocking(storage, call(*EVERYTHING))
    with own_redis.client() as client:
        for commands in (
            *((one,) for one in EVERYTHING if not isinstance(one, calls.CreateCheckpoint)),
            (calls.Read(("a",)),),
        ):
            client.config_resetstat()
            execute(storage, call(*commands))
            made = {name: stats["calls"] for name, stats in client.info("commandstats").items()}
            from_scripts = {
                "cmdstat_evalsha",
                "cmdstat_eval",
                "cmdstat_hello",
                "cmdstat_auth",
                "cmdstat_client|setinfo",
            }
            assert made["cmdstat_evalsha"] == 1, (commands, made)
            assert "cmdstat_eval" not in made, (commands, made.keys() & from_scripts)
    storage.close()


@both_sides
def test_a_server_that_forgot_the_script_is_given_it_again(execute: Execute, own_redis: OwnServer) -> None:
    storage = RedisStorage(own_redis.url, timeout_s=60.0)
    for number in (1, 2):
        with own_redis.client() as client:
            client.script_flush()
        assert execute(storage, call(calls.Increment("n", 1))).results == (number,)
    storage.close()


def test_all_keys_of_a_session_have_one_hash_tag_and_the_prefix(
    storage: RedisStorage, redis_server: OwnServer, prefix: str
) -> None:
    for address in (
        calls.Address("te:n{a}nt", "ses}s{ion\x00🙂"),
        calls.Address("", ""),
        calls.Address("é" * 200, "x" * 300),
    ):
        blocking(storage, call(*EVERYTHING, address=address))
        found = keys(redis_server, prefix)
        assert len(found) >= 5
        with redis_server.client() as client:
            tokens = client.keys(f"{prefix}:*:token:*")
            tags = {key[key.index(b"{") + 1 : key.index(b"}")] for key in [*found, *tokens]}
        assert len(tags) == 1
        assert all(key.count(b"{") == 1 for key in found)
        blocking(storage, call(calls.End(), address=address))
        with redis_server.client() as client:
            client.delete(*tokens, *client.keys(f"{prefix}:*:token:*"))


def test_an_ended_session_leaves_no_keys(storage: RedisStorage, redis_server: OwnServer, prefix: str) -> None:
    blocking(storage, call(*EVERYTHING))
    blocking(
        storage,
        call(calls.RestoreCheckpoint("c", "undo"), calls.Write((variable("x"),)), limits=calls.Limits(on_full="evict")),
    )
    blocking(storage, call(calls.DeleteCheckpoint("c")))
    assert keys(redis_server, prefix)
    blocking(storage, call(calls.End()))
    assert keys(redis_server, prefix) == {}


def test_redis_itself_removes_what_expired(storage: RedisStorage, redis_server: OwnServer, prefix: str) -> None:
    blocking(storage, call(*EVERYTHING, ttl_us=100_000))
    assert storage.sweep_blocking() == 0
    deadline = time.monotonic() + PATIENCE_S
    while keys(redis_server, prefix):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_every_key_expires_with_its_session(storage: RedisStorage, redis_server: OwnServer, prefix: str) -> None:
    """Checks keys written by all kinds of calls, also by calls that failed."""
    steps = (
        (calls.Write((variable("a"),)),),
        (calls.Append(b"1"),),
        (calls.Remove(("a",)),),
        (calls.Write((variable("a", b"1", HOUR_US),)),),
        (calls.CreateCheckpoint("c"),),
        (calls.Append(b"2"), calls.WriteTask(b"{}"), calls.CreateCheckpoint("d")),
        (calls.RestoreCheckpoint("c", "undo"),),
        (calls.DeleteCheckpoint("c"),),
    )
    for commands in steps:
        blocking(storage, call(*commands, ttl_us=HOUR_US))
        left = keys(redis_server, prefix)
        assert min(left.values()) > HOUR_US / 1000, (commands, left)
    evicting = calls.Limits(keys=1, on_full="evict")
    for commands in (
        (calls.Write((variable("x"), variable("y"))),),
        (calls.Append(b"1"), calls.Write((variable("x"), variable("y")))),
    ):
        with pytest.raises(LocusMySQLError):
            blocking(storage, call(*commands, ttl_us=HOUR_US, limits=evicting))
        left = keys(redis_server, prefix)
        assert min(left.values()) > HOUR_US / 1000, (commands, left)
    lasting = calls.Address("tenant", "lasting")
    blocking(storage, call(*EVERYTHING, address=lasting))
    blocking(storage, call(calls.Touch(HOUR_US), address=lasting))
    left = keys(redis_server, prefix)
    assert min(left.values()) > HOUR_US / 1000, left


def test_a_session_that_redis_evicted_partly_begins_again_empty(
    storage: RedisStorage, redis_server: OwnServer, prefix: str
) -> None:
    """With a maxmemory-policy other than noeviction, Redis evicts single keys."""
    blocking(storage, call(*EVERYTHING))
    with redis_server.client() as client:
        (first,) = [key for key in keys(redis_server, prefix) if key.endswith(b"}")]
        client.delete(first)
    reply = blocking(storage, call(calls.Append(b"new"), calls.ReadNotes(), calls.ReadAll(), calls.Measure()))
    assert reply.results[1:3] == ([b"new"], {})
    assert reply.results[3] == (0, 3, 1, 0, None)


def test_a_checkpoint_stores_what_changed(storage: RedisStorage, redis_server: OwnServer, prefix: str) -> None:
    many = tuple(variable(f"key {number:04}", b'"' + b"x" * 200 + b'"') for number in range(1_000))
    blocking(storage, call(calls.Write(many)))
    blocking(storage, call(calls.CreateCheckpoint("first")))

    def used() -> int:
        with redis_server.client() as client:
            found = [key for key in client.keys(f"{prefix}:*") if b":token:" not in key]
            return sum(client.memory_usage(key, samples=0) or 0 for key in found)

    session = used()
    blocking(storage, call(calls.Write(tuple(one for one in many[:10]))))
    before = used()
    blocking(storage, call(calls.CreateCheckpoint("second")))
    assert used() - before < session / 2 / 20  # half of the session's memory is its first checkpoint


@both_sides
def test_a_server_that_is_not_there_is_unavailable(execute: Execute, own_redis: OwnServer) -> None:
    storage = RedisStorage(own_redis.url, timeout_s=5.0)
    execute(storage, call(calls.Append(b"1")))
    own_redis.kill()
    with pytest.raises(Unavailable) as refusal:
        execute(storage, call(calls.Append(b"2")))
    assert str(own_redis.port) in str(refusal.value)
    assert own_redis.password not in str(refusal.value)
    own_redis.start()
    assert execute(storage, call(calls.Append(b"3"), calls.ReadNotes())).results[1] == [b"1", b"3"]
    storage.close()


@both_sides
def test_a_server_that_does_not_answer_is_unavailable(execute: Execute, own_redis: OwnServer) -> None:
    storage = RedisStorage(own_redis.url, timeout_s=60.0)
    execute(storage, call(calls.Append(b"1")))
    impatient = RedisStorage(own_redis.url, timeout_s=0.3)
    own_redis.pause()
    try:
        start = time.monotonic()
        with pytest.raises(Unavailable):
            execute(impatient, call(calls.Append(b"2")))
        assert time.monotonic() - start < 30.0
    finally:
        own_redis.resume()
    assert execute(storage, call(calls.Append(b"3"), calls.ReadNotes())).results[1][-1] == b"3"  # type: ignore[index]
    for one in (storage, impatient):
        one.close()


@both_sides
def test_a_wrong_password_is_reported_without_showing_it(execute: Execute, redis_server: OwnServer) -> None:
    storage = RedisStorage(f"redis://:not-the-password@127.0.0.1:{redis_server.port}/0")
    with pytest.raises(AuthenticationFailed) as refusal:
        execute(storage, call(calls.Append(b"1")))
    assert "not-the-password" not in str(refusal.value)
    storage.close()


@both_sides
def test_a_full_server_refuses_writes_only(execute: Execute, own_redis: OwnServer) -> None:
    storage = RedisStorage(own_redis.url, timeout_s=60.0)
    execute(storage, call(*EVERYTHING, ttl_us=HOUR_US))
    looks = (calls.ReadAll(), calls.ReadNotes(), calls.Measure())
    before = execute(storage, call(*looks)).results[1]
    with own_redis.client() as client:
        client.config_set("maxmemory", 1)
        client.config_set("maxmemory-policy", "noeviction")
    for commands in (
        (calls.Write((variable("z"),)),),
        (calls.Append(b"z"),),
        (calls.Increment("n", 1), calls.Append(b"z")),
    ):
        with pytest.raises(SetupError, match="maxmemory"):
            execute(storage, call(*commands))
        with pytest.raises(SetupError, match="maxmemory"):
            execute(storage, call(*commands, address=calls.Address("tenant", "new")))
    assert execute(storage, call(*looks, renew=True)).results[1] == before
    assert execute(storage, call(calls.Remove(("b",)))).results == (1,)
    assert execute(storage, call(calls.End())).results == (True,)
    storage.close()


@both_sides
def test_keys_of_other_programs_are_reported(
    execute: Execute, storage: RedisStorage, redis_server: OwnServer, prefix: str
) -> None:
    with redis_server.client() as client:
        client.set(f"{prefix}:{{tenant:session}}", "something else")
    with pytest.raises(LocusMySQLError, match="prefix"):
        execute(storage, call(calls.Append(b"1")))


def test_each_event_loop_has_connections_of_its_own(storage: RedisStorage) -> None:
    """Checks event loops one after another, without closing the storage, and concurrently in threads."""

    async def append() -> None:
        await asyncio.gather(*(storage.execute(call(calls.Append(b"1"))) for _ in range(5)))

    for _ in range(3):
        asyncio.run(append())

    async def close() -> None:
        await append()
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, append()) for _ in range(3)))
        await storage.aclose()

    asyncio.run(close())
    assert len(blocking(storage, call(calls.ReadNotes())).results[0]) == 5 * 7  # type: ignore[arg-type]


@both_sides
def test_a_forked_child_has_connections_of_its_own(execute: Execute, storage: RedisStorage) -> None:
    loop = asyncio.new_event_loop()
    loop.run_until_complete(storage.execute(call(calls.Append(b"parent"))))
    blocking(storage, call(calls.Append(b"parent")))
    child = os.fork()
    if child == 0:
        try:
            execute(storage, call(calls.Append(b"child")))
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    loop.run_until_complete(storage.execute(call(calls.Append(b"parent"))))
    blocking(storage, call(calls.Append(b"parent")))
    notes = blocking(storage, call(calls.ReadNotes())).results[0]
    assert notes == [b"parent", b"parent", b"child", b"parent", b"parent"]
    loop.run_until_complete(storage.aclose())
    loop.close()


async def test_a_cancelled_call_spoils_no_connection(redis_server: OwnServer, prefix: str) -> None:
    storage = RedisStorage(redis_server.url, prefix=prefix, timeout_s=60.0, max_connections=2)
    for number in range(30):
        task = asyncio.create_task(storage.execute(call(calls.Append(b"x" * 10_000))))
        for _ in range(number):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await storage.execute(call(calls.Increment("n", 1)))).results == (number + 1,)
    await storage.aclose()


async def test_more_calls_than_connections_wait(redis_server: OwnServer, prefix: str) -> None:
    storage = RedisStorage(redis_server.url, prefix=prefix, timeout_s=60.0, max_connections=3)
    replies = await asyncio.gather(*(storage.execute(call(calls.Increment("n", 1))) for _ in range(50)))
    assert sorted(reply.results[0] for reply in replies) == list(range(1, 51))
    await storage.aclose()


async def test_waiting_for_a_connection_has_a_limit(own_redis: OwnServer) -> None:
    storage = RedisStorage(
        own_redis.url, timeout_s=0.2, socket_timeout=60.0, socket_connect_timeout=60.0, max_connections=1
    )
    await storage.execute(call(calls.Append(b"1")))
    own_redis.pause()
    try:
        waiting = asyncio.create_task(storage.execute(call(calls.Append(b"2"))))
        await asyncio.sleep(0)
        with pytest.raises(PoolTimeout, match="max_connections"):
            await storage.execute(call(calls.Append(b"3"), address=calls.Address("tenant", "other")))
    finally:
        own_redis.resume()
    await waiting
    await storage.aclose()


async def test_clients_that_are_given_are_used(redis_server: OwnServer, cluster_server: OwnServer, prefix: str) -> None:
    pairs: list[tuple[Callable[..., Any], Callable[..., Any], OwnServer]] = [
        (redis.asyncio.Redis.from_url, redis.Redis.from_url, redis_server),
        (redis.asyncio.RedisCluster.from_url, redis.RedisCluster.from_url, cluster_server),
    ]
    for awaited_of, blocking_of, server in pairs:
        awaited_client, blocking_client = awaited_of(server.url), blocking_of(server.url)
        storage = RedisStorage(awaited_client, blocking_client, prefix=prefix)
        await storage.execute(call(calls.Append(b"1")))
        storage.execute_blocking(call(calls.Append(b"2")))
        await storage.aclose()
        storage.close()
        reply = await storage.execute(
            call(calls.ReadNotes())
        )  # the caller owns the clients, so the storage did not close them
        assert reply.results == ([b"1", b"2"],)
        alone = RedisStorage(blocking_client, prefix=prefix)
        assert alone.execute_blocking(call(calls.ReadNotes())).results == ([b"1", b"2"],)
        with pytest.raises(ConfigError, match="asynchronous"):
            await alone.execute(call(calls.ReadNotes()))
        await awaited_client.aclose()
        blocking_client.close()


@both_sides
def test_a_cluster_carries_out_every_call(execute: Execute, cluster_server: OwnServer, prefix: str) -> None:
    """All keys of a session are in one slot, including copies and tokens."""
    storage = RedisStorage(cluster_server.url, prefix=prefix, timeout_s=60.0, cluster=True)
    for number in range(3):
        address = calls.Address("tenant", f"session {number}")
        evicting = calls.Limits(keys=2, checkpoints=2, on_full="evict")
        again = call(*EVERYTHING, address=address, ttl_us=HOUR_US)
        first = execute(storage, again)
        assert execute(storage, again).results == first.results
        execute(storage, call(calls.RestoreCheckpoint("c", "undo"), address=address, limits=evicting))
        execute(storage, call(calls.Write((variable("x"), variable("y"))), address=address, limits=evicting))
        with pytest.raises(LocusMySQLError):
            execute(storage, call(calls.Append(b"3"), calls.CreateCheckpoint("undo"), address=address))
        reply = execute(storage, call(calls.ReadNotes(), calls.ReadAll(), address=address))
        assert reply.results[0] == [b"1"]
        assert list(reply.results[1]) == ["x", "y"]  # type: ignore[call-overload]
        assert execute(storage, call(calls.End(), address=address)).results == (True,)
    storage.close()


def test_valkey_is_named_by_its_own_scheme(valkey_server: OwnServer, prefix: str) -> None:
    storage = RedisStorage(valkey_server.url.replace("redis://", "valkey://"), prefix=prefix, timeout_s=60.0)
    assert blocking(storage, call(calls.Increment("n", 1))).results == (1,)
    storage.close()


def test_options_that_cannot_work_are_refused(redis_server: OwnServer) -> None:
    for url in ("mysql://host/0", "redis://:pass/word@host:6379/0", "host:6379"):
        with pytest.raises(ConfigError) as refusal:
            RedisStorage(url)
        assert "pass" not in str(refusal.value).replace("password", "")
    for options in ({"decode_responses": True}, {"prefix": "a{b}"}, {"prefix": ""}, {"no_such_option": 1}):
        with pytest.raises(ConfigError):
            RedisStorage(redis_server.url, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        RedisStorage(f"{redis_server.url}?decode_responses=True")
    decoding = redis.Redis.from_url(redis_server.url, decode_responses=True)
    with pytest.raises(ConfigError, match="decode"):
        RedisStorage(decoding)
    with pytest.raises(ConfigError):
        RedisStorage(object())
    with pytest.raises(ConfigError):
        RedisStorage(redis_server.url, decoding)
    assert redis_server.password not in repr(RedisStorage.from_url(redis_server.url))


def test_without_its_library_the_extra_is_named() -> None:
    code = """
import sys
sys.modules["redis"] = None
import locus_mysql.families.working.storages.redis
from locus_mysql import errors
try:
    locus_mysql.families.working.storages.redis.RedisStorage("redis://127.0.0.1/0")
except errors.DriverMissing as error:
    assert "locus-mysql[redis]" in str(error), error
else:
    sys.exit("it did not miss it")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
