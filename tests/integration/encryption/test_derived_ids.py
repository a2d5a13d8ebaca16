"""Ids that integrations derive from encrypted contents show nothing of them, and recognise equal contents later."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from locus_mysql import Database, reencrypt
from locus_mysql.integrations.google_adk import AdkSessionService
from locus_mysql.integrations.google_adk.events import json_of_event
from locus_mysql.integrations.strands import StrandsMemoryStore
from locus_mysql.runtime.exact_json import encode_json

from ..conftest import MakeConfig
from .conftest import RunSQL, keys

pytestmark = [pytest.mark.parametrize("driver", ["mysql-connector", "pymysql"]), pytest.mark.kept_tables]

Open = Callable[..., Any]

ADA = {"app_name": "shop", "user_id": "ada", "session_id": "s"}

FACT = "Ada is diabetic."


def said(text: str) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(id="e", author="user", invocation_id="i-1", content=content, timestamp=1_763_900_000.0)


@pytest.fixture
async def opened(make_config: MakeConfig, driver: str) -> AsyncIterator[Open]:
    """Yield ``opened(store, key, *known, tenant=…)``: another store, as in another process, with these keys."""
    async with AsyncExitStack() as stack:

        def open_one(kind: Any, *key_ids: str, tenant: str = "default", **options: Any) -> Any:
            store = kind(make_config(driver=driver, encryption=keys(*key_ids), tenant=tenant), **options)
            stack.push_async_callback(store.close)
            return store

        yield open_one


async def rotate(make_config: MakeConfig) -> None:
    """Encrypt all rows with the newer key."""
    async with Database(make_config(encryption=keys("2026-11"))) as database:
        await reencrypt(database)
        assert {key for counts in await reencrypt(database, dry_run=True) for key in counts.rows} == {"2026-11"}


async def test_keys_of_memories_are_no_digests_of_their_contents_and_differ_by_place(
    opened: Open, run_sql: RunSQL, database: str
) -> None:
    places: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}, {"name": "a", "tenant": "acme"}]
    found = [await opened(StrandsMemoryStore, **place).add(FACT) for place in places]
    assert len(set(found)) == len(places)
    stored = [bytes(key).decode() for (key,) in run_sql(f"SELECT item_key FROM {database}.locus_memory_items")]
    assert {*found} < {*stored}
    digest = hashlib.sha256(FACT.encode()).hexdigest()
    assert not any(digest[:16] in key for key in stored)


async def test_a_memory_is_stored_once_by_several_processes_and_after_a_rotation(
    opened: Open, make_config: MakeConfig
) -> None:
    stores = [opened(StrandsMemoryStore, "2026-10", name="a") for _ in range(4)]
    added = set(await asyncio.gather(*(store.add(FACT) for store in stores)))
    await rotate(make_config)
    only_new = opened(StrandsMemoryStore, "2026-11", "2026-11", name="a")
    assert {await only_new.add(FACT)} == added
    assert await only_new.add("Ada lives in Lisbon.") not in added


async def test_ids_of_events_are_no_digests_of_them_and_differ_by_place(
    opened: Open, run_sql: RunSQL, database: str
) -> None:
    for place in ({}, {"session_id": "t"}, {"app_name": "bank"}, {"tenant": "acme"}):
        tenant = place.pop("tenant", "default")
        service = opened(AdkSessionService, tenant=tenant)
        session = await service.create_session(**{**ADA, **place})
        await service.append_event(session, said(FACT))
    ids = [bytes(one).decode() for (one,) in run_sql(f"SELECT item_id FROM {database}.locus_transcript_items")]
    assert len(set(ids)) == 4
    digest = hashlib.sha256(encode_json(json_of_event(said(FACT)))).hexdigest()
    assert not any(digest[:16] in one for one in ids)


async def test_an_event_is_stored_once_by_several_processes_and_after_a_rotation(
    opened: Open, make_config: MakeConfig
) -> None:
    services = [opened(AdkSessionService, "2026-10") for _ in range(4)]
    session = await services[0].create_session(**ADA)
    loaded = [await service.get_session(**ADA) for service in services]
    await asyncio.gather(
        *(service.append_event(one, said(FACT)) for service, one in zip(services, loaded, strict=True))
    )
    await rotate(make_config)
    service = opened(AdkSessionService, "2026-11", "2026-11")
    await service.append_event(session, said(FACT))  # again, after an error: with the session as it was before
    await service.append_event(await service.get_session(**ADA), said(FACT))
    await service.append_event(await service.get_session(**ADA), said("Another one."))
    stored = await service.get_session(**ADA)
    assert [event.content.parts[0].text for event in stored.events] == [FACT, "Another one."]
    assert json.loads(stored.events[0].model_dump_json()) == json.loads(said(FACT).model_dump_json())
