"""Private PostgreSQL, Redis and Valkey servers: started without root's rights, stopped with their starter.

    with PostgreSQL.start(say) as postgresql, Redis.start(say) as redis:
        print(postgresql.url, redis.url)

The program is one of this machine, or else Debian's, fetched once into ``.cache/postgresql`` and so on;
``python -m ci.private_servers redis valkey`` fetches missing files, before tests need them.
Commits are durable: PostgreSQL with its defaults, Redis with its log flushed before every answer. Both listen on
127.0.0.1 only and ask for a password. A server dies with its starter, however that ends (Linux).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci.debian_packages import (
    FetchFailed,
    Software,
    fetch,
    loader_of,
    make_folder,
    write_program,
)
from ci.ports import reserve_port

CACHE = Path(__file__).resolve().parent.parent / ".cache"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.05
UNPRIVILEGED = ("nobody", "daemon")
# A program that drops root's privileges and runs a command; argv is its starter's process id, the user, the group, the
# command. It requests SIGKILL (9) by PR_SET_PDEATHSIG (1) only afterwards, as a change of the user clears the request.
LAUNCHER = """\
import ctypes, os, sys
starter, user, group = map(int, sys.argv[1:4])
if os.geteuid() != user:
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != starter:
    sys.exit("the process that wanted the server has ended")
