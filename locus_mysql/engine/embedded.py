"""The embedded server, which runs beside the program and keeps its data in a folder: `start_server`.

The server is OceanBase's, from the package pylibseekdb. Each process starts at most one for a folder, at its first
connection; a lock keeps other processes out. It listens on a Unix socket in that folder only. A separate keeper process
(`embedded_keeper`) stops it when the program ends, even if it is killed.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from ..background_loop import in_thread
from ..config import ConnectionOptions, Endpoint
from ..errors import SetupError, Unavailable
from ..extras import install_command
from . import embedded_keeper
from .at_fork import reset_at_fork

#: How long the keeper may take to answer: to start the server, or to create a database.
ANSWER_TIMEOUT_S = 120.0

#: How long the keeper may take to stop its server.
STOP_TIMEOUT_S = 60.0

_KEEPER = Path(embedded_keeper.__file__)

#: Maximum number of characters shown of the output of a server that did not start.
_SHOWN = 500


def start_server(config: ConnectionOptions) -> Endpoint:
    """Start the server of a folder if it does not run, create the database there, and return its address.

    Args:
        config: Names the folder (``embedded``) and the database.

    Raises:
        SetupError: pylibseekdb is not installed, another process uses the folder, or it cannot be written.
        Unavailable: The server did not start.
    """
    assert config.embedded is not None  # noqa: S101 - the caller has checked it
    return _SERVERS.start(config.embedded, config.database)


async def start_server_async(config: ConnectionOptions) -> Endpoint:
    """Like `start_server`, without blocking the event loop."""
    return await asyncio.wrap_future(in_thread(lambda: start_server(config), "locus-mysql embedded server"))


def stop_server(folder: str | Path) -> None:
    """Stop the server of a folder, for example to move or remove the folder.

    The next call that needs the server starts it again. Servers stop by themselves when the program ends. Does nothing
    if this process has not started the server.

    Args:
        folder: The folder.
    """
    _SERVERS.stop(Path(folder))


class _Server:
    """A running server, and its keeper process."""

    def __init__(self, folder: Path, database: str) -> None:
        self._folder = folder
        self._databases = {database}
        #: Whether a parent of this process has started it.
        self.inherited = False
        packages = _packages()
        interpreter = _interpreter()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"The folder {folder} for the embedded database cannot be made: {error.strerror}."
            ) from None
        self._reports = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        keeper = (interpreter, "-P", str(_KEEPER), str(folder), database, str(os.getpid()), packages)
        self._keeper = subprocess.Popen(  # noqa: S603 - our own program
            keeper,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._reports,
            start_new_session=True,  # so that Ctrl-C ends the program first
        )
        assert self._keeper.stdin is not None  # noqa: S101 - it is a pipe
        assert self._keeper.stdout is not None  # noqa: S101 - likewise
        self._requests, self._answers = self._keeper.stdin, self._keeper.stdout
        reset_at_fork(self)  # now: a child that is forked during the start has the pipe too
        try:
            answer = self._answer()
        except BaseException:  # such as Ctrl-C: the server is stopped as soon as it has started
            self._requests.close()
            raise
        try:
            socket = str(json.loads(answer)["socket"])
        except (ValueError, TypeError, KeyError):
            raise self._failure(answer.strip()) from None
        self.endpoint = Endpoint("localhost", 3306, socket)

    @property
    def runs(self) -> bool:
        """Return whether the server runs."""
        return self._keeper.poll() is None

    def create(self, database: str) -> None:
        """Create a database, unless it was created before."""
        if database in self._databases:
            return
        with suppress(BrokenPipeError):
            self._requests.write(f"{database}\n".encode())
        if not self._answer():
            raise self._failure("")
        self._databases.add(database)

    def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        self._stop_keeper()
        self._reports.close()

    def _stop_keeper(self) -> None:
        self._requests.close()
        try:
            self._keeper.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        self._answers.close()
        if self._keeper.returncode < 0:  # killed, so it could not stop the server
            embedded_keeper.end_leftovers(self._folder)

    def reset_in_child(self) -> None:
        """After a fork: the server ends with the process that started it, so the child closes its end of the pipe."""
        self._requests.close()
        self.inherited = True
        self._keeper.returncode = 0  # not this process's child, so it must not be waited for here

    def _answer(self) -> str:
        """Return the keeper's next line. A keeper that does not answer in time is killed, and the line is empty."""
        timer = threading.Timer(ANSWER_TIMEOUT_S, self._keeper.kill)
        timer.daemon = True
        timer.start()
        try:
            return self._answers.readline().decode()
        finally:
            timer.cancel()

    def _how_to_read(self) -> str:
        """Return a sentence with the DSN by which other processes can read what a running server has."""
        socket = self._folder / "server/run/sql.sock"
        if len(os.fsencode(socket)) > embedded_keeper.MAX_SOCKET_BYTES:
            return ""
        dsn = f"mysql+pymysql://root@/{min(self._databases)}?read_only=true&unix_socket={quote(str(socket))}"
        return f" To read from it while that process runs, use the DSN {dsn}"

    def _failure(self, answer: str) -> Exception:
        """Stop a keeper that did not answer correctly, and return the error."""
        self._stop_keeper()
        self._reports.seek(0)
        reported = self._reports.read().decode(errors="replace")
        self._reports.close()
        if self._keeper.returncode == embedded_keeper.IN_USE:
            process = f"process {answer}" if answer.isdecimal() else "another process"
            return SetupError(
                f"The embedded database in {self._folder} is in use by {process}: one process at a time can use a "
                f"folder. End that process, or name another folder.{self._how_to_read()} To share a database between "
                "processes, use a MySQL server."
            )
        if self._keeper.returncode == embedded_keeper.NOT_WRITABLE:
            return SetupError(
                f"The folder {self._folder} for the embedded database cannot be written: {answer}. Give this user the "
                "right to write there, or name another folder."
            )
        printed = f"it printed {answer[:_SHOWN]!r}" if answer else f"exit code {self._keeper.returncode}"
        if self._keeper.returncode == -signal.SIGKILL:
            printed = f"it was killed, or did not answer within {ANSWER_TIMEOUT_S:g} s"
        reason = " ".join(reported.split())[-_SHOWN:] or printed
        return Unavailable(
            f"The embedded server in {self._folder} did not start: {reason}. Its log is in "
            f"{self._folder / 'server/log'}; it needs about 1 GB of memory and 3 GB of disk space."
        )


