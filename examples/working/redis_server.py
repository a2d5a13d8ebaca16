"""A private Redis that the demo can kill and restart: `PrivateRedis`."""

from __future__ import annotations

import contextlib
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from locus_mysql.errors import SetupError, Unavailable

#: Seconds until the server must have answered, or ended.
_PATIENCE_S = 60.0


class PrivateRedis:
    """A server on loopback, with a password. Acknowledged writes are on disk, so they survive a kill.

    Args:
        home: A folder for its data.
        program: The server.
        port: A free port.
    """

    def __init__(self, home: Path, program: Path, port: int) -> None:
        self._home = home
        self._program = program
        self._port = port
        self._password = secrets.token_urlsafe(12)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://:{self._password}@127.0.0.1:{self._port}/0"

    def start(self) -> None:
        """Start it with its existing data, and wait until it serves. It ends with the thread that calls this method."""
        from ci.private_servers import Account, end_of_log, launch

        configuration = self._home / "redis.conf"
        configuration.touch(mode=0o600)
        configuration.write_text(
            f"bind 127.0.0.1\nport {self._port}\nrequirepass {self._password}\ndir {self._home}\n"
            'appendonly yes\nappendfsync always\nsave ""\ndaemonize no\n'
        )
        self._process = launch([str(self._program), str(configuration)], Account.current(), self._home)
        deadline = time.monotonic() + _PATIENCE_S
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Unavailable(f"The private Redis does not answer: {end_of_log(self._home)}")
            time.sleep(0.02)

    def _serves(self) -> bool:
        wanted = b"+OK\r\n+PONG\r\n"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 5.0) as connection:
            connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
            return connection.recv(len(wanted), socket.MSG_WAITALL) == wanted
        return False

    def kill(self) -> int:
        """End it with SIGKILL, which it cannot handle; returns its exit code, -9."""
        return self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it cleanly, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None  # noqa: S101 - for the type checker; it was started
        self._process.send_signal(how)
        try:
            return self._process.wait(_PATIENCE_S)
        finally:
            self._process.kill()  # does nothing if it has ended


@contextlib.contextmanager
def private_redis() -> Iterator[PrivateRedis]:
    """A running, empty server, which is stopped at the end. The program is this machine's, or fetched once.

    Raises:
        SetupError: It is not available on this machine; the message gives the reason.
    """
    from ci.ports import reserve_port
    from ci.private_servers import Account, Redis, ServerMissing, home_for

    try:
        program = Redis.program(lambda text: print(text, file=sys.stderr, flush=True))
    except ServerMissing as missing:
        raise SetupError(f"This chapter of the demo needs redis-server: {missing}.") from None
    with home_for(Account.current()) as home:
        server = PrivateRedis(home, program, reserve_port())
        try:
            server.start()
            yield server
        finally:
            server.stop()
