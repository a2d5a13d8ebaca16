"""Three private MySQL servers as one group, with one primary: `ReplicationGroup`.

    with ReplicationGroup(folder, mysqld) as group:
        print(group.dsn)

https://dev.mysql.com/doc/refman/9.0/en/group-replication.html
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql

from ci.local_server import DATABASE, LocalServer
from locus_mysql.errors import LocusMySQLError, Unavailable

MEMBERS = 3
START_TIMEOUT_S = 120.0
POLL_S = 0.2

#: The group shares root's password, and none of this is a transaction of the group's: a member that has transactions
#: of its own is not let in. Until it is in, a server takes no writes.
FIRST_STATEMENTS = """\
SET SESSION sql_log_bin = 0;
ALTER USER 'root'@'localhost' IDENTIFIED BY '{password}';
CREATE DATABASE IF NOT EXISTS {database};
SET GLOBAL super_read_only = 1;
"""


class Member:
    """One server of the group.

    Args:
        home: Its folder.
        mysqld: The server's program.
        port: Of the server.
        password: Root's, the same in the whole group.
        arguments: Options of ``mysqld`` for the group.
    """

    def __init__(self, home: Path, mysqld: Path, port: int, password: str, arguments: list[str]) -> None:
        self._password = password
        home.mkdir(parents=True)
        first_statements = home.with_suffix(".sql")
        first_statements.touch(mode=0o600)
        first_statements.write_text(FIRST_STATEMENTS.format(password=password, database=DATABASE))
        self.server = LocalServer(
            home, port=port, mysqld=mysqld, extra_args=[*arguments, f"--init-file={first_statements}"]
        )

    @property
    def running(self) -> bool:
        """Whether its process exists."""
        try:
            os.kill(self.server.pid, 0)
        except (LocusMySQLError, ProcessLookupError):
            return False
        return True

    def restart(self) -> None:
        """Start it again with its data, and have it join."""
        self.server.stop()
        self.server.start()
        self.join()

    def stop(self) -> None:
        """Kill it, as nothing it has is kept."""
        with contextlib.suppress(LocusMySQLError, ProcessLookupError):
            os.kill(self.server.pid, signal.SIGKILL)
        self.server.stop()

    def run(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements as root; the rows of the last."""
        connection = pymysql.connect(
            host="127.0.0.1",
            port=self.server.port,
            user="root",
            password=self._password,
            autocommit=True,
            connect_timeout=5,
            read_timeout=60,
        )
        with connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    def join(self, *, bootstrap: bool = False) -> None:
        """Become a member, or with ``bootstrap`` the first one."""
        if bootstrap:
            self.run("SET GLOBAL group_replication_bootstrap_group = 1")
        self.run(f"START GROUP_REPLICATION USER = 'root', PASSWORD = '{self._password}'")
        if bootstrap:
            self.run("SET GLOBAL group_replication_bootstrap_group = 0")

    def view(self) -> dict[int, str]:
        """What this member holds the states of the members to be, by port."""
        rows = self.run("SELECT member_port, member_state FROM performance_schema.replication_group_members")
        return {int(port): str(state) for port, state in rows if port}


class ReplicationGroup:
    """A group that lives no longer than its starter.

    Args:
        home: The folder of its data.
        mysqld: The servers' program.
    """

    def __init__(self, home: Path, mysqld: Path) -> None:
        self._password = secrets.token_hex(16)
        self._stopping = threading.Event()
        self._guard = threading.Thread(target=self._restart_what_ends, name="group", daemon=True)
        name = str(uuid.uuid4())
        ports = free_ports(2 * MEMBERS)
        ports, local_ports = ports[:MEMBERS], ports[MEMBERS:]
        seeds = ",".join(f"127.0.0.1:{port}" for port in local_ports)
        self.members = [
            Member(
                home / f"member-{number}",
                mysqld,
                port,
                self._password,
                [
                    f"--server-id={number}",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                    "--report-host=127.0.0.1",
                    "--innodb-buffer-pool-size=64M",
                    "--innodb-flush-log-at-trx-commit=2",  # a test of failing over outlives no power cut
                    "--sync-binlog=0",
                    "--plugin-load-add=group_replication.so",
                    f"--loose-group-replication-group-name={name}",
                    f"--loose-group-replication-local-address=127.0.0.1:{local_port}",
                    f"--loose-group-replication-group-seeds={seeds}",
                    "--loose-group-replication-start-on-boot=OFF",
                    "--loose-group-replication-recovery-get-public-key=ON",
                ],
            )
            for number, (port, local_port) in enumerate(zip(ports, local_ports, strict=True), 1)
        ]

    @property
    def dsn(self) -> str:
        """How to connect: the administrator's account, an empty database, all members."""
        hosts = ",".join(f"127.0.0.1:{member.server.port}" for member in self.members)
        return f"mysql://root:{self._password}@/{DATABASE}?hosts={hosts}"

    def __enter__(self) -> ReplicationGroup:
        try:
            with ThreadPoolExecutor(MEMBERS) as threads:
                list(threads.map(lambda member: member.server.start(), self.members))
            for member in self.members:
                member.join(bootstrap=member is self.members[0])
            self._wait_until_all_are_online()
        except BaseException:
            self.stop()
            raise
        self._guard.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop every server. They are killed: nothing of theirs is kept."""
        self._stopping.set()
        if self._guard.is_alive():
            self._guard.join(START_TIMEOUT_S)
        for member in self.members:
            member.stop()

    def _wait_until_all_are_online(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while list(self.members[0].view().values()) != ["ONLINE"] * MEMBERS:
            if time.monotonic() > deadline:
                raise Unavailable(f"The group was not complete within {START_TIMEOUT_S:g} s.")
            time.sleep(POLL_S)

    def _restart_what_ends(self) -> None:
        while not self._stopping.wait(POLL_S):
            for member in self.members:
                if not member.running and self._have_dropped(member):
                    with contextlib.suppress(LocusMySQLError, pymysql.Error):  # tried again at the next look
                        member.restart()

    def _have_dropped(self, gone: Member) -> bool:
        for member in self.members:
            if member is not gone and member.running:
                with contextlib.suppress(pymysql.Error):
                    view = member.view()
                    if "ONLINE" in view.values() and gone.server.port not in view:
                        return True
        return False


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on, all different."""
    with contextlib.ExitStack() as probes:
        return [probes.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]
