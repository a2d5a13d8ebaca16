"""Which drivers the integration tests run with."""

from __future__ import annotations

from tests.thoroughness import ONLY_DRIVER


def _chosen(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if ONLY_DRIVER in (None, name))


#: Every driver has an asynchronous side.
ASYNC_DRIVERS = _chosen("mysql-connector", "aiomysql", "pymysql", "asyncmy")

#: aiomysql's synchronous side is PyMySQL, the same as pymysql's; asyncmy has none.
SYNC_DRIVERS = _chosen("mysql-connector", "pymysql")

if not ASYNC_DRIVERS or not SYNC_DRIVERS:
    raise ValueError(f"LOCUS_MYSQL_TEST_DRIVER={ONLY_DRIVER} is no driver with both sides: mysql-connector or pymysql")