class _Servers:
    """The servers that this process has started, by their folders."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[Path, _Server] = {}
        reset_at_fork(self)
        atexit.register(self.stop_all)

    def start(self, folder: Path, database: str) -> Endpoint:
        """Return the address of a folder's server, which is started if it does not run."""
        folder = _real(folder)
        with self._lock:
            server = self._servers.get(folder)
            if server is not None and server.inherited:
                if not Path(str(server.endpoint.unix_socket)).exists():
                    raise SetupError(
                        f"The embedded server in {folder} has ended with the process that started it, a parent of this "
                        "one. Keep that process running, or use a MySQL server."
                    )
                return server.endpoint
            if server is not None and not server.runs:
                self._servers.pop(folder).stop()
                server = None
            if server is None:
                server = self._servers[folder] = _Server(folder, database)
            server.create(database)
            return server.endpoint

    def stop(self, folder: Path) -> None:
        """Stop a folder's server, if this process has started it."""
        folder = _real(folder)
        with self._lock:
            server = self._servers.get(folder)
            if server is not None and not server.inherited:
                self._servers.pop(folder).stop()

    def stop_all(self) -> None:
        """Stop all servers that this process has started."""
        for folder in list(self._servers):
            self.stop(folder)

    def reset_in_child(self) -> None:
        """After a fork: the servers are the parent's. The child may use them for as long as the parent runs."""
        self._lock = threading.Lock()


def _real(folder: Path) -> Path:
    """Return the canonical path of a folder, which may be reached through symbolic links."""
    return Path(os.path.realpath(folder))  # Path.resolve() raises an error for links in a circle


def _packages() -> str:
    """Return the folder in which pylibseekdb is installed.

    Raises:
        SetupError: It is not installed.
    """
    spec = find_spec("pylibseekdb")
    if spec is None or spec.origin is None:
        raise SetupError(
            f"The embedded database needs the package pylibseekdb. Run {install_command('embedded')}. It exists for "
            "Linux (x86-64 and ARM64, glibc 2.28 or later) and macOS (ARM64)."
        )
    return str(Path(spec.origin).parent.parent)


def _interpreter() -> str:
    """Return the program that runs the keeper.

    Raises:
        SetupError: This program has no Python interpreter to start.
    """
    if not sys.executable or getattr(sys, "frozen", False):  # a frozen program would start itself
        raise SetupError(
            "The embedded database needs a Python interpreter (sys.executable), which this program does not have. Use "
            "a MySQL server."
        )
    return sys.executable


_SERVERS = _Servers()