os.execv(sys.argv[4], sys.argv[4:])
"""

Say = Callable[[str], None]


class ServerMissing(Exception):
    """The server is not available here; the message gives the reason."""


@dataclass(frozen=True)
class Account:
    """The account under which a server runs."""

    user: int
    group: int

    @staticmethod
    def current() -> Account:
        """Return this process's account."""
        return Account(os.geteuid(), os.getegid())

    @staticmethod
    def unprivileged() -> Account:
        """Return this process's account, or another one instead of root: PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return Account.current()
        for name in UNPRIVILEGED:
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return Account(entry.pw_uid, entry.pw_gid)
        raise ServerMissing(f"root may not run it, and there is no other user ({', '.join(UNPRIVILEGED)})")

    def reaches(self, folder: Path) -> bool:
        """Return whether this account may enter a folder and all its parents."""
        if self == Account.current():
            return True
        return all(one.stat().st_mode & 0o001 for one in (folder, *folder.parents))


@dataclass(frozen=True)
class PrivateServer:
    """A running server."""

    name: str
    url: str
    program: Path


@dataclass(frozen=True)
class Greeting:
    """The first bytes of a client, and the beginning of the answer of a server that accepts log-ins."""

    sent: bytes
    answer: bytes


class PostgreSQL:
    """PostgreSQL of version 12 or later, with its own defaults."""

    name = "PostgreSQL"
    folder = "postgresql"
    # The start-up message of protocol 3.0; "R" requests the password, "E" means that the server is still starting.
    greeting = Greeting(b"\0\0\0\x26\0\3\0\0user\0locus\0database\0postgres\0\0", b"R")
    software = Software(
        "PostgreSQL", ("postgresql",), 40, r"perl|postgresql-common|debconf|ssl-cert|llvm|systemd|python"
    )

    @classmethod
    @contextlib.contextmanager
    def start(cls, say: Say) -> Iterator[PrivateServer]:
        """Start a new, empty server; stop it at the end.

        Raises:
            ServerMissing: With the reasons.
        """
        account = Account.unprivileged()
        with home_for(account) as home:
            programs = cls._programs(account, home, say)
            password = secrets.token_urlsafe(24)
            (home / "password").write_text(password)
            give(home, account)
            run_to_end(
                [
                    str(programs / "initdb"),
                    f"--pgdata={home / 'data'}",
                    "--username=locus",
                    "--auth=scram-sha-256",
                    f"--pwfile={home / 'password'}",
                    "--encoding=UTF8",
                    "--no-locale",
                ],
                account,
                home,
            )
            port = reserve_port()
            command = [
                str(programs / "postgres"),
                f"-D{home / 'data'}",
                "-clisten_addresses=127.0.0.1",
                f"-cport={port}",
                "-cunix_socket_directories=",
            ]
            with running(
                command, account, home, port, cls.greeting, signal.SIGINT
            ):  # SIGINT: stop without waiting for clients
                yield PrivateServer(
                    cls.name, f"postgresql://locus:{password}@127.0.0.1:{port}/postgres", programs / "postgres"
                )

    @classmethod
    def _programs(cls, account: Account, home: Path, say: Say) -> Path:
        """Return the folder of a server's programs that this account can run."""
        on_path = shutil.which("postgres")
        folders = [Path(on_path).resolve().parent] if on_path else []
        folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: -int(one.parent.name))
        for folder in folders:
            there = all((folder / program).exists() for program in ("initdb", "postgres"))
            if there and account.reaches(folder) and cls._serves(folder):
                return folder
        prefix = fetched(cls.folder, cls.software, cls._make_ready, say)
        if not account.reaches(prefix):
            shutil.copytree(prefix, home / "programs", symlinks=True)
            prefix = home / "programs"
        return prefix / "bin"

    @staticmethod
    def _serves(programs: Path) -> bool:
        """Return whether programs of this machine are suitable."""
        return True

    @staticmethod
    def _make_ready(prefix: Path) -> None:
        found = sorted(prefix.glob("usr/lib/postgresql/*/bin"), key=lambda one: int(one.parent.name))
        if not found:
            raise FetchFailed("the packages hold no PostgreSQL")
        programs = found[-1]
        # initdb searches for "postgres" in its own folder, so the wrappers replace the programs.
        for name in ("initdb", "postgres"):
            (programs / name).rename(programs / f"{name}.unpacked")
            climb = "/".join([".."] * len(programs.relative_to(prefix).parts))
            write_program(
                programs / name,
                wrapper(prefix, climb, f'--argv0 "$here/{name}"', f"$here/{name}.unpacked"),
            )
        (prefix / "bin").symlink_to(programs.relative_to(prefix))
        answer = subprocess.run(  # noqa: S603 - the program that was just unpacked
            [programs / "postgres", "--version"], capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise FetchFailed(f"the unpacked server does not run: {answer.stderr.strip()}")


class VectorPostgreSQL(PostgreSQL):
    """PostgreSQL with the extension pgvector."""

    name = "PostgreSQL with pgvector"
    folder = "postgresql-pgvector"
    software = Software(
        name,
        ("postgresql", "^postgresql-[0-9]+-pgvector$"),  # a regular expression, which apt-get accepts
        41,
        PostgreSQL.software.unneeded_packages,
    )

    @staticmethod
    def _serves(programs: Path) -> bool:
        return (programs.parent / "lib/vector.so").exists()


class Redis:
    """Redis, which writes every command to its log and flushes that before it answers."""

    name = "Redis"
    folder = "redis"
    greeting = Greeting(b"PING\r\n", b"-NOAUTH")
    software = Software("Redis", ("redis-server",), 15, r"perl|debconf|adduser|lsb|systemd|python")

    @classmethod
    @contextlib.contextmanager
    def start(cls, say: Say) -> Iterator[PrivateServer]:
        """Start a new, empty server; stop it at the end.

        Raises:
            ServerMissing: With the reasons.
        """
        account = Account.current()
        with home_for(account) as home:
            program = cls.program(say)
            password, port = secrets.token_urlsafe(24), reserve_port()
            configuration = home / "redis.conf"
            configuration.touch(mode=0o600)
            configuration.write_text(
                f"bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {home}\n"
                'appendonly yes\nappendfsync always\nsave ""\ndaemonize no\n'
            )
            with running([str(program), str(configuration)], account, home, port, cls.greeting, signal.SIGTERM):
                yield PrivateServer(cls.name, f"redis://:{password}@127.0.0.1:{port}/0", program)

    @classmethod
    def program(cls, say: Say) -> Path:
        """Return the server's program.

        Raises:
            ServerMissing: With the reasons.
        """
        on_path = shutil.which(f"{cls.folder}-server")
        if on_path:
            return Path(on_path)
        return fetched(cls.folder, cls.software, cls._make_ready, say) / f"bin/{cls.folder}-server"

    @classmethod
    def _make_ready(cls, prefix: Path) -> None:
        name = f"{cls.folder}-server"
        if not (prefix / "usr/bin" / name).exists():
            raise FetchFailed(f"the packages hold no {name}")
        write_program(prefix / "bin" / name, wrapper(prefix, "..", "", f"$prefix/usr/bin/{name}"))
        answer = subprocess.run(  # noqa: S603 - the program that was just unpacked
            [prefix / "bin" / name, "--version"], capture_output=True, text=True, check=False
        )
        if answer.returncode != 0:
            raise FetchFailed(f"the unpacked server does not run: {answer.stderr.strip()}")


class Valkey(Redis):
    """Valkey, which was Redis until 2024."""

    name = "Valkey"
    folder = "valkey"
    software = Software("Valkey", ("valkey-server",), 15, Redis.software.unneeded_packages)


def fetched(folder: str, software: Software, make_ready: Callable[[Path], None], say: Say) -> Path:
    """Return the folder of the unpacked Debian packages; fetch them if they are missing."""
    destination = CACHE / folder
    if not (destination / "bin").exists():
        try:
            with (make_folder(CACHE) / f"{folder}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # only one of several processes fetches
                if not (destination / "bin").exists():
                    fetch(software, destination, make_ready, say)
        except (FetchFailed, OSError) as error:
            raise ServerMissing(f"none on this machine, and Debian's packages: {error}") from None
    return destination


def wrapper(prefix: Path, climb: str, options: str, program: str) -> str:
    """Return the text of a script that runs an unpacked program with the unpacked libraries."""
    loader = loader_of(prefix)
    return f"""\
#!/bin/sh
# Made by ci/private_servers.py: runs a program of Debian's with the libraries that were unpacked beside it.
here=$(cd "$(dirname "$0")" && pwd -P) || exit
prefix=$(cd "$here/{climb}" && pwd -P) || exit
exec "$prefix/{loader}" {options} --library-path "$prefix/{Path(loader).parent}:$prefix/usr/lib" "{program}" "$@"
"""


@contextlib.contextmanager
def home_for(account: Account) -> Iterator[Path]:
    """Make a folder for a server's data, which its account can reach; remove it at the end."""
    parent, prefix = make_folder(CACHE / "servers"), ""  # ci/mysql removes the data of killed runs there
    if not account.reaches(parent):
        parent, prefix = Path(tempfile.gettempdir()), "locus-mysql-"
    home = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def give(folder: Path, account: Account) -> None:
    """Make the account the owner of a folder and its direct content."""
    for path in (folder, *folder.iterdir()):
        os.chown(path, account.user, account.group)


def launch(command: Sequence[str], account: Account, home: Path) -> subprocess.Popen[bytes]:
    """Run a command with an account's rights and no terminal; its output goes to ``home``'s log."""
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()), str(account.user), str(account.group)]
    with (home / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own arguments, no shell
            [*launcher, *command],
            cwd=home,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a terminal sends Ctrl-C to the starter only
        )


