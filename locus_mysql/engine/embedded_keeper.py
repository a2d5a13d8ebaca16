"""The keeper process of an embedded server: ``python embedded_keeper.py FOLDER DATABASE PROGRAM PACKAGES``.

It is a separate process because pylibseekdb ends its server when a forked child of the process that opened it exits.
It takes the folder's lock, starts the server, prints the path of its socket as a line of JSON, and creates a database
for each line on its standard input. That input ends with the program, however the program ends; then the server is
stopped. Whoever has the lock may end any server of the folder.

Run by its path, so it imports nothing of this package. It exits with `IN_USE` if another process uses the folder.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

#: Exit codes: another process uses the folder; the server ended; the folder cannot be written.
IN_USE = 3
SERVER_ENDED = 4
NOT_WRITABLE = 5

#: How long the server may take to start, and the probe whether it makes tables. A server that hangs is killed.
START_TIMEOUT_S, PROBE_TIMEOUT_S = 60.0, 20.0

#: How long the server may take to end.
STOP_TIMEOUT_S = 30.0

#: How long the keeper of a program that was killed may take to stop its server: to close it, and to wait for its end.
LOCK_WAIT_S = STOP_TIMEOUT_S + 10.0

#: The longest path of a Unix socket, in bytes, on every system (Linux takes 107).
MAX_SOCKET_BYTES = 103

POLL_S = 0.05


def main(folder: Path, database: str, program: int, packages: str) -> int:
    """Keep the server of a folder until the program ends; return the exit code.

    Args:
        folder: The folder.
        database: The first database to create.
        program: The process id of the program, for the message of others.
        packages: Where pylibseekdb is installed.
    """
    try:
        lock = _lock(folder / "lock", program)
    except OSError as error:
        print(f"{error.filename or folder}: {error.strerror}", flush=True)
        return NOT_WRITABLE
    except ValueError:
        print(f"{folder / 'lock'}: is not the lock of an embedded database", flush=True)
        return NOT_WRITABLE
    if lock is None:
        return IN_USE
    # Not before the program's own: PYTHONPATH may have changed.
    sys.path.append(packages)
    os.environ.setdefault("TELEMETRY_ENABLED", "false")
    answers = _keep_from_server(1)
    run = folder / "server/run"
    _remove_links_to(run)
    instance = server = None
    hangs = threading.Timer(START_TIMEOUT_S, _end_servers, [folder])
    hangs.daemon = True
    hangs.start()
    try:
        instance = _start(folder)
        server = _watch_server(run / "seekdb.pid")
        _create(instance, database)
        hangs.cancel()
        _answer(answers, {"socket": _socket(run, instance.connection_options()["unix_socket"])})
        return _serve(instance, answers, server)
    finally:
        if instance is not None:
            instance.close()
        if server is not None:
            select.select([server], [], [], STOP_TIMEOUT_S)
        _end_servers(folder)
        os.close(lock)


def _start(folder: Path) -> Any:
    """Start the server; return its instance.

    The server's files are made again if their first start did not succeed, or if they hold no rows and the server
    makes no tables: a server that ends within a second of its first start leaves such files.
    """
    import pylibseekdb  # type: ignore[import-not-found,import-untyped,unused-ignore]

    files, unfinished = folder / "server", folder / "unfinished"
    _end_servers(folder)  # of a keeper that was killed
    while True:
        if unfinished.exists():
            shutil.rmtree(files, ignore_errors=True)
        is_new = not files.exists()
        if is_new:
            unfinished.touch(mode=0o600)
        files.mkdir(mode=0o700, exist_ok=True)
        instance = pylibseekdb.open(db_dir=str(files))
        if is_new or _has_rows(instance) or _makes_tables(instance, folder):
            unfinished.unlink(missing_ok=True)
            return instance
        unfinished.touch(mode=0o600)
        instance.close()
        _end_servers(folder)


def _has_rows(instance: Any) -> bool:
    """Return whether any table of the user has a row."""
    tables = _run(
        instance,
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'"
        " AND TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'oceanbase')",
    )
    return any(_run(instance, f"SELECT 1 FROM `{schema}`.`{table}` LIMIT 1") for schema, table in tables)  # noqa: S608 - names of existing tables


def _makes_tables(instance: Any, folder: Path) -> bool:
    """Return whether the server makes a table. If it does not in time, it is killed."""
    hangs = threading.Timer(PROBE_TIMEOUT_S, _end_servers, [folder])
    hangs.start()
    try:
        _run(instance, "CREATE TABLE IF NOT EXISTS locus_mysql_probe (a INT)")
        _run(instance, "DROP TABLE locus_mysql_probe")
    except Exception:
        return False
    finally:
        hangs.cancel()
    return True


def end_leftovers(folder: Path) -> None:
    """End the servers of a folder whose keeper was killed; does nothing if another process has the lock."""
    import fcntl

    with suppress(OSError):  # there is no lock yet, or another process has it
        descriptor = os.open(folder / "lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _end_servers(folder)
        finally:
            os.close(descriptor)


def _end_servers(folder: Path) -> None:
    """Kill the servers whose data are in a folder, and wait until they have ended. Needs the folder's lock."""
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while (processes := _servers(folder)) and time.monotonic() < deadline:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(POLL_S)


