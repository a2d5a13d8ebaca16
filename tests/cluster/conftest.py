"""Fixtures of the tests with a real replication group: three members, which tests freeze, kill and delay.

The group is that of `ci/cluster --router run`, which restarts a killed member. A test begins and ends with all
three members online.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest

from locus_mysql import CheckpointStore, MySQLConfig, SyncCheckpointStore

from ..integration.drivers_under_test import ASYNC_DRIVERS, SYNC_DRIVERS
from .load import Way, open_ways
from .table import Row, as_markdown, write_document

EVERY_SIDE = tuple(f"{name}-async" for name in ASYNC_DRIVERS) + tuple(f"{name}-sync" for name in SYNC_DRIVERS)

#: Limit for a group's automatic steps: electing a primary, readmitting a member, or restarting a killed member.
GROUP_TAKES_S = 120.0

View = dict[int, tuple[str, str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the document."""
    parser.addoption("--write-load-table", action="store_true", help="write the table in docs/design/failover.md")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table of the tests under load."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for failed in [value for report in reports for name, value in report.user_properties if name == "failed"]:
        terminalreporter.write_line(f"failed call: {failed}")
    rows = [Row(*value) for report in reports for name, value in report.user_properties if name == "load"]
    if rows:
        terminalreporter.write_line("")
        terminalreporter.write_line(as_markdown(rows))
        if config.getoption("write_load_table"):
            write_document(rows)


