"""The drivers with which the integration tests run."""

from __future__ import annotations

#: Every driver has an asynchronous side.
ASYNC_DRIVERS = ("mysql-connector", "aiomysql", "pymysql", "asyncmy")

#: aiomysql's synchronous side is PyMySQL, the same as pymysql's; asyncmy has none.
SYNC_DRIVERS = ("mysql-connector", "pymysql")
