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
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql

from ci.local_server import DATABASE, LocalServer
from ci.member_links import MemberLinks, user_of
from ci.ports import reserve_port
from locus_mysql.errors import LocusMySQLError, Unavailable

MEMBERS = 3
START_TIMEOUT_S = 120.0
POLL_S = 0.2

#: All members have the same password of root. These statements are not logged, as the group refuses a member with
#: transactions of its own. A server refuses writes until it has joined.
FIRST_STATEMENTS = """\
SET SESSION sql_log_bin = 0;
ALTER USER 'root'@'localhost' IDENTIFIED BY '{password}';
{members}
CREATE DATABASE IF NOT EXISTS {database};
SET GLOBAL super_read_only = 1;
"""

#: The account under which a member logs in to the others.
MEMBER = """\
CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO {user};"""


class Member:
    """One server of the group.

    Args:
        number: Its number, from 1.
        home: Its folder.
        mysqld: The server's program.
        port: The server's port.
        password: Root's password, the same in the whole group.
        arguments: Options of ``mysqld`` for the group.
        made_before: See `LocalServer`.
    """

    def __init__(
        self,
        number: int,
        home: Path,
        mysqld: Path,
        port: int,
        password: str,
        arguments: list[str],
        made_before: Path,
    ) -> None:
        self._number = number
        self._password = password
        home.mkdir(parents=True)
        first_statements = home.with_suffix(".sql")
        first_statements.touch(mode=0o600)
        members = "\n".join(MEMBER.format(user=user_of(other), password=password) for other in range(1, MEMBERS + 1))
        first_statements.write_text(FIRST_STATEMENTS.format(password=password, database=DATABASE, members=members))
        self.server = LocalServer(
            home,
            port=port,
            mysqld=mysqld,
            extra_args=[*arguments, f"--init-file={first_statements}"],
            made_before=made_before,
        )

    @property
    def running(self) -> bool:
        """Return whether the server's process exists."""
        try:
            os.kill(self.server.pid, 0)
        except (LocusMySQLError, ProcessLookupError):
            return False
        return True

    def restart(self) -> None:
        """Start the server again with its data, and make it join the group."""
        self.server.stop()
        self.server.start()
        self.join()

    def stop(self) -> None:
        """Kill the server, as its data is not kept."""
        with contextlib.suppress(LocusMySQLError, ProcessLookupError):
            os.kill(self.server.pid, signal.SIGKILL)
        self.server.stop()

    def run(self, *statements: str) -> tuple[tuple[Any, ...], ...]:
        """Run statements as root; return the rows of the last one."""
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
        """Make the server a member, or with ``bootstrap`` the first one."""
        if bootstrap:
            self.run("SET GLOBAL group_replication_bootstrap_group = 1")
        self.run(f"START GROUP_REPLICATION USER = '{user_of(self._number)}', PASSWORD = '{self._password}'")
        if bootstrap:
            self.run("SET GLOBAL group_replication_bootstrap_group = 0")

    def view(self) -> dict[int, str]:
        """Return the states of the members by port, as this member sees them."""
        rows = self.run("SELECT member_port, member_state FROM performance_schema.replication_group_members")
        return {int(port): str(state) for port, state in rows if port}


class ReplicationGroup:
    """A group that lives no longer than its starter.

    Args:
        home: The folder of its data.
        mysqld: The servers' program.
        made_before: See `LocalServer`. The members have the same certificate, so that one authority is enough.
    """

    def __init__(self, home: Path, mysqld: Path, made_before: Path) -> None:
        #: Root's password at every member.
        self.password = secrets.token_hex(16)
        self._stopping = threading.Event()
        self._guard = threading.Thread(target=self._restart_what_ends, name="group", daemon=True)
        name = str(uuid.uuid4())
        ports = [reserve_port() for _ in range(MEMBERS)]
        self._links = MemberLinks(ports)
        #: A file with the ports of the members that are cut off from the others; it need not exist.
        self.cuts = home / "cuts"
        seeds = ",".join(f"127.0.0.1:{port}" for port in self._links.ports)
        self.members = [
            Member(
                number,
                home / f"member-{number}",
                mysqld,
                port,
                self.password,
                [
                    f"--server-id={number}",
                    "--gtid-mode=ON",
                    "--enforce-gtid-consistency=ON",
                    "--report-host=127.0.0.1",
                    "--innodb-buffer-pool-size=64M",
                    "--innodb-flush-log-at-trx-commit=2",  # a test of failover need not survive a power cut
                    "--sync-binlog=0",
                    "--plugin-load-add=group_replication.so",
                    f"--loose-group-replication-group-name={name}",
                    "--loose-group-replication-communication-stack=MYSQL",
                    f"--loose-group-replication-local-address=127.0.0.1:{announced}",
                    f"--loose-group-replication-group-seeds={seeds}",
                    "--loose-group-replication-start-on-boot=OFF",
                    "--loose-group-replication-recovery-get-public-key=ON",
                    "--loose-group-replication-recovery-use-ssl=OFF",  # `MemberLinks` reads the users' names
                    "--loose-group-replication-ssl-mode=DISABLED",
                ],
                made_before,
            )
            for number, (port, announced) in enumerate(zip(ports, self._links.ports, strict=True), 1)
        ]

    @property
    def dsn(self) -> str:
        """The DSN of the administrator's account, an empty database, and all members."""
        hosts = ",".join(f"127.0.0.1:{member.server.port}" for member in self.members)
        return f"mysql://root:{self.password}@/{DATABASE}?hosts={hosts}"

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
        """Kill every server, as their data is not kept."""
        self._stopping.set()
        if self._guard.is_alive():
            self._guard.join(START_TIMEOUT_S)
        for member in self.members:
            member.stop()
        self._links.close()

    def _wait_until_all_are_online(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while list(self.members[0].view().values()) != ["ONLINE"] * MEMBERS:
            if time.monotonic() > deadline:
                raise Unavailable(f"The group was not complete within {START_TIMEOUT_S:g} s.")
            time.sleep(POLL_S)

    def _cut_links(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            ports = {int(port) for port in self.cuts.read_text().split()}
            numbers = (number for number, member in enumerate(self.members, 1) if member.server.port in ports)
            self._links.cut(frozenset(numbers))

    def _restart_what_ends(self) -> None:
        while not self._stopping.wait(POLL_S):
            self._cut_links()
            for member in self.members:
                if not member.running and self._have_dropped(member):
                    with contextlib.suppress(LocusMySQLError, pymysql.Error):  # tried again in the next round
                        member.restart()

    def _have_dropped(self, gone: Member) -> bool:
        for member in self.members:
            if member is not gone and member.running:
                with contextlib.suppress(pymysql.Error):
                    view = member.view()
                    if "ONLINE" in view.values() and gone.server.port not in view:
                        return True
        return False
