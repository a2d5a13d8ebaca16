"""A private MySQL server for development, tests and demos: started, kept and stopped by one process.

    with LocalServer(Path(".server/data")) as server:
        print(server.dsn)

It listens on 127.0.0.1 and on a Unix socket only, reads no option file, and keeps everything in one folder:

    lock            held (flock) by the starter and the server, for as long as either lives
    root-password   readable by its owner only
    error.log       the server's messages
    mysql/          the server's own data folder; made under another name, so it is complete or absent
    tmp/            the server's temporary files
    mysql.sock      unless the folder's path is too long for a socket

Uses the standard library only: ``ci/mysql`` runs it before anything is installed.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import TracebackType

from ci.ports import release_port, reserve_port
from locus_mysql.errors import SetupError, Unavailable, UsageError
from locus_mysql.signals import StopRequested, stop_signals_raise

DEFAULT_DATA_DIR = Path(".server/data")
DATABASE = "locus"
MINIMUM_VERSION = (8, 0, 19)
#: The variable that names the program of private servers; see ``ci/test --server``.
PROGRAM_VARIABLE = "LOCUS_MYSQL_TEST_MYSQLD"

# Folders where distributions put mysqld; an ordinary user's PATH often lacks them.
SYSTEM_FOLDERS = (Path("/usr/sbin"), Path("/usr/local/sbin"), Path("/usr/local/mysql/bin"))
LONGEST_SOCKET_PATH = 100  # bytes; the system's limit is 104 (macOS) or 108 (Linux) with the final zero
LOCK_WAIT_S = 3.0  # a server whose starter was killed needs a moment to stop
POLL_S = 0.05
TAIL_LINES = 12

WAYS_TO_HELP = """\
Any one of these helps:
  use a server you have         pass its DSN, such as mysql://user:password@host:3306/database
  start one with Docker         docker run --rm -e MYSQL_ROOT_PASSWORD=locus -e MYSQL_DATABASE=locus \
