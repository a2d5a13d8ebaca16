"""What lists show of threads' contents: equal to what their states show, in few round trips and bytes."""

from __future__ import annotations

from typing import Any

import pytest

from ci.purchasing_desk import DONE, FAILED, LONG, WAITING, fill_all_families
from ci.support_desk import fill, fill_the_rest
from locus_mysql import CheckpointStore, Database, MySQLConfig
from locus_mysql.errors import InvalidInput
from locus_mysql.families.inspection.records import ThreadPreview, ThreadStatus
from locus_mysql.families.registry import families
from locus_mysql.inspection.inspector import Inspector

from ..conftest import MakeConfig
from ..encryption.conftest import keys


async def previews(inspector: Inspector, family: str) -> dict[str, ThreadPreview]:
    threads = (await inspector.threads(family)).items
    return dict(await inspector.previews(family, [thread.thread_id for thread in threads]))


async def test_a_preview_shows_what_the_state_shows_in_every_family(config: MySQLConfig) -> None:
    async with Database(config) as database:
        async for _ in fill(database):
            pass
        await fill_the_rest(database)
        await fill_all_families(database)
        inspector = Inspector(database)
        seen = 0
        for family in families():
            if not family.holds_threads:
                continue
            threads = (await inspector.threads(family.name)).items
            assert threads, family.name
            before = database.stats().round_trips
            found = await inspector.previews(family.name, [thread.thread_id for thread in threads])
            assert database.stats().round_trips - before <= 2, family.name
            for thread in threads:
                view = await inspector.state(family.name, thread.thread_id)
                assert view is not None
                preview = found[thread.thread_id]
                assert preview.status == view.status, thread.thread_id
                said = [one for one in view.messages if one.role != "tool" and (one.text or one.tool_calls)]
                asked = [one for one in view.messages if one.role == "user"]
                if said:
                    assert preview.last is not None
                    assert preview.last.raw == said[-1].raw
                if asked and thread.thread_id != LONG:  # its first row is not the beginning of its newest state
                    assert preview.first is not None
                    assert preview.first.raw == asked[0].raw
                seen += preview.last is not None
        assert seen > 12
        graphs = await previews(inspector, "graphs")
        assert graphs[WAITING].status == ThreadStatus("waiting", "Order 4 chairs for 320 EUR?")
        assert graphs[FAILED].status is not None
        assert graphs[FAILED].status.name == "failed"
        assert "timed out after 30 s" in graphs[FAILED].status.reason
        assert graphs[DONE].status == ThreadStatus("done")


async def test_a_very_large_row_is_not_read(config: MySQLConfig) -> None:
    async with Database(config.model_copy(update={"compression": "none"})) as database:
        store = CheckpointStore(database)
        large = [{"role": "user", "content": "x" * 400_000}]
        await store.save("large", {"messages": large})
        await store.save("grown", {"messages": large})
        await store.save("grown", {"messages": [*large, {"role": "assistant", "content": "It was long."}]})
        inspector = Inspector(database)
        before = database.stats().received_bytes
        found = await previews(inspector, "dicts")
        assert database.stats().received_bytes - before < 60_000
    assert "large" not in found
    assert found["grown"].first is None
    assert found["grown"].last is not None
    assert found["grown"].last.text == "It was long."
    assert found["grown"].status == ThreadStatus("done")


async def test_encrypted_threads_have_previews(make_config: MakeConfig) -> None:
    config = make_config(encryption=keys())
    async with CheckpointStore(config) as store:
        messages = [{"role": "user", "content": "secret"}, {"role": "assistant", "content": "hidden"}]
        for count in (1, 2):
            await store.save("t", {"messages": messages[:count]})
    async with Inspector(config) as inspector:
        found = (await previews(inspector, "dicts"))["t"]
    assert found.first is not None
    assert found.last is not None
    assert (found.first.text, found.last.text) == ("secret", "hidden")
    async with Inspector(make_config()) as inspector:  # without keys, the list is shown without contents
        assert (await previews(inspector, "dicts"))["t"] == ThreadPreview()


async def test_previews_of_unknown_threads_are_missing_and_too_many_are_refused(config: MySQLConfig) -> None:
    async with CheckpointStore(config) as store:
        await store.save("t", {})
    async with Inspector(config) as inspector:
        assert set(await inspector.previews("dicts", ["t", "unknown"])) == {"t"}
        assert await inspector.previews("dicts", []) == {}
        with pytest.raises(InvalidInput, match="1,000"):
            await inspector.previews("dicts", ["t"] * 1_001)


@pytest.mark.parametrize("payload", [b"", b"\x02\0\0\0\0broken", b"\x09" * 40])
async def test_a_damaged_row_leaves_its_preview_empty(config: MySQLConfig, payload: bytes, run_sql: Any) -> None:
    async with CheckpointStore(config) as store:
        await store.save("t", {"messages": [{"role": "user", "content": "Hello"}]})
    run_sql(f"UPDATE `{config.database}`.locus_store_checkpoints SET payload = %s", payload)
    async with Inspector(config) as inspector:
        assert (await previews(inspector, "dicts"))["t"] == ThreadPreview()
