"""Private servers of Redis and Valkey, which tests may kill and start again."""

from __future__ import annotations

import secrets
import signal
import subprocess
import time
from pathlib import Path

import redis

from ci.ports import reserve_port
from ci.private_servers import Account, Redis, end_of_log, greets, launch

START_TIMEOUT_S = 60.0


class OwnServer:
    """A server on loopback, with a password; its data survives a kill.

    Args:
        kind: The program to run.
        home: A folder for its data.
        options: Lines for its configuration.
    """

    def __init__(self, kind: type[Redis], home: Path, *options: str) -> None:
        self.kind = kind
        self.home = home
        self.password = secrets.token_urlsafe(12)
        self.port = reserve_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The URL of the server, with the password."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it answers. Call this in the main thread: the server dies with the thread."""
        configuration = self.home / "server.conf"
        lines = [
            "bind 127.0.0.1",
            f"port {self.port}",
            f"requirepass {self.password}",
            f"dir {self.home}",
            'save ""',
            "daemonize no",
            *self._options,
        ]
        configuration.write_text("\n".join(lines) + "\n")
        program = self.kind.program(print)
        self._process = launch([str(program), str(configuration)], Account.current(), self.home)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not greets(self.port, self.kind.greeting):
            assert self._process.poll() is None, f"it ended: {end_of_log(self.home)}"
            assert time.monotonic() < deadline, f"it did not answer: {end_of_log(self.home)}"
            time.sleep(0.02)
        with self.client() as client:
            while client.info("persistence")["loading"]:
                assert time.monotonic() < deadline, "it did not load its data"
                time.sleep(0.02)

    def client(self) -> redis.Redis:
        """Return a client with which tests prepare and check data."""
        return redis.Redis.from_url(self.url, socket_timeout=30.0)

    def kill(self) -> None:
        """Kill the server, like a crash."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Shut the server down."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Suspend the server, so that it does not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the server."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(30.0)
            finally:
                self._process.kill()  # does nothing if it has ended
                self._process.wait()
            self._process = None


def make_cluster(server: OwnServer) -> None:
    """Turn a server into a cluster of one node."""
    with server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO", NEVER_DECODE=True):
            assert time.monotonic() < deadline, "the cluster did not begin"
            time.sleep(0.02)