def run_to_end(command: Sequence[str], account: Account, home: Path) -> None:
    """Run a command to its end."""
    process = launch(command, account, home)
    try:
        if process.wait(START_TIMEOUT_S) != 0:
            raise ServerMissing(f"{command[0]} failed ({process.returncode}): {end_of_log(home)}")
    except subprocess.TimeoutExpired:
        raise ServerMissing(f"{command[0]} did not end within {START_TIMEOUT_S:g} s: {end_of_log(home)}") from None
    finally:
        process.kill()  # does nothing if it has ended
        process.wait()


@contextlib.contextmanager
def running(
    command: Sequence[str],
    account: Account,
    home: Path,
    port: int,
    greeting: Greeting,
    stop_signal: signal.Signals,
) -> Iterator[None]:
    """Run a server until the end of the block."""
    process = launch(command, account, home)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not greets(port, greeting):
            if process.poll() is not None:
                raise ServerMissing(f"{command[0]} ended ({process.returncode}): {end_of_log(home)}")
            if time.monotonic() > deadline:
                raise ServerMissing(f"{command[0]} did not answer within {START_TIMEOUT_S:g} s: {end_of_log(home)}")
            time.sleep(POLL_S)
        yield
    finally:
        process.send_signal(stop_signal)  # does nothing if it has ended
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()


def greets(port: int, greeting: Greeting) -> bool:
    """Return whether the server at a port accepts log-ins."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0) as connection:
        connection.settimeout(1.0)
        connection.sendall(greeting.sent)
        return connection.recv(len(greeting.answer), socket.MSG_WAITALL) == greeting.answer
    return False


def end_of_log(home: Path) -> str:
    """Return the last lines that a server wrote."""
    lines = (home / "log").read_text(errors="replace").splitlines()[-6:]
    return re.sub(r"\s+", " ", " / ".join(lines))


def main(names: Sequence[str]) -> None:
    """Fetch the programs of these servers, if they are missing."""
    servers = {server.folder: server for server in (Redis, Valkey)}
    for name in names:
        try:
            servers[name].program(lambda text: print(f"ci/private_servers: {text}", file=sys.stderr))
        except ServerMissing as error:
            sys.exit(f"No {name} server could be had: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
