"""The inspector, its commands' lists and the JSON API keep the same promises for each family of threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from locus_mysql import Database, MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.inspection.sources import to_cursor
from locus_mysql.inspection import Inspector
from locus_mysql.server.application import create_app

from ..conftest import MakeConfig
from ..contract.samples import SAMPLES, Sample
from ..encryption.conftest import MARKER
from ..server.test_pages import checked_page


class Side:
    """Writes threads of one family.

    Args:
        sample: The family.
        config: The options.
    """

    def __init__(self, sample: Sample, config: MySQLConfig) -> None:
        self.sample, self.name, self.config = sample, sample.family, config
        self.store, self.id_of = sample.open(config, "pymysql-sync"), sample.thread
        self._saves = Counter[str]()

    async def save(self, name: str) -> None:
        """Add little to a thread."""
        await self.sample.write(self.store, name, self._saves[name])
        self._saves[name] += 1

    async def fill(self, name: str) -> None:
        """Create a large thread whose texts contain its name."""
        await self.sample.fill(self.store, name)

    async def delete(self, name: str) -> None:
        """Delete a thread."""
        await self.sample.delete(self.store, name)


@pytest.fixture(params=("agents", "graphs", "dicts", "current", "transcripts", "toys"))
async def side(request: pytest.FixtureRequest, toy_family: None, make_config: MakeConfig) -> AsyncIterator[Side]:
    """Yield each family of threads."""
    side = Side(SAMPLES[request.param], make_config(driver="pymysql"))
    yield side
    await side.store.close()


@pytest.fixture
async def inspector(side: Side) -> AsyncIterator[Inspector]:
    async with Inspector(side.config) as inspector:
        yield inspector


async def ids(inspector: Inspector, family: str, **wanted: Any) -> list[str]:
    """Return the ids of all threads in the order of their pages of two."""
    found: list[str] = []
    cursor = None
    for _ in range(100):
        page = await inspector.threads(family, limit=2, cursor=cursor, **wanted)
        found += [row.thread_id.rpartition("/")[2] for row in page.items]
        if (cursor := page.cursor) is None:
            return found
    pytest.fail("there is no end")


async def test_pages_hold_every_thread_once_newest_first(side: Side, inspector: Inspector) -> None:
    names = [f"t{number:02}" for number in range(10)]
    for name in names:
        await side.save(name)
    assert await ids(inspector, side.name) == names[::-1]


async def test_threads_are_filtered_by_id_size_and_time(side: Side, inspector: Inspector) -> None:
    await side.save("user-1")
    await side.fill("user_1")
    await side.save("other")
    assert await ids(inspector, side.name, pattern="*user?1") == ["user_1", "user-1"]
    assert await ids(inspector, side.name, pattern="*user_*") == ["user_1"]
    assert await ids(inspector, side.name, pattern="nobody*") == []
    rows = {row.thread_id: row for row in (await inspector.threads(side.name)).items}
    large = rows[side.id_of("user_1")]
    assert large == await inspector.thread(side.name, large.thread_id)
    assert large.size_bytes > rows[side.id_of("other")].size_bytes > 0
    assert await ids(inspector, side.name, min_bytes=large.size_bytes) == ["user_1"]
    last = rows[side.id_of("other")].updated_at
    assert await ids(inspector, side.name, saved_after=last) == ["other"]
    assert "other" not in await ids(inspector, side.name, saved_before=last)
    extremes = {"saved_after": datetime.min.replace(tzinfo=UTC), "saved_before": datetime.max.replace(tzinfo=UTC)}
    assert len(await ids(inspector, side.name, **extremes)) == 3
    with pytest.raises(InvalidInput, match="time zone"):
        await inspector.threads(side.name, saved_after=datetime(2026, 1, 2))
    with pytest.raises(InvalidInput, match="agents"):
        await inspector.threads("nonsense")


async def test_a_cursor_that_no_page_gave_is_refused(side: Side, inspector: Inspector) -> None:
    await side.save("t")
    odd = ("", "x", "!!!", "W10", "bnVsbA", to_cursor("a", "b", "c"), to_cursor(True, 2**70, "a"), "W" * 10_000, "ä")
    for cursor in odd:
        with pytest.raises(InvalidInput, match="cursor"):
            await inspector.threads(side.name, cursor=cursor)
        with pytest.raises(InvalidInput, match="cursor"):
            await inspector.history(side.name, side.id_of("t"), cursor=cursor)


async def test_another_tenant_sees_nothing_and_nobody_what_expired(
    side: Side, inspector: Inspector, run_sql: Callable[..., Any]
) -> None:
    await side.fill("t")
    name = side.id_of("t")
    async with Inspector(side.config.model_copy(update={"tenant": "other"})) as other:
        assert (await other.threads(side.name)).items == []
        assert await other.thread(side.name, name) is None
        assert list((await other.history(side.name, name)).items) == []
        assert await other.state(side.name, name) is None
        assert await other.search(MARKER, family=side.name) == []
        assert await other.by_metadata("of", "t", family=side.name) == []
        assert await other.previews(side.name, [name]) == {}
        statistics = await other.statistics(side.name)
        assert (statistics.threads, statistics.checkpoints, statistics.size_bytes) == (0, 0, 0)
        assert (statistics.days, statistics.largest) == ([], [])
        assert await other.changed([(side.name, name)]) == {}
    assert {hit.thread_id for hit in await inspector.search(MARKER, family=side.name)} == {name}
    tables = side.sample.tables(side.config)
    if tables.owner.expires:
        table = tables.names[tables.owner.role]
        run_sql(f"UPDATE {side.config.database}.{table} SET {tables.owner.expires} = '2026-01-01'")
        assert (await inspector.threads(side.name)).items == []
        assert await inspector.thread(side.name, name) is None
        assert await inspector.state(side.name, name) is None
        assert await inspector.changed([(side.name, name)]) == {}


async def test_every_write_changes_the_marker_of_its_thread_only(side: Side, inspector: Inspector) -> None:
    await side.save("t")
    await side.save("other")
    watched = [(side.name, side.id_of(name)) for name in ("t", "other", "nobody", "t")]
    first = await inspector.changed(watched)
    assert first.keys() == {watched[0], watched[1]}
    assert await inspector.changed(watched) == first
    await side.save("t")
    second = await inspector.changed(watched)
    assert second[watched[0]] != first[watched[0]]
    assert second[watched[1]] == first[watched[1]]
    await side.delete("t")
    assert (await inspector.changed(watched)).keys() == {watched[1]}
    assert await inspector.changed([]) == {}
    with pytest.raises(InvalidInput, match="surrogate"):
        await inspector.changed([(side.name, "\ud800")])


async def test_statistics_add_up(side: Side, inspector: Inspector) -> None:
    for name in ("small", *["large"] * 6, "middle"):
        await side.save(name)
    rows = (await inspector.threads(side.name)).items
    found = await inspector.statistics(side.name)
    assert (found.threads, found.checkpoints, found.sampled) == (3, sum(row.checkpoints for row in rows), None)
    assert found.size_bytes == sum(row.size_bytes for row in rows)
    assert found.largest[0].thread.thread_id == side.id_of("large")
    assert len(found.largest) == 3
    assert sum(day.threads for day in found.days) == 3
    assert sum(day.size_bytes for day in found.days) == found.size_bytes


async def test_the_api_and_the_pages_show_copy_and_delete_what_the_inspector_lists(
    side: Side, inspector: Inspector
) -> None:
    for name in ("one", "two"):
        await side.fill(name)
    rows = {row.thread_id: row for row in (await inspector.threads(side.name)).items}
    asked = {"family": side.name}
    first, copy = side.id_of("one"), side.id_of("three")
    async with (
        Database(side.config) as database,
        httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app(database, allow_writes=True)), base_url="http://localhost"
        ) as client,
    ):

        async def get(path: str, **query: Any) -> Any:
            answer = await client.get(path, params={**asked, **query})
            assert answer.status_code == 200, answer.text
            return answer.json()

        assert side.name in [one["name"] for one in (await client.get("/families")).json()["families"]]
        listed = (await get("/threads"))["threads"]
        assert [one["thread_id"] for one in listed] == [*rows]
        assert [one["size_bytes"] for one in listed] == [row.size_bytes for row in rows.values()]
        path = f"/threads/{first.replace('/', '%2F')}"
        assert (await get(path))["checkpoints"] == rows[first].checkpoints
        entry = (await get(f"{path}/history"))["checkpoints"][0]
        view = await inspector.state(side.name, first)
        assert view is not None
        state = await get(f"{path}/state", checkpoint_id=entry["checkpoint_id"])
        assert state["state"] == view.state
        assert [one["text"] for one in state["messages"]] == [one.text for one in view.messages]
        assert {hit["thread_id"] for hit in (await get("/search", q="one"))["hits"]} == {first}
        page = checked_page(await client.get("/inspect/thread", params={**asked, "thread": first}))
        assert f"{MARKER} one" in page.text
        assert first in checked_page(await client.get("/", params=asked)).text

        copied = await client.post(f"{path}/copy", params=asked, json={"to": copy})
        assert copied.json() == {"thread_id": copy}
        again = await client.post(f"{path}/copy", params=asked, json={"to": copy})
        assert again.json()["error"]["code"] == "thread_exists"
        form = checked_page(await client.get("/inspect/delete", params={**asked, "thread": first})).inputs()
        assert (await client.post("/inspect/delete", data=form)).status_code == 303
        assert (await client.get(path, params=asked)).status_code == 404
        path = f"/threads/{copy.replace('/', '%2F')}"
        copy_of_state = (await get(f"{path}/state"))["state"]
        assert copy_of_state.keys() == state["state"].keys()
        assert copy_of_state.get("messages") == state["state"].get("messages")
        assert (await client.delete(path, params=asked)).json() == {"deleted": True}
        assert (await client.delete(path, params=asked)).status_code == 404
    assert await ids(inspector, side.name) == ["two"]


async def test_the_state_at_a_time_is_what_was_saved_by_then(side: Side, inspector: Inspector) -> None:
    await side.save("t")
    (row,) = (await inspector.threads(side.name)).items
    day = timedelta(days=1)
    assert await inspector.state(side.name, row.thread_id, at=row.updated_at - day) is None
    assert await inspector.state(side.name, row.thread_id, at=row.updated_at + day) is not None
    assert await inspector.state(side.name, row.thread_id, "no such checkpoint") is None
    assert list((await inspector.history(side.name, row.thread_id, at=row.updated_at - day)).items) == []
