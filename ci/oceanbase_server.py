"""A private OceanBase server for tests: started, kept and stopped by one process."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import pymysql

from ci.local_server import LAUNCHER
from ci.ports import release_port, reserve_port
from locus_mysql.errors import SetupError, Unavailable

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.05
DATABASE = "locus"


class OceanBaseServer:
    """A server of one node that lives no longer than its starter.

    Args:
        folder: The folder of all the server's files; created if absent, and never removed.
        memory_budget: The memory that the server may use, with a suffix such as ``1G``.
    """

    def __init__(self, folder: Path, *, memory_budget: str = "2G") -> None:
        self._folder = folder
        self._memory_budget = memory_budget
        self._password = ""
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The DSN of the administrator's account and of an empty database."""
        return f"mysql://root:{self._password}@127.0.0.1:{self._port}/{DATABASE}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with the server's DSN and its engine, for tests."""
        return {"LOCUS_MYSQL_TEST_DSN": self.dsn, "LOCUS_MYSQL_TEST_ENGINE": "oceanbase"}

    def __enter__(self) -> OceanBaseServer:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait(self) -> None:
        """Wait until the server ends."""
        if self._process is not None:
            self._process.wait()

    def stop(self) -> None:
        """Stop the server. Does nothing if it does not run."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._port:
            release_port(self._port)
            self._port = 0

    def _start(self) -> None:
        program = find_program()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        password = self._folder / "root-password"
        self._password = password.read_text() if password.exists() else ""
        self._port = reserve_port()
        options = [
            f"--base-dir={self._folder}",
            "--nodaemon",
            f"--port={self._port}",
            "--log-level=WARN",
            *("--parameter", f"memory_budget={self._memory_budget}"),
            *("--parameter", "log_disk_size=2G"),
        ]
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", LAUNCHER, str(os.getpid()), str(program), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TELEMETRY_ENABLED": "false"},  # https://www.oceanbase.ai/docs/telemetry
        )
        with self._connect(self._process) as connection, connection.cursor() as cursor:
            if not self._password:
                self._password = secrets.token_hex(16)
                cursor.execute(f"ALTER USER root IDENTIFIED BY '{self._password}'")
                password.touch(mode=0o600)
                password.write_text(self._password)
            cursor.execute("SET GLOBAL time_zone = '+00:00'")  # by default the machine's; tests on MySQL use UTC
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")

    def _connect(self, process: subprocess.Popen[bytes]) -> pymysql.Connection:  # type: ignore[type-arg]
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            if process.poll() is not None:
                raise SetupError(
                    f"OceanBase ended with exit code {process.returncode}; see {self._folder / 'log'} for the reason."
                )
            try:
                return pymysql.connect(host="127.0.0.1", port=self._port, user="root", password=self._password)
            except pymysql.err.MySQLError as error:
                if time.monotonic() > end:
                    raise Unavailable(f"OceanBase did not answer within {START_TIMEOUT_S:g} s: {error}") from None
            time.sleep(POLL_S)


def find_program() -> Path:
    """Return the path of the server's program.

    Raises:
        SetupError: The package that contains it is not installed.
    """
    spec = find_spec("pylibseekdb")
    if spec is None or spec.origin is None:
        raise SetupError('The package pylibseekdb is missing. Run pip install "locus-mysql[embedded]"')
    return Path(spec.origin).parent / "seekdb"
