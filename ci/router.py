"""MySQL Router in front of a private group of servers: `Router`.

    with ReplicationGroup(folder, mysqld) as group, Router(folder, provide(), group) as router:
        print(router.dsns)

The Router reads which servers belong to the group from tables that MySQL Shell makes for an InnoDB Cluster, and asks
the servers themselves for their roles. `METADATA` makes the part of these tables that the Router reads.

https://dev.mysql.com/doc/mysql-router/9.7/en/
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

import pymysql

from ci.certificates import self_signed
from ci.debian_packages import FetchFailed, Software, fetch, loader_of, make_folder, write_program
from ci.local_server import DATABASE, LAUNCHER
from ci.ports import release_port, reserve_port
from ci.replication_group import ReplicationGroup
from locus_mysql.errors import SetupError, Unavailable

FETCHED = Path(__file__).resolve().parent.parent / ".cache/mysql-router"
PACKAGES = Software("MySQL Router", ("mysql-router",), download_mb=30)
PROGRAMS = ("mysqlrouter", "mysqlrouter_keyring")

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
POLL_S = 0.1

#: The routes by name: the role of their servers, and their further options.
ROUTES = {
    "writes": ("PRIMARY", "routing_strategy=first-available"),
    "reads": ("SECONDARY", "routing_strategy=round-robin"),
    "splitting": (
        "PRIMARY_AND_SECONDARY",
        "routing_strategy=round-robin\naccess_mode=auto\nconnection_sharing=1",
    ),
    # The bytes of TLS pass unchanged between the client and the server.
    "passthrough": (
        "PRIMARY",
        "routing_strategy=first-available\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT",
    ),
    "passthrough_reads": (
        "SECONDARY",
        "routing_strategy=round-robin\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT",
    ),
}

#: Version 2.0 of the metadata of InnoDB Cluster, as far as the Router reads it.
METADATA = """\
CREATE DATABASE mysql_innodb_cluster_metadata;
USE mysql_innodb_cluster_metadata;
CREATE TABLE clusters (
    cluster_id   CHAR(36) PRIMARY KEY,
    cluster_name VARCHAR(63) NOT NULL,
    group_name   CHAR(36) NOT NULL,
    cluster_type VARCHAR(8) NOT NULL
);
CREATE TABLE instances (
    instance_id       INT PRIMARY KEY,
    cluster_id        CHAR(36) NOT NULL,
    mysql_server_uuid CHAR(36) NOT NULL,
    label             VARCHAR(255),
    endpoint          VARCHAR(255) NOT NULL,
    xendpoint         VARCHAR(255),
    attributes        JSON
);
CREATE TABLE routers (
    router_id     INT PRIMARY KEY,
    cluster_id    CHAR(36) NOT NULL,
    address       VARCHAR(255) NOT NULL,
    product_name  VARCHAR(128) NOT NULL,
    router_name   VARCHAR(255) NOT NULL,
    version       VARCHAR(12),
    last_check_in TIMESTAMP NULL,
    attributes    JSON,
    options       JSON
);
CREATE VIEW schema_version AS SELECT 2 AS major, 0 AS minor, 0 AS patch;
CREATE VIEW v2_clusters AS SELECT * FROM clusters;
CREATE VIEW v2_gr_clusters AS SELECT * FROM clusters;
CREATE VIEW v2_instances AS SELECT * FROM instances;
CREATE VIEW v2_routers AS SELECT * FROM routers;
CREATE VIEW v2_this_instance AS
    SELECT instances.cluster_id, instance_id, cluster_name, cluster_type
      FROM instances
      JOIN clusters ON clusters.cluster_id = instances.cluster_id
     WHERE mysql_server_uuid = (SELECT CONVERT(variable_value USING utf8mb4) COLLATE utf8mb4_0900_ai_ci
                                  FROM performance_schema.global_variables
                                 WHERE variable_name = 'server_uuid');
INSERT INTO clusters VALUES ('{group}', 'group', '{group}', 'gr');
INSERT INTO routers (router_id, cluster_id, address, product_name, router_name)
     VALUES (1, '{group}', '127.0.0.1', 'MySQL Router', 'test');
"""
INSTANCE = (
    "INSERT INTO instances (instance_id, cluster_id, mysql_server_uuid, endpoint)"
    " VALUES ({number}, '{group}', '{uuid}', '127.0.0.1:{port}')"
)

CONFIGURATION = """\
[DEFAULT]
logging_folder=
plugin_folder={prefix}/usr/lib/mysqlrouter/plugin
runtime_folder={home}
data_folder={home}
config_folder={home}
dynamic_state={home}/state.json
keyring_path={home}/keyring
master_key_path={home}/keyring-key
max_total_connections=2000
connect_timeout=2
read_timeout=2
client_ssl_mode=PREFERRED
client_ssl_cert={home}/router.pem
client_ssl_key={home}/router.pem
server_ssl_mode=REQUIRED
server_ssl_verify=VERIFY_CA
server_ssl_ca={home}/members-ca.pem