class Member:
    """One server of the group."""

    def __init__(self, config: MySQLConfig, port: int) -> None:
        self._password = config.password.get_secret_value()
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.server_id, pid_file = self.run("SELECT @@server_uuid, @@pid_file")[0]
        self._pid_file = Path(pid_file)
        self._frozen = 0

    def open(self) -> pymysql.Connection[Any]:
        """A connection as the administrator."""
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            password=self._password,
            autocommit=True,
            connect_timeout=5,
            read_timeout=90,
        )

    def run(self, *statements: str) -> tuple[Any, ...]:
        """Run statements as the administrator; return the rows of the last."""
        with self.open() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def view(self) -> View:
        """Return state and role of each member by port, as this member reports them."""
        rows = self.run(
            "SELECT member_port, member_state, member_role FROM performance_schema.replication_group_members"
        )
        return {int(port): (state, role) for port, state, role in rows if port}

    def ask(self, question: str) -> Any:
        """Return the first value of a result from a running member; retries lost connections of a busy machine."""
        deadline = time.monotonic() + GROUP_TAKES_S
        while True:
            try:
                return self.run(question)[0][0]
            except (pymysql.OperationalError, OSError):
                assert time.monotonic() < deadline, f"{self.host} does not answer"
                time.sleep(0.2)

    def executed(self) -> str:
        """Return the GTID set that this member has executed."""
        return str(self.ask("SELECT @@GLOBAL.gtid_executed"))

    def wait_for(self, executed: str) -> None:
        """Wait until this member has executed these transactions."""
        assert self.ask(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)") == 0

    @contextmanager
    def lagging(self, database: str) -> Iterator[None]:
        """Make this member receive the group's transactions without applying those on a schema's tables."""
        with self.open() as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {database}.locus_store_threads READ, {database}.locus_store_checkpoints READ")
            yield

    def process_id(self) -> int:
        """The id of the server's process; 0 while the server is stopped."""
        try:
            return int(self._pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def freeze(self) -> None:
        """Suspend the server's process; the operating system still accepts connections for it."""
        self._frozen = self.process_id()
        os.kill(self._frozen, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the server's process."""
        if self._frozen:
            os.kill(self._frozen, signal.SIGCONT)
            self._frozen = 0

    def kill(self) -> None:
        """Kill the server's process."""
        os.kill(self.process_id(), signal.SIGKILL)

    def join(self) -> None:
        """Rejoin the group."""
        user = f"member_{self.run('SELECT @@server_id')[0][0]}"
        self.run("STOP GROUP_REPLICATION", f"START GROUP_REPLICATION USER = '{user}', PASSWORD = '{self._password}'")


class Group:
    """The three members."""

    def __init__(self, dsn: str) -> None:
        self.config = MySQLConfig(dsn=dsn)
        self.members = [Member(self.config, endpoint.port) for endpoint in self.config.endpoints]

    def cut_off(self, *members: Member) -> None:
        """Cut the network between these members and all others; without members, connect all again."""
        file = Path(os.environ["LOCUS_MYSQL_TEST_CUTS"])
        new = file.with_suffix(".new")
        new.write_text(" ".join(str(member.port) for member in members))
        new.rename(file)

    def primary(self) -> Member:
        """Return the writable member."""
        view = next(view for view in map(self._view_of, self.members) if view)
        port = next(port for port, (state, role) in view.items() if role == "PRIMARY" and state == "ONLINE")
        return next(member for member in self.members if member.port == port)

    def secondaries(self) -> tuple[Member, Member]:
        """Return the other members."""
        primary = self.primary()
        first, second = (member for member in self.members if member is not primary)
        return first, second

    def mend(self) -> None:
        """Resume and readmit members until all are online."""
        self.cut_off()
        for member in self.members:
            member.thaw()
        deadline = time.monotonic() + GROUP_TAKES_S
        while (views := [self._view_of(member) for member in self.members]) != [self._whole(views)] * 3:
            assert time.monotonic() < deadline, views
            for member, view in zip(self.members, views, strict=True):
                if view and view.get(member.port, ("OFFLINE", ""))[0] in {"ERROR", "OFFLINE"}:
                    with suppress(pymysql.Error):
                        member.join()
            time.sleep(0.2)

    def _whole(self, views: list[View]) -> View:
        """Return the view that all members must have: every member online, one of them the primary."""
        ports = {member.port for member in self.members}
        for view in views:
            if view.keys() == ports and {state for state, _ in view.values()} == {"ONLINE"}:
                return view
        return {0: ("", "")}

    def _view_of(self, member: Member) -> View:
        try:
            view = member.view()
        except (pymysql.Error, OSError):
            return {}
        return view or {member.port: ("OFFLINE", "")}


@pytest.fixture(scope="session")
def whole_group() -> Group:
    dsn = os.environ.get("LOCUS_MYSQL_TEST_CLUSTER")
    if not dsn:
        pytest.fail("No group to test on: run these tests by `ci/cluster --router run --`.", pytrace=False)
    return Group(dsn)


@pytest.fixture
def group(whole_group: Group) -> Iterator[Group]:
    """The group, with all members online before and after the test."""
    whole_group.mend()
    yield whole_group
    whole_group.mend()


@pytest.fixture
def database(group: Group) -> Iterator[str]:
    """A new schema that all members have."""
    name = f"locus_test_{secrets.token_hex(8)}"
    primary = group.primary()
    primary.run(f"CREATE DATABASE {name}")
    for member in group.members:
        member.wait_for(primary.executed())
    yield name
    group.mend()
    group.primary().run(f"DROP DATABASE {name}")


class Store:
    """A store of either side with awaitable methods; those of a blocking store run in a thread."""

    def __init__(self, side: str, config: MySQLConfig) -> None:
        driver, _, way = side.rpartition("-")
        config = config.model_copy(update={"driver": driver})
        self.store: Any = CheckpointStore(config) if way == "async" else SyncCheckpointStore(config)
        self._blocks = way == "sync"

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.store, name)

        async def call(*args: Any) -> Any:
            return await (asyncio.to_thread(method, *args) if self._blocks else method(*args))

        return call


@pytest.fixture
def open_store(group: Group, database: str) -> Callable[..., Store]:
    """``open_store(side, *members, **options)`` opens a store with these hosts in this order; by default, with all."""

    def open_one(side: str, *members: Member, **options: Any) -> Store:
        hosts = tuple(member.host for member in members or group.members)
        given = {"user": group.config.user, "password": group.config.password, "database": database}
        return Store(side, MySQLConfig(**{**given, "hosts": hosts, **options}))

    return open_one


def router_addresses() -> dict[str, str]:
    """The DSN of each port of the Router, and the CA files for its certificate and the members'."""
    given = os.environ.get("LOCUS_MYSQL_TEST_ROUTER")
    if not given:
        pytest.fail("No Router to test with: run these tests by `ci/cluster --router run --`.", pytrace=False)
    addresses: dict[str, str] = json.loads(given)
    return addresses


@pytest.fixture
def ways(group: Group, database: str) -> list[Way]:
    """Every side of every driver, directly and through the Router."""
    account = {"user": group.config.user, "password": group.config.password, "database": database}
    router = MySQLConfig(dsn=router_addresses()["writes"])
    return open_ways(
        EVERY_SIDE,
        {**account, "hosts": tuple(member.host for member in group.members)},
        {**account, "host": router.host, "port": router.port},
    )
