"""``embed`` embeds items as the store of each framework would have done; so does adding them again."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai import types

from locus_mysql import MemoryStore, MySQLMemory, SyncMemoryStore
from locus_mysql.cli.main import main
from locus_mysql.integrations.google_adk import AdkMemoryService
from locus_mysql.integrations.langgraph import AsyncMySQLStore, MySQLStore
from locus_mysql.integrations.strands import StrandsMemoryStore
from locus_mysql.memory import HashingEmbedder

from ..conftest import MakeConfig

RunSql = Callable[..., tuple[Any, ...]]

pytestmark = pytest.mark.kept_tables("memories")

OLD, NEW = HashingEmbedder(48, pieces=(1, 2)), HashingEmbedder(48, pieces=(3, 5))


def embedding(embedder: Any) -> dict[str, Any]:
    return {"embed": embedder, "dims": None if embedder is None else embedder.dims}


STORES: dict[str, Callable[[Any, Any], Any]] = {
    "memory": lambda config, embedder: MemoryStore(config, **embedding(embedder)),
    "blocking memory": lambda config, embedder: SyncMemoryStore(config, **embedding(embedder)),
    "langgraph": lambda config, embedder: AsyncMySQLStore(config, index=embedder and embedding(embedder)),
    "blocking langgraph": lambda config, embedder: MySQLStore(config, index=embedder and embedding(embedder)),
    "locus": lambda config, embedder: MySQLMemory(config, embedder=embedder),
    "google-adk": lambda config, embedder: AdkMemoryService(config, **embedding(embedder)),
    "strands": lambda config, embedder: StrandsMemoryStore(config, name="facts", **embedding(embedder)),
}


async def fill(store: Any) -> None:
    """Store items in the way of a framework, which may have been stored before."""
    value = {"text": "green tea", "facts": [{"note": "warm"}, {"note": "in the morning"}], "n": 1.5}
    if isinstance(store, AdkMemoryService):
        parts = [types.Part(text="Ada lives"), types.Part(text="in Lisbon.")]
        events = [
            Event(id=f"e{n}", author="user", invocation_id="i", content=types.Content(role="user", parts=parts[:n]))
            for n in (1, 2)
        ]
        await store.add_events_to_memory(app_name="shop", user_id="ada", events=events, session_id="s")
    elif isinstance(store, StrandsMemoryStore):
        await store.add("Ada lives in Lisbon.", {"source": "chat"})
    elif isinstance(store, AsyncMySQLStore):
        await store.aput(("n",), "whole", value)
        await store.aput(("n",), "paths", value, index=["facts[*].note", "text"])
        await store.aput(("n",), "none", value, index=False)
    elif isinstance(store, MySQLStore):
        store.put(("n",), "whole", value)
        store.put(("n",), "paths", value, index=["facts[*].note", "text"])
        store.put(("n",), "none", value, index=False)
    elif isinstance(store, MySQLMemory):
        await store.put(("n",), "k", value)
    else:
        for options in ({}, {"index": ["facts[*].note", "text"]}, {"index": False}, {"text": "its own text"}):
            done = store.put(("n",), json.dumps(options), value, **options)
            if inspect.isawaitable(done):
                await done


async def filled(store: Any) -> None:
    await fill(store)
    closing = store.close()
    if inspect.isawaitable(closing):
        await closing


def stored(run: RunSql, tenant: str) -> list[Any]:
    """Return the embeddings of a tenant in all their forms."""
    columns = (
        "v.path, v.item_key, v.number, v.model, CONCAT(LEFT(v.embedding, 1), SUBSTR(v.embedding, 6)), s.sig, s.model"
    )
    return list(
        run(
            f"SELECT {columns} FROM locus_memory_vectors v"
            " JOIN locus_memory_signs s ON s.owner = CONCAT(v.tenant, 0x00, v.path) AND s.item_key = v.item_key"
            " AND s.number = v.number WHERE v.tenant = %s ORDER BY v.path, v.item_key, v.number",
            tenant,
        )
    )


@pytest.mark.parametrize("before", [None, OLD], ids=["without a model", "of another model"])
@pytest.mark.parametrize("name", STORES)
def test_items_are_embedded_as_the_store_would_have_done(
    make_config: MakeConfig,
    sql: RunSql,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    before: Any,
) -> None:
    make = STORES[name]

    def config(tenant: str) -> Any:
        return make_config(driver="pymysql", tenant=tenant)

    asyncio.run(filled(make(config("direct"), NEW)))
    for tenant in ("by command", "again"):
        asyncio.run(filled(make(config(tenant), before)))
    expected = stored(sql, "direct")
    assert expected
    monkeypatch.setitem(sys.modules, "stores_of_test", SimpleNamespace(make=lambda: make(config("by command"), NEW)))
    items = len({(row[0], row[1]) for row in expected})
    for dry_run in (["--dry-run"], [], []):
        assert main(["embed", "stores_of_test:make", *dry_run]) == 0
    printed = capsys.readouterr().out.splitlines()
    noun = "item" if items == 1 else "items"
    assert printed[0].startswith(f"To embed with the model '{NEW.model}': {items} {noun}. ")
    assert printed[1].startswith(f"Embedded with the model '{NEW.model}': {items} {noun}. ")
    assert printed[2].startswith(f"Embedded with the model '{NEW.model}': 0 items. ")
    assert stored(sql, "by command") == expected
    asyncio.run(filled(make(config("again"), NEW)))
    assert stored(sql, "again") == expected
    assert main(["embed", "stores_of_test:make", "--tenant", "direct"]) == 0


def test_what_is_no_store_that_embeds_is_refused(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = MemoryStore(make_config(driver="pymysql"))
    monkeypatch.setitem(sys.modules, "stores_of_test", SimpleNamespace(plain=plain, five=5))
    for name, message in (
        ("stores_of_test:plain", "has no function that embeds"),
        ("stores_of_test:five", "is no store of long-term memory, but int"),
        ("stores_of_test:other", "cannot be imported"),
        ("no_module_here", "cannot be imported"),
    ):
        assert main(["embed", name]) != 0
        assert message in capsys.readouterr().err
