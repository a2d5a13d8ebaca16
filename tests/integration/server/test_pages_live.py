"""Viewers of a thread receive an event for each write, at the cost of one query for all viewers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from locus_mysql import CheckpointStore, Database
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.server import application
from locus_mysql.server.application import create_app
from locus_mysql.server.pages import live
from locus_mysql.server.routing import Authenticate
from locus_mysql.server.tokens import Tokens, new_token

from ..conftest import MakeConfig
from ..proxy import WireProxy
from .running import running

INTERVAL_S = 0.05
WAIT_S = 60.0
EVENTS = "/inspect/events"


class Looks:
    """The watches that were created, and their queries.

    Args:
        monkeypatch: The test's fixture.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[live.Live] = []
        self.asked: list[Sequence[Any]] = []
        looks, changed = self, Inspector.changed

        class Quick(live.Live):
            def __init__(self, authenticate: Authenticate) -> None:
                super().__init__(authenticate, INTERVAL_S)
                looks.made.append(self)

        async def counted(self: Inspector, watched: Any) -> Any:
            looks.asked.append(list(watched))
            return await changed(self, watched)

        monkeypatch.setattr(application, "Live", Quick)
        monkeypatch.setattr(Inspector, "changed", counted)

    @property
    def watches(self) -> int:
        """Return the current number of watches."""
        return sum(len(one.watches) for one in self.made)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Record the watches, which poll twenty times a second."""
    return Looks(monkeypatch)


@pytest.fixture
def base(make_config: MakeConfig, proxy: WireProxy, looks: Looks) -> Iterator[str]:
    """Yield a service whose database is behind a proxy."""
    address: dict[str, Any] = {"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED", "driver": "pymysql"}
    app = create_app(Database(make_config(**address, connect_timeout_s=0.5, retry_deadline_s=0.5)))
    with running(app) as address:
        yield address


@pytest.fixture
async def store(make_config: MakeConfig) -> AsyncIterator[CheckpointStore]:
    """A store with two threads and its own connections."""
    async with CheckpointStore(make_config(driver="pymysql")) as opened:
        for thread in ("one", "two"):
            await opened.save(thread, {"at": 0})
        yield opened


class Viewer:
    """A viewer of a thread.

    Args:
        lines: Lines of the event stream.
    """

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self.lines = lines

    async def next(self) -> str:
        """Return the name of the next event."""
        async with asyncio.timeout(WAIT_S):
            async for line in self.lines:
                if line.startswith("event: "):
                    return line.removeprefix("event: ")
        return "the end"


@contextlib.asynccontextmanager
async def viewing(base: str, thread: str, **headers: str) -> AsyncIterator[Viewer]:
    """Watch a thread. The first event reports that it exists."""
    async with (
        httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client,
        client.stream("GET", EVENTS, params={"family": "dicts", "thread": thread}, headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        viewer = Viewer(response.aiter_lines())
        assert await viewer.next() == "changed"
        yield viewer


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - another thread changes it
            await asyncio.sleep(0.01)


async def test_viewers_receive_an_event_for_every_write_to_their_thread_until_it_is_deleted(
    base: str, store: CheckpointStore
) -> None:
    async with viewing(base, "one") as one, viewing(base, "two") as two:
        for at in range(3):
            await store.save("one", {"at": at + 1})
            assert await one.next() == "changed"
        await store.delete("two")
        assert await two.next() == "changed"
        assert await two.next() == "the end"


async def test_a_thread_that_does_not_exist_has_no_stream(base: str, store: CheckpointStore, looks: Looks) -> None:
    async with httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client:
        for _ in range(2):
            async with client.stream("GET", EVENTS, params={"family": "dicts", "thread": "none"}) as response:
                assert response.status_code == 404
        async with (
            viewing(base, "one"),
            client.stream("GET", EVENTS, params={"family": "dicts", "thread": "none"}) as response,
        ):
            assert response.status_code == 404
    await until(lambda: looks.watches == 0)


async def test_one_query_serves_all_viewers_and_none_is_sent_without_viewers(
    base: str, store: CheckpointStore, looks: Looks
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for at in range(6):
            await stack.enter_async_context(viewing(base, ("one", "two")[at % 2]))
        began = asyncio.get_running_loop().time()
        before = len(looks.asked)
        await until(lambda: len(looks.asked) >= before + 5)
        passed = asyncio.get_running_loop().time() - began
        assert looks.watches == 1
        assert len(looks.asked) - before <= passed / INTERVAL_S + 2
        assert sorted(looks.asked[-1]) == [("dicts", "one"), ("dicts", "two")]

    await until(lambda: looks.watches == 0)


async def test_a_viewer_who_reconnects_receives_only_new_events(base: str, store: CheckpointStore) -> None:
    async with (
        httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client,
        client.stream("GET", EVENTS, params={"family": "dicts", "thread": "one"}) as response,
    ):
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                seen = line.removeprefix("id: ")
                break

    async with (
        httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client,
        client.stream(
            "GET", EVENTS, params={"family": "dicts", "thread": "one"}, headers={"Last-Event-ID": seen}
        ) as response,
    ):
        lines = response.aiter_lines()
        async for line in lines:
            if line.startswith(":"):  # no changes
                break
            assert not line.startswith("event:")
        await store.save("one", {"at": 1})
        assert await Viewer(lines).next() == "changed"


async def test_viewers_receive_events_when_the_database_goes_away_and_comes_back(
    base: str, store: CheckpointStore, proxy: WireProxy
) -> None:
    async with viewing(base, "one") as viewer:
        proxy.black_hole()
        proxy.drop_all()
        assert await viewer.next() == "away"
        await store.save("one", {"at": 1})
        proxy.resume()
        assert await viewer.next() == "back"
        assert await viewer.next() == "changed"


@pytest.mark.parametrize("to_another_tenant", [False, True], ids=["taken away", "given to another tenant"])
async def test_a_token_that_is_taken_away_or_given_to_another_tenant_ends_the_stream(
    make_config: MakeConfig, store: CheckpointStore, looks: Looks, tmp_path: Path, to_another_tenant: bool
) -> None:
    ann, ben = new_token("ann", "default", "read"), new_token("ben", "default", "read")
    file = tmp_path / "tokens.toml"
    file.write_text(ann.entry)
    app = create_app(Database(make_config(driver="pymysql")), tokens=Tokens(path=file))
    with running(app) as base:
        async with httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client:
            assert (await client.get(EVENTS, params={"family": "dicts", "thread": "one"})).status_code == 401
            signed_in = await client.post("/login", data={"token": ann.secret})
            cookie = signed_in.headers["set-cookie"].partition(";")[0]
        async with viewing(base, "one", Cookie=cookie) as viewer:
            file.write_text(
                ann.entry.replace('"default"', '"another"') if to_another_tenant else ben.entry + "# rolled\n"
            )
            event, at = "changed", 0
            while event == "changed":  # each write checks the viewers' permissions
                at += 1
                await store.save("one", {"at": at})
                event = await viewer.next()
            assert event == "ended"


async def test_the_service_stops_while_somebody_looks(
    make_config: MakeConfig, store: CheckpointStore, looks: Looks
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with running(create_app(Database(make_config(driver="pymysql")))) as base:
            viewer = await stack.enter_async_context(viewing(base, "one"))
        assert await viewer.next() == "the end"


@pytest.mark.parametrize(
    "asked",
    [{"thread": ""}, {"thread": "a" * 513}, {"thread": "a\0"}, {"thread": "one", "seen": "1\n\nevent: ended"}],
    ids=["empty", "long", "NUL", "lines"],
)
async def test_invalid_threads_and_markers_are_refused_without_disturbing_other_viewers(
    base: str, store: CheckpointStore, asked: dict[str, str]
) -> None:
    async with viewing(base, "one") as viewer, httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client:
        async with client.stream("GET", EVENTS, params={"family": "dicts", **asked}) as response:
            assert response.status_code == 400
        await store.save("one", {"at": 1})
        assert await viewer.next() == "changed"


async def test_one_tenant_cannot_take_the_places_of_all_viewers(
    base: str, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "VIEWERS", 4)
    async with (
        viewing(base, "one"),
        viewing(base, "two"),
        httpx.AsyncClient(base_url=base, timeout=WAIT_S) as client,
        client.stream("GET", EVENTS, params={"family": "dicts", "thread": "one"}) as response,
    ):
        assert response.status_code == 503
