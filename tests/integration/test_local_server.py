"""The private server, as a process: it keeps its data, refuses a second server, and leaves no process running."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest

from ci import local_server
from ci.local_server import LocalServer, find_mysqld
from locus_mysql.errors import SetupError

from .conftest import MADE_BEFORE

# All tests in one group: one process creates the files and starts the shared server.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pymysql"),
    pytest.mark.xdist_group("private servers"),
]

DEADLINE_S = 180.0


@pytest.fixture(scope="module")
def mysqld() -> Path:
    try:
        return find_mysqld()
    except SetupError:
        if os.environ.get("LOCUS_MYSQL_TEST_DSN"):
            pytest.skip("the tests use a server that runs already; no server program is here")
        raise


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that is removed after the test: a server's data takes 200 MB, and pytest keeps its folders."""
    path = Path(tempfile.mkdtemp(prefix="locus-test-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def made_once(mysqld: Path) -> Iterator[Path]:
    """Yield a server's initialised folder: copying it is faster than initialising another one."""
    path = Path(tempfile.mkdtemp(prefix="locus-test-made-"))
    with LocalServer(path, mysqld=mysqld, made_before=MADE_BEFORE):
        pass
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def shared(made_once: Path, mysqld: Path) -> Iterator[LocalServer]:
    """Yield a running server for tests that do not change it."""
    path = Path(tempfile.mkdtemp(prefix="locus-test-shared-"))
    with LocalServer(shutil.copytree(made_once, path / "data"), mysqld=mysqld) as server:
        yield server
    shutil.rmtree(path)


@pytest.fixture
def data_dir(folder: Path, made_once: Path) -> Path:
    return Path(shutil.copytree(made_once, folder / "data"))


def query(server: LocalServer, statement: str) -> Any:
    connection = pymysql.connect(
        host="127.0.0.1",
        port=server.port,
        user="root",
        password=server.dsn.split(":")[2].split("@")[0],
        database="locus",
        autocommit=True,
    )
    with connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S:g} s"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return sys.platform != "linux"


@contextlib.contextmanager
def running(*command: object) -> Iterator[subprocess.Popen[str]]:
    """Run Python with these arguments, and end the process after the block."""
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


SERVE = """
import pathlib, signal, sys
from ci.local_server import serve
signal.signal(signal.SIGINT, signal.default_int_handler)  # a test run in the background inherits "ignore",
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and so does one under nohup
sys.exit(serve(pathlib.Path(sys.argv[1]), None, mysqld=pathlib.Path(sys.argv[2])))
"""


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        assert process.stderr is not None
        pytest.fail(f"the server did not start: {process.stderr.read()}")
    return line


def server_log(data_dir: Path) -> str:
    return (data_dir / "error.log").read_text()


def server_pid(data_dir: Path) -> int:
    return int((data_dir / "mysql/mysqld.pid").read_text())


def test_a_new_folder_becomes_a_server_that_keeps_its_data(folder: Path, mysqld: Path) -> None:
    with LocalServer(folder / "new/data", mysqld=mysqld, made_before=MADE_BEFORE) as server:
        query(server, "CREATE TABLE kept (word VARCHAR(20))")
        query(server, "INSERT INTO kept VALUES ('still here')")
        pid = server.pid

    assert not is_running(pid)
    with LocalServer(folder / "new/data", mysqld=mysqld) as server:
        assert query(server, "SELECT word FROM kept") == (("still here",),)


def test_files_made_before_become_servers_that_share_nothing_else(folder: Path, mysqld: Path) -> None:
    made_before = folder / "made before"
    identities = set()
    for name, logged in (("first", True), ("second", False)):
        with LocalServer(folder / name, mysqld=mysqld, made_before=made_before) as server:
            assert query(server, "SHOW TABLES") == ()
            query(server, "CREATE TABLE kept (n INT)")
            identities |= {query(server, "SELECT @@server_uuid"), server.dsn}
        assert ("initializing of server in progress" in server_log(folder / name)) is logged
    assert len(identities) == 4
    (kept,) = (one for one in made_before.iterdir() if one.is_dir())
    assert made_before.stat().st_mode & 0o077 == 0, "its keys are private"
    assert not (kept / "auto.cnf").exists()


def test_data_files_of_another_version_or_left_incomplete_are_created_again(folder: Path, mysqld: Path) -> None:
    made_before = folder / "made before"
    for name in ("another", "unfinished"):
        (made_before / name).mkdir(parents=True)

    with LocalServer(folder / "data", mysqld=mysqld, made_before=made_before) as server:
        assert query(server, "SELECT 1") == ((1,),)

    assert {one.name for one in made_before.iterdir()} == {"lock", local_server.data_folder_key(mysqld)}


def test_nothing_with_the_password_is_readable_by_others(shared: LocalServer) -> None:
    password = shared.dsn.split(":")[2].split("@")[0].encode()
    holders = [file for file in shared.data_dir.iterdir() if file.is_file() and password in file.read_bytes()]

    assert [file.name for file in holders] == ["root-password"]
    assert holders[0].stat().st_mode & 0o077 == 0


def test_durability_is_as_mysql_ships_it(shared: LocalServer) -> None:
    assert query(shared, "SELECT @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@innodb_doublewrite") == (
        (1, 1, "ON"),
    )


def test_a_second_server_on_the_same_folder_is_refused_and_the_first_goes_on(
    shared: LocalServer, mysqld: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "LOCK_WAIT_S", 0.2)
    with pytest.raises(SetupError, match=rf"in use by another server \(process {shared.pid}\)"):
        LocalServer(shared.data_dir, mysqld=mysqld).start()
    assert query(shared, "SELECT 1") == ((1,),)


def test_a_port_that_is_taken_is_refused(shared: LocalServer, data_dir: Path, mysqld: Path) -> None:
    with pytest.raises(SetupError, match=rf"Port {shared.port} on 127.0.0.1"):
        LocalServer(data_dir, mysqld=mysqld, port=shared.port).start()


def test_restarts_and_crashes_keep_the_data_and_the_dsn(data_dir: Path, mysqld: Path) -> None:
    with LocalServer(data_dir, mysqld=mysqld) as server:
        query(server, "CREATE TABLE kept (n INT)")
        dsn, pids = server.dsn, [server.pid]
        for number, crash in enumerate((False, True)):
            query(server, f"INSERT INTO kept VALUES ({number})")

            server.restart(crash=crash)

            assert server.dsn == dsn
            pids.append(server.pid)
            assert len(query(server, "SELECT n FROM kept")) == number + 1
        assert len({*pids}) == 3


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_serve_stops_everything_cleanly(signum: signal.Signals, data_dir: Path, mysqld: Path) -> None:
    with running("-c", SERVE, data_dir, mysqld) as process:
        assert read_line(process).startswith("mysql://root:")
        pid = server_pid(data_dir)

        process.send_signal(signum)

        assert process.wait(DEADLINE_S) == 0
        assert not is_running(pid)
    assert "Shutdown complete" in (data_dir / "error.log").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stops a server whose starter was killed")
def test_a_killed_starter_takes_its_server_along(data_dir: Path, mysqld: Path) -> None:
    with running("-c", SERVE, data_dir, mysqld) as process:
        read_line(process)
        pid = server_pid(data_dir)

        process.kill()

        wait_until(lambda: not is_running(pid), "the server's end")
    with LocalServer(data_dir, mysqld=mysqld) as server:
        assert query(server, "SELECT 1") == ((1,),)


def test_serve_ends_with_an_error_when_its_server_does(data_dir: Path, mysqld: Path) -> None:
    with running("-c", SERVE, data_dir, mysqld) as process:
        read_line(process)

        os.kill(server_pid(data_dir), signal.SIGKILL)

        assert process.wait(DEADLINE_S) == 1
        assert process.stderr is not None
        assert "The server ended with exit code -9" in process.stderr.read()


def test_an_interrupted_initialisation_begins_again_from_nothing(folder: Path, mysqld: Path) -> None:
    data_dir = folder / "data"
    with running("-c", SERVE, data_dir, mysqld) as process:
        unfinished = data_dir / "mysql.initialising"
        wait_until(lambda: (unfinished / "ibdata1").exists(), "the first files")

        process.kill()
        process.wait()

    assert not (data_dir / "mysql").exists()
    with LocalServer(data_dir, mysqld=mysqld) as server:
        assert query(server, "SELECT DATABASE()") == (("locus",),)
    assert not unfinished.exists()
