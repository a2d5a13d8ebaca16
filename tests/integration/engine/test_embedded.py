"""An embedded database: the program starts it and closes it at its end; a kill loses no acknowledged write."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    CheckpointStore,
    Database,
    SyncCheckpointStore,
    SyncMySQLCheckpointer,
)
from locus_mysql.cli import main as cli
from locus_mysql.config import MySQLConfig
from locus_mysql.embedded import stop_server
from locus_mysql.engine import embedded, embedded_keeper
from locus_mysql.errors import ReadOnlyServer, SetupError, Unavailable

from ...waiting import DEADLINE_S, until
from ..commands import dsn_of
from ..conftest import EVERY_SIDE, MakeConfig
from ..contract.samples import SAMPLES
from .every_store import every_store

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("embedded")]

ROOT = Path(__file__).resolve().parents[3]

STATE = AgentState(messages=[Message.user("Hello."), Message.assistant("Hello, Ada.")])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder whose server runs for all tests of this module; each uses its own database."""
    folder = tmp_path_factory.mktemp("embedded") / "memory"
    yield folder
    stop_server(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of the test, whose server is stopped after it."""
    yield tmp_path / "memory"
    stop_server(tmp_path / "memory")


def dsn(folder: Path) -> str:
    return f"mysql+embedded:///{folder}"


def python(code: str, *arguments: object, stdin: Any = None) -> subprocess.Popen[str]:
    """Start a Python program."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=stdin, text=True)


def server_process(folder: Path) -> int:
    return int((folder / "server/run/seekdb.pid").read_text())


def keeper_process(folder: Path) -> int:
    """Return the process id of the keeper that this process has started for a folder."""
    return embedded._SERVERS._servers[folder]._keeper.pid


def links_to(folder: Path) -> list[Path]:
    """Return pylibseekdb's links in /tmp to the server of a folder."""
    links = Path("/tmp").glob("pylibseekdb-uds-*/run")
    return [link for link in links if link.is_symlink() and str(link.readlink()) == str(folder / "server/run")]


def runs(process: int) -> bool:
    """Return whether a process runs. A zombie, whose parent has not waited for it yet, does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# Every store


@pytest.mark.parametrize("side", EVERY_SIDE)
async def test_every_store_writes_and_reads(side: str, shared: Path) -> None:
    driver, _, way = side.rpartition("-")
    db = Database.embedded(shared, database=side, driver=driver)
    stores = every_store(db, way == "async")
    for steps in stores.values():
        for number in range(3):
            await steps.write(number)
    assert {name: await steps.read() for name, steps in stores.items()} == {name: [0, 1, 2] for name in stores}
    await db.aclose()
    db.close()


def test_many_threads_that_begin_at_once_share_one_server(folder: Path) -> None:
    servers = []

    def save(number: int) -> None:
        with SyncCheckpointStore(dsn(folder)) as store:
            store.save(f"t{number}", {"number": number})
            servers.append(server_process(folder))

    threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(servers)) == 1
    with SyncCheckpointStore(dsn(folder)) as store:
        assert sorted(store.list_threads()) == ["t0", "t1", "t2", "t3"]


async def test_the_event_loop_runs_while_the_server_starts(folder: Path) -> None:
    async with CheckpointStore(dsn(folder)) as store:
        saving = asyncio.ensure_future(store.save("t", {}))
        turns = 0
        while not saving.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert turns > 10
        await saving


# Access by this process and its user only


def test_the_server_is_reached_by_a_socket_in_a_private_folder_only(folder: Path) -> None:
    with SyncCheckpointStore(dsn(folder)) as store:
        store.save("t", {})
        process = server_process(folder)
        sockets = {str(link.readlink()) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
        listening = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
        assert not [one for one in listening if one[3] == "0A" and f"socket:[{one[9]}]" in sockets]
        assert (folder.stat().st_mode | (folder / "server").stat().st_mode) & 0o077 == 0


def test_the_socket_is_in_the_folder_unless_its_path_is_too_long_and_no_link_stays_behind(folder: Path) -> None:
    short = Path(tempfile.mkdtemp(prefix="e"))
    for where, own in ((short, True), (folder / ("x" * 120), False)):
        endpoint = embedded.start_server(MySQLConfig(embedded=where, database="locus"))
        assert (endpoint.unix_socket == str(where / "server/run/sql.sock")) is own
        with SyncCheckpointStore(dsn(where)) as store:
            store.save("t", {"n": 1})
            os.kill(keeper_process(where), signal.SIGKILL)
            assert links_to(where) != []
            embedded._SERVERS._servers[where]._keeper.wait()
            assert store.load("t") == {"n": 1}
        embedded.start_server(MySQLConfig(embedded=where, database="locus"))  # finds the keeper's end
        assert len(links_to(where)) == 1
        stop_server(where)
        assert links_to(where) == []
    shutil.rmtree(short)


def test_a_folder_that_another_process_uses_is_refused_and_can_be_read() -> None:
    folder = Path(tempfile.mkdtemp(prefix="e"))
    code = "import sys\nfrom locus_mysql import SyncCheckpointStore as S\ns = S(sys.argv[1])\ns.save('t', {'n': 1})\n"
    other = python(code + "print('ready', flush=True)\nsys.stdin.read()", dsn(folder), stdin=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    with SyncCheckpointStore(dsn(folder)) as store:
        with pytest.raises(SetupError, match=f"is in use by process {other.pid}: one process at a time") as refused:
            store.load("t")
        with SyncCheckpointStore(re.findall(r"mysql\+pymysql\S+", str(refused.value))[0]) as reader:
            assert reader.load("t") == {"n": 1}
            with pytest.raises(ReadOnlyServer):
                reader.save("t", {"n": 2})
        _, errors = other.communicate()  # closes its standard input, which ends it
        assert (other.returncode, errors) == (0, "")
        assert store.load("t") == {"n": 1}
    stop_server(folder)
    shutil.rmtree(folder)


def test_a_folder_is_free_after_its_server_was_stopped(folder: Path) -> None:
    with SyncCheckpointStore(dsn(folder)) as store:
        store.save("t", {"n": 1})
        process = server_process(folder)
        stop_server(folder)
        assert not runs(process)
        code = "import sys\nfrom locus_mysql import SyncCheckpointStore as S\n"
        code += "with S(sys.argv[1]) as s: s.save('t', {'n': 2})"
        other = python(code, dsn(folder))
        _, errors = other.communicate(timeout=DEADLINE_S)
        assert (other.returncode, errors) == (0, "")
        assert store.load("t") == {"n": 2}


def test_a_folder_is_the_same_by_every_path_to_it(folder: Path) -> None:
    folder.mkdir()
    (folder.parent / "link").symlink_to(folder)
    with SyncCheckpointStore(dsn(folder)) as store, SyncCheckpointStore(dsn(folder.parent / "link")) as other:
        store.save("t", {"n": 1})
        assert other.load("t") == {"n": 1}
        process = server_process(folder)
        stop_server(folder.parent / "x/../link")
        assert not runs(process)


def test_a_folder_may_have_spaces_and_quotes_in_a_long_name(tmp_path: Path) -> None:
    folder = tmp_path / 'an agent\'s "memory" $HOME; 日本語' / ("x" * 120)
    with Database.embedded(folder) as db:
        SyncCheckpointStore(db).save("t", {"n": 1})
    stop_server(folder)
    with Database.embedded(folder) as db:
        assert SyncCheckpointStore(db).load("t") == {"n": 1}
    stop_server(folder)


@pytest.mark.parametrize(
    ("file", "content", "error", "words"),
    [
        # A folder in place of the file: even root cannot write to it.
        ("memory/lock/folder", "", SetupError, r"cannot be written: .*lock: Is a directory"),
        ("memory/lock", "requests==2.32\n", SetupError, r"lock: is not the lock of an embedded database"),
        ("memory", "", SetupError, r"memory for the embedded database cannot be made: .*exists"),
        ("memory/server", "", Unavailable, r"did not start: .*\. Its log is in .*server/log"),
    ],
    ids=["a lock that is a folder", "a file of the lock's name", "no folder", "files that are none"],
)
def test_a_folder_that_cannot_be_used_is_explained_and_left_alone(
    tmp_path: Path, file: str, content: str, error: type[Exception], words: str
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(content)
    with (
        SyncCheckpointStore(dsn(tmp_path / "memory"), retry_deadline_s=0) as store,
        pytest.raises(error, match=words),
    ):
        store.load("t")
    assert (tmp_path / file).read_text() == content


def test_what_a_keeper_prints_before_its_answer_hangs_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("print('hello')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    with (
        SyncCheckpointStore(dsn(folder), retry_deadline_s=0) as store,
        pytest.raises(Unavailable, match=r"did not start: it printed 'hello'"),
    ):
        store.load("t")


def test_a_program_without_an_interpreter_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with (
        SyncCheckpointStore(dsn(folder)) as store,
        pytest.raises(SetupError, match=r"needs a Python interpreter .* Use a MySQL server"),
    ):
        store.load("t")
    assert not folder.exists()


def test_a_missing_package_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    with (
        SyncCheckpointStore(dsn(folder)) as store,
        pytest.raises(SetupError, match=r"needs the package pylibseekdb\. Run pip install 'locus-mysql\[embedded\]'"),
    ):
        store.load("t")
    assert not folder.exists()


# The end of a process


def writing(folder: Path, side: str) -> subprocess.Popen[str]:
    """Start a program that adds steps to every store, in turn, until it is killed."""
    command = [sys.executable, "-m", "tests.integration.engine.every_store", dsn(folder), side]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("side", ["sync", "async"])
async def test_no_acknowledged_write_of_a_killed_program_is_lost_in_any_store_and_it_can_start_again_at_once(
    side: str, folder: Path
) -> None:
    acknowledged = dict.fromkeys(SAMPLES.keys() - {"toys"}, 0)
    for kill_after in (1, 13, 27, 46):
        program = writing(folder, side)
        assert program.stdout is not None
        lines = [program.stdout.readline() for _ in range(kill_after)]
        program.send_signal(signal.SIGKILL)
        rest, errors = program.communicate(timeout=DEADLINE_S)
        for line in [*lines, *rest.split("\n")[:-1]]:
            name, _, step = line.partition(" ")
            assert name, errors
            assert int(step) in (acknowledged[name], acknowledged[name] + 1)  # the step before may be unacknowledged
            acknowledged[name] = int(step) + 1
        # The next program, or the test, starts while the server of the killed one may still be stopping.
    async with Database.embedded(folder) as db:
        for name, steps in every_store(db, awaited=True).items():
            found = await steps.read()
            assert found == list(range(len(found))), name
            assert len(found) in (acknowledged[name], acknowledged[name] + 1), name


async def test_no_server_is_left_behind_by_a_killed_program(folder: Path) -> None:
    program = writing(folder, "sync")
    assert program.stdout is not None
    program.stdout.readline()
    process = server_process(folder)
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=DEADLINE_S)
    await until(lambda: not runs(process), "the end of the server")


def stop(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


def test_a_server_whose_keeper_was_killed_is_ended_by_the_next_start(folder: Path) -> None:
    program = writing(folder, "sync")
    assert program.stdout is not None
    program.stdout.readline()
    server = server_process(folder)
    stop(server)  # it neither ends nor answers
    keeper = int(Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()[1])
    for process in (keeper, program.pid):
        os.kill(process, signal.SIGKILL)
    program.communicate(timeout=DEADLINE_S)
    with SyncCheckpointStore(dsn(folder)) as store:
        store.save("t", {"n": 1})
        assert store.load("t") == {"n": 1}
    assert not runs(server)


def test_a_keeper_that_does_not_answer_is_killed_with_its_server_and_the_next_call_starts_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncCheckpointStore(dsn(folder)) as store:
        store.save("t", {"n": 1})
    server = server_process(folder)
    with Database.embedded(folder, database="another", retry_deadline_s=0) as db, monkeypatch.context() as patch:
        patch.setattr(embedded, "ANSWER_TIMEOUT_S", 0.5)
        stop(server)
        stop(keeper_process(folder))
        with pytest.raises(Unavailable, match=r"it was killed, or did not answer within 0\.5 s"):
            SyncCheckpointStore(db).load("t")
    ended_by = time.monotonic() + DEADLINE_S
    while runs(server) and time.monotonic() < ended_by:  # it was killed, and the system takes a moment to end it
        time.sleep(0.05)
    assert not runs(server)
    with SyncCheckpointStore(dsn(folder)) as store:
        assert store.load("t") == {"n": 1}


def test_a_start_that_fails_for_lack_of_space_leaves_no_server_and_the_next_one_succeeds(folder: Path) -> None:
    code = """
import resource, sys
from locus_mysql import SyncCheckpointStore
if sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
with SyncCheckpointStore(sys.argv[1], retry_deadline_s=0) as store:
    store.save("t", {"n": 1})
    print(store.load("t"))
"""
    for limit in (10_000, 2**25):
        output, errors = python(code, dsn(folder), limit).communicate(timeout=DEADLINE_S)
        assert (output, "did not start" in errors) == ("", True)
        assert embedded_keeper._servers(folder) == []
    assert python(code, dsn(folder)).communicate(timeout=DEADLINE_S) == ("{'n': 1}\n", "")


def test_a_program_that_is_killed_during_its_first_call_leaves_a_usable_folder(tmp_path: Path) -> None:
    code = """
import sys
from locus_mysql import SyncCheckpointStore
print("begun", flush=True)
SyncCheckpointStore(sys.argv[1]).save("t", {"n": 1})
"""
    moments = random.Random(9)
    for number in range(4):
        folder = tmp_path / str(number)
        program = python(code, dsn(folder))
        assert program.stdout is not None
        program.stdout.readline()
        with suppress(subprocess.TimeoutExpired):
            program.wait(moments.uniform(0.3, 2))
        program.kill()
        program.communicate(timeout=DEADLINE_S)
        with SyncCheckpointStore(dsn(folder), read_timeout_s=10, retry_deadline_s=DEADLINE_S) as store:
            store.save("u", {"n": 2})
            assert store.load("u") == {"n": 2}
        stop_server(folder)


def test_a_server_that_was_killed_is_started_again_within_the_call(folder: Path) -> None:
    with SyncCheckpointStore(dsn(folder)) as store:
        for step in range(3):
            store.save("t", {"step": step})
            os.kill(server_process(folder), signal.SIGKILL)
            assert store.load("t") == {"step": step}


def test_a_forked_child_uses_the_server_and_leaves_it_running(folder: Path) -> None:
    code = """
import os, sys
from locus_mysql import SyncCheckpointStore
with SyncCheckpointStore(sys.argv[1]) as store:
    store.save("t", {"of": "parent"})
    for number in range(2):
        child = os.fork()
        if child == 0:
            store.save(f"child {number}", {"saw": store.load("t")})
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
    print(sorted(store.list_threads()), store.load("child 1"))
"""
    program = python(code, dsn(folder))
    output, errors = program.communicate(timeout=DEADLINE_S)
    assert (output, errors) == ("['child 0', 'child 1', 't'] {'saw': {'of': 'parent'}}\n", "")


def test_a_start_that_was_interrupted_can_be_repeated(folder: Path) -> None:
    code = """
import signal, sys, threading, time
from pathlib import Path
from locus_mysql import SyncCheckpointStore
def interrupt():
    while not (Path(sys.argv[2]) / "lock").exists():
        time.sleep(0.001)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
with SyncCheckpointStore(sys.argv[1]) as store:
    threading.Thread(target=interrupt).start()
    try:
        store.save("t", {"n": 1})
    except KeyboardInterrupt as error:
        kept = error  # with its traceback, as a notebook keeps it
        store.save("t", {"n": 2})
        print(store.load("t"))
"""
    program = python(code, dsn(folder), folder)
    output, errors = program.communicate(timeout=DEADLINE_S)
    assert (output, errors) == ("{'n': 2}\n", "")


def test_a_forked_child_that_has_lost_the_server_of_its_parent_says_so(folder: Path) -> None:
    code = """
import os, sys, time
from locus_mysql import SyncCheckpointStore
from locus_mysql.errors import SetupError
store = SyncCheckpointStore(sys.argv[1])
store.save("t", {"n": 1})
if os.fork() == 0:
    while True:
        try:
            store.load("t")
        except SetupError as error:
            print(error)
            break
"""
    program = python(code, dsn(folder))
    output, errors = program.communicate(timeout=DEADLINE_S)
    assert (program.returncode, "Traceback" in errors) == (0, False)  # a call in progress logs its lost connection
    assert f"The embedded server in {folder} has ended with the process that started it" in output


async def test_a_server_ends_with_the_program_that_was_forked_during_its_start(folder: Path) -> None:
    code = """
import os, signal, sys, threading, time
from pathlib import Path
from locus_mysql import SyncCheckpointStore
def start():
    with SyncCheckpointStore(sys.argv[1]) as store:
        store.save("t", {"n": 1})
starting = threading.Thread(target=start)
starting.start()
while not (Path(sys.argv[2]) / "lock").exists():
    time.sleep(0.001)
child = os.fork()
if child == 0:
    time.sleep(600)
starting.join()
print(child, flush=True)
"""
    program = python(code, dsn(folder), folder)
    assert program.stdout is not None
    child = int(program.stdout.readline())
    process = server_process(folder)
    try:
        await asyncio.to_thread(program.wait, DEADLINE_S)
        await until(lambda: not runs(process), "the end of the server")
    finally:
        os.kill(child, signal.SIGKILL)
        program.communicate()


# README's first example, and moving to a server


def test_the_first_example_of_the_readme_runs_without_a_server(folder: Path) -> None:
    _, _, example = (ROOT / "README.md").read_text().partition("```python\n")
    code, _, _ = example.partition("```")
    there = '"mysql://user:password@localhost/app"'
    assert there in code
    program = python(code.replace(there, f'"{dsn(folder)}"'))
    _, errors = program.communicate(timeout=DEADLINE_S)
    assert program.returncode == 0, errors
    with SyncCheckpointStore(dsn(folder)) as store:
        assert store.list_threads() == ["support/42"]


def test_copy_moves_threads_to_a_server(
    folder: Path, make_config: MakeConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncMySQLCheckpointer(dsn(folder)) as source:
        for number in range(3):
            source.save(STATE, f"t{number}", f"c{number}")
    config = make_config()
    assert cli.main(["copy", "--from", dsn(folder), "--to", dsn_of(config), "--verify"]) == 0, capsys.readouterr().err
    with SyncMySQLCheckpointer(config) as target:
        assert sorted(target.list_threads()) == ["t0", "t1", "t2"]
        for number in range(3):
            loaded = target.load(f"t{number}", f"c{number}")
            assert loaded is not None
            assert loaded.messages == STATE.messages


def test_health_reports_an_embedded_database(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SyncCheckpointStore(dsn(folder)) as store:
        store.save("t", {"n": 1})
    assert cli.main(["health", "--dsn", dsn(folder)]) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert f"at {folder}, through pymysql" in printed
    assert "threads  1 of tenant 'default'" in printed