[metadata_cache:group]
cluster_type=gr
router_id=1
user=root
metadata_cluster=group
ttl=0.5
"""
ROUTE = """
[routing:{name}]
bind_address=127.0.0.1
bind_port={port}
protocol=classic
destinations=metadata-cache://group/?role={role}
{options}
"""


class Router:
    """A Router that lives no longer than its starter.

    Args:
        home: The folder of its files; it is made.
        prefix: The folder of the unpacked packages, from `provide`.
        group: The running group.
    """

    def __init__(self, home: Path, prefix: Path, group: ReplicationGroup) -> None:
        self._home = home
        self._prefix = prefix
        self._group = group
        self._process: subprocess.Popen[bytes] | None = None
        self.ports = {name: reserve_port() for name in ROUTES}

    @property
    def dsns(self) -> dict[str, str]:
        """The DSN of the administrator's account and an empty database, through each route."""
        password = self._group.password
        return {name: f"mysql://root:{password}@127.0.0.1:{port}/{DATABASE}" for name, port in self.ports.items()}

    @property
    def certificate_authority(self) -> Path:
        """The file of the authority of the Router's certificate, which is another one than the members'."""
        return self._home / "router.pem"

    @property
    def members_authority(self) -> Path:
        """The file of the authority of the members' certificate."""
        return self._home / "members-ca.pem"

    def __enter__(self) -> Router:
        try:
            self._describe_group()
            self._write_files()
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the Router and return once each route leads to a server.

        Raises:
            SetupError: It ended; with the end of its messages.
            Unavailable: It did not answer in time.
        """
        with (self._home / "router.log").open("ab") as log:
            program = str(self._prefix / "bin/mysqlrouter")
            self._process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                [
                    *(sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid())),
                    *(program, "-c", str(self._home / "router.conf")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        for port in self.ports.values():
            while not self._leads_to_a_server(port):
                if self._process.poll() is not None:
                    raise SetupError(f"MySQL Router ended (exit code {self._process.returncode}). {self._last_lines()}")
                if time.monotonic() > deadline:
                    raise Unavailable(f"MySQL Router led to no server in {START_TIMEOUT_S:g} s. {self._last_lines()}")
                time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the Router, and release its ports."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for port in self.ports.values():
            release_port(port)

    def _describe_group(self) -> None:
        """Write the metadata into the group."""
        primary = self._group.members[0]
        group = str(primary.run("SELECT @@group_replication_group_name")[0][0])
        members = [
            INSTANCE.format(
                number=number,
                group=group,
                uuid=member.run("SELECT @@server_uuid")[0][0],
                port=member.server.port,
            )
            for number, member in enumerate(self._group.members, 1)
        ]
        primary.run(*METADATA.format(group=group).strip().rstrip(";").split(";\n"), *members)
        servers = [f"mysql://127.0.0.1:{member.server.port}" for member in self._group.members]
        state = {"group-replication-id": group, "cluster-metadata-servers": servers}
        make_folder(self._home)
        (self._home / "state.json").write_text(json.dumps({"metadata-cache": state, "version": "1.0.0"}))

    def _write_files(self) -> None:
        """Write the configuration, the password in a keyring, and the certificates."""
        self_signed(self.certificate_authority)
        shutil.copy(self._group.members[0].server.data_dir / "mysql/ca.pem", self.members_authority)
        routes = (
            ROUTE.format(name=name, port=self.ports[name], role=role, options=options)
            for name, (role, options) in ROUTES.items()
        )
        configuration = CONFIGURATION.format(prefix=self._prefix, home=self._home)
        (self._home / "router.conf").write_text("".join([configuration, *routes]))
        self._run_keyring("init")
        self._run_keyring("set", "root", "password", given=self._group.password)

    def _run_keyring(self, command: str, *arguments: str, given: str = "") -> None:
        keyring = [command, f"--master-key-file={self._home}/keyring-key", f"{self._home}/keyring", *arguments]
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            [self._prefix / "bin/mysqlrouter_keyring", *keyring],
            input=given.encode(),
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise SetupError(f"mysqlrouter_keyring failed: {done.stderr.decode().strip()}")

    def _leads_to_a_server(self, port: int) -> bool:
        try:
            with pymysql.connect(
                host="127.0.0.1", port=port, user="root", password=self._group.password, connect_timeout=2
            ) as connection:
                connection.ping(reconnect=False)
        except pymysql.Error:
            return False
        return True

    def _last_lines(self) -> str:
        lines = (self._home / "router.log").read_text(errors="replace").splitlines()[-12:]
        return "\n".join(["Its last messages:", *lines])


def provide() -> Path:
    """Return the folder of the Router's programs, fetched if absent.

    Raises:
        SetupError: They cannot be fetched.
    """
    if not (FETCHED / "bin/mysqlrouter").exists():
        try:
            fetch(PACKAGES, FETCHED, _make_ready, lambda message: print(f"ci/cluster: {message}", file=sys.stderr))
        except (FetchFailed, OSError) as error:
            raise SetupError(f"MySQL Router could not be fetched: {error}") from None
    return FETCHED


def _make_ready(staging: Path) -> None:
    """Write ``bin/mysqlrouter`` and others: they run the unpacked programs with the unpacked libraries."""
    loader = loader_of(staging)
    libraries = f"$prefix/{Path(loader).parent}:$prefix/usr/lib/mysql-router:$prefix/usr/lib"
    for name in PROGRAMS:
        wrapper = f"""\
#!/bin/sh
# Made by ci/cluster: runs a program of Debian's MySQL Router with the libraries that were unpacked beside it.
prefix=$(cd "$(dirname "$0")/.." && pwd -P) || exit
exec "$prefix/{loader}" --library-path "{libraries}" "$prefix/usr/bin/{name}" "$@"
"""
        write_program(staging / "bin" / name, wrapper)
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            [staging / "bin" / name, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
        if done.returncode != 0:
            raise FetchFailed(f"the unpacked {name} does not start: {done.stderr.strip()}")
