"""Unavailable servers are left out and reported."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import contestants, peers
from bench.peers import peer_facts
from ci.private_servers import PostgreSQL, PrivateServer, Redis, ServerMissing

STARTED: list[str] = []


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL is unavailable; Redis seems to run."""
    STARTED.clear()

    def fails(say: object) -> None:
        raise ServerMissing("the mirror is away")

    @contextmanager
    def runs(say: object) -> Iterator[PrivateServer]:
        STARTED.append("Redis")
        yield PrivateServer("Redis", "redis://127.0.0.1:1/0", Path("/bin/redis-server"))
        STARTED.remove("Redis")

    monkeypatch.setattr(PostgreSQL, "start", fails)
    monkeypatch.setattr(Redis, "start", runs)


async def test_missing_servers_are_reported_and_the_others_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with peers.peers() as found:
        assert [one.name for one in contestants.on_other_servers(found)] == [contestants.REDIS]
        found.redis = None  # its version would be queried
        assert await peer_facts(found) == {"PostgreSQL": "left out: the mirror is away"}

    assert "PostgreSQL is left out: the mirror is away" in capsys.readouterr().err


def test_servers_are_started_once_and_stopped_with_the_outermost_block() -> None:
    with peers.peers() as outer:
        with peers.peers() as inner:
            assert inner is outer
        assert STARTED == ["Redis"]
    assert STARTED == []


def test_a_missing_library_leaves_its_server_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda name: None)

    with peers.peers() as found:
        assert "pip install redis" in found.missing["Redis"]
        assert STARTED == []