def _servers(folder: Path) -> list[int]:
    """Return the running servers whose data are in a folder, by their command lines."""
    own = b"--base-dir=" + os.fsencode(folder / "server")
    found = []
    if not Path("/proc/self/cmdline").exists():  # macOS
        listed = subprocess.run(["/bin/ps", "-axww", "-o", "pid=,command="], capture_output=True, check=False).stdout
        return [int(line.split()[0]) for line in listed.splitlines() if b"seekdb " + own + b" --" in line]
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            program, *arguments = file.read_bytes().split(b"\0")  # a zombie has no command line
            if program.endswith(b"seekdb") and own in arguments:
                found.append(int(file.parent.name))
    return found


def _lock(file: Path, program: int) -> int | None:
    """Lock the folder for as long as this process lives; None if another process has the lock.

    Waits for the server of a program that has ended, and for one whose start the same program has interrupted.

    Raises:
        ValueError: The file holds something else than a process id.
    """
    import fcntl  # Windows has none, and imports this module too

    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            owner = os.pread(descriptor, 20, 0).decode().strip()
            if time.monotonic() > deadline or (owner != str(program) and _is_running(owner)):
                print(owner, flush=True)
                return None
            time.sleep(POLL_S)
    if found := os.pread(descriptor, 20, 0).strip():
        int(found)
    # First written, then truncated, so that others never read an empty file.
    os.ftruncate(descriptor, os.pwrite(descriptor, f"{program}\n".encode(), 0))
    return descriptor


def _remove_links_to(run: Path) -> None:
    """Remove links that pylibseekdb made to a folder for a keeper that was killed: it would remove them itself."""
    for link in Path("/tmp").glob("pylibseekdb-uds-*/run"):  # noqa: S108 - its own choice
        try:
            if link.readlink() == run:
                link.unlink()
                link.parent.rmdir()
        except OSError:
            continue  # not ours, or just removed


def _socket(run: Path, offered: str) -> str:
    """Return the path of the server's socket: the one in its folder if it is short enough, or else the offered one.

    pylibseekdb offers a path through a link in /tmp, which a program that cleans that folder may remove.
    """
    own = run / "sql.sock"
    return str(own) if own.exists() and len(os.fsencode(own)) <= MAX_SOCKET_BYTES else offered


def _is_running(process: str) -> bool:
    """Check whether a process runs. A killed program does not, although its server may still be stopping."""
    if not process.isdecimal():
        return False  # the file is being written
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    status = Path(f"/proc/{process}/stat")  # a killed process may be a zombie until its parent reaps it
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True


def _keep_from_server(descriptor: int) -> int:
    """Return a copy of a descriptor that the server does not inherit; replace the original by the null device."""
    copy = os.dup(descriptor)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
    return copy


def _answer(descriptor: int, answer: dict[str, str]) -> None:
    os.write(descriptor, json.dumps(answer).encode() + b"\n")


def _watch_server(pid_file: Path) -> int | None:
    """Return a descriptor that becomes readable when the server has ended; None on systems without such descriptors."""
    try:
        return os.pidfd_open(int(pid_file.read_text()))  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError, ValueError):
        return None


def _serve(instance: Any, answers: int, server: int | None) -> int:
    """Create the databases that the program requests, until the program or the server ends."""
    waiting = [0] if server is None else [0, server]
    received = b""
    while True:
        ready, _, _ = select.select(waiting, [], [])
        if server in ready:
            return SERVER_ENDED
        read = os.read(0, 4096)
        if not read:
            return 0
        received += read
        while b"\n" in received:
            name, _, received = received.partition(b"\n")
            _create(instance, name.decode())
            _answer(answers, {})


def _create(instance: Any, database: str) -> None:
    _run(instance, f"CREATE DATABASE IF NOT EXISTS `{database}`")


def _run(instance: Any, sql: str) -> Any:
    """Run a statement; return its rows."""
    connection = instance.connect(database="test", autocommit=True)
    try:
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = cursor.fetchall() if sql.startswith("SELECT") else ()
        cursor.close()
        return rows
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