-p 127.0.0.1:3306:3306 mysql:8.4
                                and pass mysql://root:locus@127.0.0.1:3306/locus
  install one                   apt install mysql-server-core-8.0 (Ubuntu), brew install mysql (macOS)
  fetch one on Debian           ci/mysql fetch   (in a checkout of locus-mysql; needs no root)"""

# Linux kills the server (argv[2:]) when its starter (pid argv[1]) dies, however it dies: PR_SET_PDEATHSIG (1)
# is kept across exec. A separate program requests it, as a preexec_fn can deadlock in a program with threads.
# The signal is 9, SIGKILL: mysqld 9.7 was observed to continue after a SIGTERM during its start, and a kill
# loses no committed data.
LAUNCHER = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that wanted the server has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


class LocalServer:
    """A MySQL server that lives no longer than its starter.

    Args:
        data_dir: The folder of all the server's files; created if absent, and never removed. None means a
            temporary one, which :meth:`stop` removes.
        port: TCP port on 127.0.0.1. None picks a free one, which stays the same until :meth:`stop`.
        mysqld: The server's program; None means :func:`find_mysqld`.
        extra_args: Further options of ``mysqld``, such as ``--max-connections=500``.
        first_statements: Statements that the server runs at every start, before it accepts connections.
        made_before: A cache folder for empty data folders, by server version and options. A new server's files are
            copied from there, which takes a tenth of a second instead of some seconds; a missing one is made.
            Servers from one cache share a key and a certificate, so it is for tests only. None creates every
            data folder from scratch.
        start_timeout_s: Seconds until the server must answer, and until a new data folder must be ready.
        stop_timeout_s: Seconds that a clean stop may take before the server is killed.
    """

    def __init__(
        self,
        data_dir: Path | str | None = None,
        *,
        port: int | None = None,
        mysqld: Path | None = None,
        extra_args: Sequence[str] = (),
        first_statements: Sequence[str] = (),
        made_before: Path | None = None,
        start_timeout_s: float = 120.0,
        stop_timeout_s: float = 60.0,
    ) -> None:
        self._wanted_dir = None if data_dir is None else Path(data_dir).absolute()
        self._wanted_port = port
        self._mysqld = mysqld
        self._extra_args = tuple(extra_args)
        self._first_statements = tuple(first_statements)
        self._made_before = made_before
        self._start_timeout_s = start_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._owner_pid: int | None = None
        self._home: Path | None = None
        self._lock_fd: int | None = None
        self._socket_dir: Path | None = None
        self._port: int | None = None
        self._password = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def __enter__(self) -> LocalServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def data_dir(self) -> Path:
        """The folder with all files of the server."""
        if self._home is None:
            raise UsageError("The server is not started. Call start() first.")
        return self._home

    @property
    def port(self) -> int:
        """The TCP port on 127.0.0.1."""
        if self._port is None:
            raise UsageError("The server is not started. Call start() first.")
        return self._port

    @property
    def socket_path(self) -> Path:
        """The Unix socket."""
        return (self._socket_dir or self.data_dir) / "mysql.sock"

    @property
    def error_log(self) -> Path:
        """The server's error log."""
        return self.data_dir / "error.log"

    @property
    def pid(self) -> int:
        """The server's process id."""
        if self._process is None:
            raise UsageError("The server is not started. Call start() first.")
        return self._process.pid

    @property
    def dsn(self) -> str:
        """The DSN of the administrator's account and of an empty database."""
        return f"mysql://root:{self._password}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Start the server and return once it answers.

        The first start on a folder makes its database files, which takes some seconds.

        Raises:
            SetupError: There is no usable ``mysqld``, the folder or the port is in use, or the server ended;
                with the end of its error log.
            Unavailable: The server did not answer within ``start_timeout_s``.
        """
        if self._process is not None:
            raise UsageError("The server is started already.")
        if os.name != "posix":
            raise SetupError(f"A private MySQL server needs Linux or macOS.\n{WAYS_TO_HELP}")
        program = self._mysqld or find_mysqld()
        self._owner_pid = os.getpid()
        atexit.register(self.stop)
        try:
            self._home = self._make_home()
            self._lock_fd = _lock(self._home)
            self._password = _root_password(self._home / "root-password")
            self._socket_dir = _short_folder_for_socket(self._home)
            shutil.rmtree(self._home / "tmp", ignore_errors=True)
            (self._home / "tmp").mkdir()
            self._initialise(program)
            self._launch(program)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the server cleanly, killing it after ``stop_timeout_s``. Does nothing if it is not started."""
        if self._owner_pid != os.getpid():  # a forked child inherits the object, not the server
            return
        self._end_process(signal.SIGTERM)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None
        if self._socket_dir is not None:
            shutil.rmtree(self._socket_dir, ignore_errors=True)
            self._socket_dir = None
        if self._wanted_dir is None and self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
        if self._port is not None and self._wanted_port is None:
            release_port(self._port)
        self._home = self._port = None
        atexit.unregister(self.stop)

    def restart(self, *, crash: bool = False) -> None:
        """Stop the server and start it again with the same data, port and password.

        Args:
            crash: Kill the server, as a power cut would, instead of stopping it cleanly.

        Raises:
            SetupError, Unavailable: As for :meth:`start`.
        """
        program = self._mysqld or find_mysqld()
        self._end_process(signal.SIGKILL if crash else signal.SIGTERM)
        try:
            self._launch(program, self.port)
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Wait until the server ends.

        Raises:
            SetupError: Always, once the server ended; with the end of its error log.
        """
        if self._process is None:
            raise UsageError("The server is not started. Call start() first.")
        self._process.wait()
        raise SetupError(self._failure(f"The server ended with exit code {self._process.returncode}."))

    def _make_home(self) -> Path:
        if self._wanted_dir is None:
            return Path(tempfile.mkdtemp(prefix="locus-mysql-"))
        home = self._wanted_dir
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (home / "lock").exists() and any(home.iterdir()):
            raise SetupError(f"{home} holds files that no server of locus-mysql made. Name an empty or a new folder.")
        return home

    def _initialise(self, program: Path) -> None:
        final = self.data_dir / "mysql"
        if final.exists():
            return
        unfinished = self.data_dir / "mysql.initialising"
        shutil.rmtree(unfinished, ignore_errors=True)  # left by an interrupted start; this process has the lock
        if self._made_before is None:
            self._make_data_folder(program, unfinished)
        else:
            self._copy_data_folder(program, unfinished, self._made_before)
        unfinished.rename(final)

    def _copy_data_folder(self, program: Path, unfinished: Path, made_before: Path) -> None:
        import fcntl  # not on Windows

        made_before.mkdir(mode=0o700, parents=True, exist_ok=True)  # the server's private keys are in it
        kept = made_before / data_folder_key(program)
        with (made_before / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # held no longer than start_timeout_s and a copy
            if kept.exists():
                shutil.copytree(kept, unfinished)
                return
            for outdated in made_before.iterdir():  # or left unfinished
                if outdated.is_dir():
                    shutil.rmtree(outdated)
            self._make_data_folder(program, unfinished)
            (unfinished / "auto.cnf").unlink(missing_ok=True)  # the server's identity: each start without it makes one
            shutil.copytree(unfinished, made_before / "unfinished")
            (made_before / "unfinished").rename(kept)

    def _make_data_folder(self, program: Path, unfinished: Path) -> None:
        process = self._spawn(initialise_arguments(program, home=self.data_dir, data_dir=unfinished))
        try:
            process.wait(self._start_timeout_s)
        except BaseException as error:
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Unavailable(
                    self._failure(f"{program} made no data folder in {self._start_timeout_s:g} s.")
                ) from None
            raise
        if process.returncode != 0:
            raise SetupError(self._failure(f"{program} could not make a data folder (exit code {process.returncode})."))

    def _launch(self, program: Path, port: int | None = None) -> None:
        """Start the server on ``port``, on the requested one, or on a free one."""
        fixed = port or self._wanted_port
        for attempts_left in (2, 1, 0):
            self._port = _free_port(fixed)
            try:
                self._launch_on_port(program)
                return
            except SetupError as error:
                if fixed is not None or attempts_left == 0 or "already in use" not in str(error):
                    raise

    def _launch_on_port(self, program: Path) -> None:
        for stale in (self.socket_path, self.socket_path.with_name("mysql.sock.lock")):
            stale.unlink(
                missing_ok=True
            )  # left by a killed server; this process has the lock, so no other server listens there
        first_statements = self.data_dir / "first-statements.sql"
        # At every start, not only the first: a first start that was interrupted needs no special case.
        _write_private(
            first_statements,
            f"ALTER USER 'root'@'localhost' IDENTIFIED BY '{self._password}';\n"
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
            + "".join(f"{statement};\n" for statement in self._first_statements),
        )
        try:
            self._process = self._spawn(
                server_arguments(
                    program,
                    home=self.data_dir,
                    socket_path=self.socket_path,
                    port=self.port,
                    init_file=first_statements,
                    extra_args=self._extra_args,
                )
            )
            self._wait_until_ready(self._process)
        except BaseException:
            self._end_process(signal.SIGKILL)
            raise
        finally:
            first_statements.unlink(missing_ok=True)

    def _spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Run a command that dies with this process and holds the folder's lock while it lives."""
        lock_fd = self._lock_fd
        if lock_fd is None:
            raise UsageError("The server is not started. Call start() first.")
        if sys.platform == "linux" and sys.executable:
            command = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), *command]
        self._log_start = self.error_log.stat().st_size if self.error_log.exists() else 0
        started: Future[subprocess.Popen[bytes]] = Future()

        # Linux sends the death signal when the *thread* that started the child ends, so this one waits for the child.
        def own_the_process() -> None:
            try:
                with self.error_log.open("ab") as log:
                    process = subprocess.Popen(  # noqa: S603 - our own arguments, no shell
                        command,
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        pass_fds=(lock_fd,),
                        start_new_session=True,  # a terminal sends Ctrl-C to the starter only
                    )
            except BaseException as error:
                started.set_exception(error)
                return
            started.set_result(process)
            process.wait()

        Thread(target=own_the_process, name="locus-mysql-server", daemon=True).start()
        return started.result()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while not _greets(self.socket_path):
            if process.poll() is not None:
                raise SetupError(
                    self._failure(f"The server ended with exit code {process.returncode} before it answered.")
                )
            if time.monotonic() > deadline:
                raise Unavailable(self._failure(f"The server did not answer within {self._start_timeout_s:g} s."))
            time.sleep(POLL_S)

    def _end_process(self, first_signal: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(first_signal)  # does nothing if the process has ended
        try:
            process.wait(self._stop_timeout_s)
        except BaseException as error:
            process.kill()
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise

    def _failure(self, what: str) -> str:
        """Describe a failure, with the end of the server's log since its start."""
        lines: list[str] = []
        if self.error_log.exists():
            with self.error_log.open("rb") as log:
                log.seek(self._log_start)
                lines = log.read().decode(errors="replace").splitlines()[-TAIL_LINES:]
        tail = "\n".join(f"  {line}" for line in lines) or "  (nothing)"
        if self._password:
            tail = tail.replace(self._password, "***")
        return f"{what} The end of {self.error_log}:\n{tail}"


def serve(data_dir: Path | None = None, port: int | None = None, *, mysqld: Path | None = None) -> int:
    """Run a server in the foreground until Ctrl-C, SIGTERM or SIGHUP; its DSN is the first line on stdout.

    Args:
        data_dir: The folder to keep the data in; None means ``.server/data`` in the current folder.
        port: TCP port on 127.0.0.1; None picks a free one.
        mysqld: The server's program; None means :func:`find_mysqld`.

    Returns:
        The exit code: 0.

    Raises:
        SetupError, Unavailable: As for :meth:`LocalServer.start`, or the server ended.
    """
    server = LocalServer(data_dir or DEFAULT_DATA_DIR, port=port, mysqld=mysqld)
    with contextlib.suppress(StopRequested), stop_signals_raise(), server:
        print(server.dsn, flush=True)
        print(f"MySQL keeps its data in {server.data_dir}. Stop it with Ctrl-C.", file=sys.stderr, flush=True)
        server.wait()
    return 0


def find_mysqld() -> Path:
    """Find the program of a MySQL server of version 8.0.19 or later.

    That is the one that ``$LOCUS_MYSQL_TEST_MYSQLD`` names, and no other; without it, in this order: ``mysqld`` on
    the PATH or in a system folder; the one that ``ci/mysql`` fetched, in ``.cache/mysql`` of the current folder, its
    parents or the checkout.

    Raises:
        SetupError: There is none. The message lists the attempts, and remedies.
    """
    tried: list[str] = []
    for candidate in dict.fromkeys(candidates()):
        refusal = refusal_of(candidate)
        if refusal is None:
            return candidate
        tried.append(f"  {candidate}: {refusal}")
    raise SetupError("\n".join(["No MySQL server program was found. Tried:", *tried, WAYS_TO_HELP]))


def candidates() -> Iterator[Path]:
    """List the paths that :func:`find_mysqld` tries, best first."""
    if named := os.environ.get(PROGRAM_VARIABLE):
        yield Path(named).absolute()
        return
    on_path = shutil.which("mysqld")
    if on_path:
        yield Path(on_path).absolute()
    for folder in SYSTEM_FOLDERS:
        if (folder / "mysqld").exists():
            yield folder / "mysqld"
    here = Path.cwd()
    for folder in (here, *here.parents):
        fetched = folder / ".cache/mysql/bin/mysqld"
        # Another user may have put a program into, say, /tmp: it must not be run.
        if folder == here or (fetched.exists() and fetched.stat().st_uid in (0, os.getuid())):
            yield fetched
    yield Path(__file__).absolute().parent.parent / ".cache/mysql/bin/mysqld"


def refusal_of(program: Path) -> str | None:
    """Return the reason why ``program`` is unsuitable, or None if it is a suitable MySQL server."""
    if not program.is_file():
        return "not there"
    try:
        answer = subprocess.run(  # noqa: S603 - the program that the caller wants to run
            [program, "--no-defaults", "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    if answer.returncode != 0:
        return f"--version failed ({(answer.stderr.strip() or 'no message').splitlines()[-1]})"
    return refusal_of_version(answer.stdout)


def refusal_of_version(text: str) -> str | None:
    """Return the reason why a server whose ``--version`` prints ``text`` is unsuitable, or None if it is suitable.

    >>> refusal_of_version("mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)")
    >>> refusal_of_version("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)")
    'is MariaDB, not MySQL'
    """
    if "mariadb" in text.lower():
        return "is MariaDB, not MySQL"
    found = re.search(r"\bVer\s+(\d+)\.(\d+)\.(\d+)", text)
    if found is None:
        return f"prints no version ({text.strip()[:80]!r})"
    version = tuple(int(part) for part in found.groups())
    if version < MINIMUM_VERSION:
        return f"is MySQL {'.'.join(found.groups())}; at least 8.0.19 is needed"
    return None


def initialise_arguments(program: Path, *, home: Path, data_dir: Path) -> list[str]:
    """Build the command that makes a new data folder whose root account has no password yet."""
    return [*_common_arguments(program, home, data_dir), "--initialize-insecure"]


def server_arguments(
    program: Path,
    *,
    home: Path,
    socket_path: Path,
    port: int,
    init_file: Path,
    extra_args: Sequence[str] = (),
) -> list[str]:
    """Build the command that runs the server. Durability options keep MySQL's defaults."""
    return [
        *_common_arguments(program, home, home / "mysql"),
        f"--socket={socket_path}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        "--loose-mysqlx=OFF",  # its port would collide; "loose": a server may be built without it
        f"--pid-file={home / 'mysql/mysqld.pid'}",
        f"--init-file={init_file}",
        *extra_args,
    ]


def data_folder_key(program: Path) -> str:
    """Return a name for an empty data folder by the server's version and its options."""
    version = subprocess.run(  # noqa: S603 - the program that the caller wants to run
        [program, "--no-defaults", "--version"], capture_output=True, text=True, timeout=30, check=False
    ).stdout
    options = initialise_arguments(program, home=Path("home"), data_dir=Path("data"))
    return hashlib.sha256("\n".join([version, *options]).encode()).hexdigest()[:16]


def _common_arguments(program: Path, home: Path, data_dir: Path) -> list[str]:
    return [
        str(program),
        "--no-defaults",  # must come first
        *(["--user=root"] if os.geteuid() == 0 else []),  # or else mysqld refuses to run as root
        f"--datadir={data_dir}",
        f"--tmpdir={home / 'tmp'}",
        f"--log-error={home / 'error.log'}",
        "--secure-file-priv=NULL",  # distributions build in a folder that only their own server may read
    ]


def _lock(home: Path) -> int:
    """Take the folder's lock; return its file descriptor. The server inherits it, and so holds the lock too."""
    import fcntl  # not on Windows

    descriptor = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(descriptor)
                raise SetupError(_in_use(home)) from None
            time.sleep(POLL_S)
        except BaseException:
            os.close(descriptor)
            raise


def _in_use(home: Path) -> str:
    try:
        who = f"another server (process {int((home / 'mysql/mysqld.pid').read_text())})"
    except (OSError, ValueError):
        who = "another server that is being started"
    return f"{home} is in use by {who}. Stop that server, or name another data folder."


def _root_password(file: Path) -> str:
    """Read the root password, or choose one. Its characters need no quoting in a URL or in SQL."""
    with contextlib.suppress(FileNotFoundError):
        password = file.read_text().strip()
        if re.fullmatch(r"[\w-]{16,}", password, re.ASCII):
            return password
    password = secrets.token_urlsafe(24)
    _write_private(file, password + "\n")
    return password


def _write_private(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(text)


def _short_folder_for_socket(home: Path) -> Path | None:
    """Make a temporary folder for the socket if a path in ``home`` would be too long, else return None."""
    if len(os.fsencode(home / "mysql.sock.lock")) <= LONGEST_SOCKET_PATH:
        return None
    parent = min(tempfile.gettempdir(), "/tmp", key=len)  # noqa: S108 - mkdtemp makes a private folder in it
    return Path(tempfile.mkdtemp(prefix="locus-", dir=parent))


def _free_port(wanted: int | None) -> int:
    try:
        return reserve_port(wanted or 0)
    except (OSError, OverflowError) as error:
        raise SetupError(f"Port {wanted} on 127.0.0.1 cannot be used ({error}). Name another one, or none.") from error


def _greets(socket_path: Path) -> bool:
    """Return whether the server sends its handshake, which it does only after it ran --init-file.

    "Protocol::HandshakeV10" in MySQL's source documentation: a header of four bytes, then the version, 10.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(os.fspath(socket_path))
            greeting = connection.recv(5, socket.MSG_WAITALL)
        except OSError:
            return False
    return len(greeting) == 5 and greeting[4] == 10
