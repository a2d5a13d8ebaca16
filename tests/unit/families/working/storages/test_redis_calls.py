"""Keys sent to Redis, and translation of its errors; without a server."""

from __future__ import annotations

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from locus_mysql import errors
from locus_mysql.families.working.calls import Address
from locus_mysql.families.working.storages.redis_operations import failure, key_of

ids = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.lists(st.builds(Address, ids, ids), min_size=2, max_size=20, unique=True))
def test_different_sessions_have_different_keys(addresses: list[Address]) -> None:
    assert len({key_of("locus", address) for address in addresses}) == len(addresses)


@given(st.builds(Address, ids, ids))
def test_a_key_is_short_and_has_one_hash_tag(address: Address) -> None:
    key = key_of("locus", address)
    assert key.startswith("locus:{")
    assert key.endswith("}")
    assert key.count("{") == key.count("}") == 1
    assert key.isascii()
    assert len(key) <= 170


def test_ids_cannot_contain_the_separator_of_keys() -> None:
    hostile = [("a", "b:c"), ("a:b", "c"), ("a%3Ab", "c"), ("", "a:b:c"), ("#", ""), ("", "#"), ("{", "}"), ("}", "{")]
    assert len({key_of("locus", Address(*one)) for one in hostile}) == len(hostile)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (redis.ConnectionError("Error 111 connecting to host:6379. Connection refused."), errors.Unavailable),
        (redis.TimeoutError("Timeout reading from socket"), errors.Unavailable),
        (redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"), errors.Unavailable),
        (redis.exceptions.ReadOnlyError("You can't write against a read only replica."), errors.Unavailable),
        (redis.exceptions.ClusterDownError("CLUSTERDOWN The cluster is down"), errors.Unavailable),
        (redis.exceptions.RedisClusterException("Redis Cluster cannot be connected."), errors.Unavailable),
        (redis.ResponseError("BUSY Redis is busy running a script."), errors.Unavailable),
        (redis.ResponseError("MISCONF Errors writing to the AOF file"), errors.Unavailable),
        (redis.ResponseError("Error running script: @user_script:1: -READONLY You can't write"), errors.Unavailable),
        (ConnectionResetError("reset by peer"), errors.Unavailable),
        (TimeoutError(), errors.Unavailable),
        (redis.AuthenticationError("invalid username-password pair"), errors.AuthenticationFailed),
        (redis.ResponseError("WRONGPASS invalid username-password pair"), errors.AuthenticationFailed),
        (redis.exceptions.NoPermissionError("this user has no permissions to run 'evalsha'"), errors.PrivilegeMissing),
        (redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), errors.SetupError),
        (redis.ResponseError("Error: @user_script:1: -OOM command not allowed when used"), errors.SetupError),
        (redis.ResponseError("Unknown Redis command called from script: unknown command"), errors.SetupError),
        (redis.ResponseError("WRONGTYPE Operation against a key"), errors.LocusMySQLError),
        (redis.ResponseError("something nobody thought of"), errors.LocusMySQLError),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else str(value)[:20],
)
def test_errors_contain_advice(raised: Exception, expected: type[Exception]) -> None:
    error = failure(raised, "host:6379")
    assert type(error) is expected
    assert "host:6379" in str(error)
