"""Starting and stopping other servers, with small programs in their place."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci import private_servers
from ci.ports import reserve_port
from ci.private_servers import (
    Account,
    Greeting,
    ServerMissing,
    greets,
    home_for,
    running,
)

# Listens on the port in its arguments and answers every client with its own process id.
ANSWERS = """\
import os, socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        with client:
            client.recv(100)
            client.sendall(b"ready %d\\n" % os.getpid())
"""
GREETING = Greeting(b"hello", b"ready")


@pytest.fixture
def home() -> Iterator[Path]:
    with home_for(Account.current()) as folder:
        yield folder


def test_a_server_runs_within_the_block_and_is_stopped_after_it(home: Path) -> None:
    port = reserve_port()
    with running([sys.executable, "-c", ANSWERS, str(port)], Account.current(), home, port, GREETING, signal.SIGTERM):
        assert greets(port, GREETING)
        assert not greets(port, Greeting(b"hello", b"other"))
    assert not greets(port, GREETING)


def test_a_server_that_ends_at_once_is_missing_with_its_last_words(home: Path) -> None:
    port = reserve_port()
    command = [sys.executable, "-c", "import sys; sys.exit('no such option')"]
    with (
        pytest.raises(ServerMissing, match="no such option"),
        running(command, Account.current(), home, port, GREETING, signal.SIGTERM),
    ):
        pytest.fail("it does not run")


def test_the_folder_of_a_server_is_removed() -> None:
    with home_for(Account.current()) as folder:
        (folder / "data").write_text("x")
    assert not folder.exists()


def test_root_gives_its_rights_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)

    assert Account.unprivileged().user != 0


def test_root_without_another_account_has_no_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(private_servers, "UNPRIVILEGED", ("no-such-user",))

    with pytest.raises(ServerMissing, match="no-such-user"):
        Account.unprivileged()


def test_another_account_does_not_reach_a_private_folder() -> None:
    other = Account(user=os.geteuid() + 1, group=os.getegid() + 1)
    with tempfile.TemporaryDirectory(dir="/tmp") as public:
        closed = Path(public) / "closed"
        inner = closed / "inner"
        inner.mkdir(parents=True)
        Path(public).chmod(0o755)
        assert other.reaches(inner)

        closed.chmod(0o700)

        assert not other.reaches(inner)
        assert Account.current().reaches(inner)
