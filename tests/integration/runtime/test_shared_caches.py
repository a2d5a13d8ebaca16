"""Process caches belong to the `Database`: stores made for each request share them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from locus_mysql import Database, Encryption, SyncCheckpointStore, SyncMemoryStore, SyncMySQLBackend
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore
from locus_mysql.integrations.memu import MemuDatabase

from ...either_side import AnyStore
from ..conftest import ONE_OF_EACH, MakeConfig
from ..contract.samples import SAMPLES, Sample

#: Messages of a conversation, and turns that are measured.
MESSAGES, TURNS = 1_000, 3

SCOPE = {"user_id": "ada"}


def conversation(length: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"Message {number}. " + "word " * 40} for number in range(length)]}


def received_bytes(db: Database, work: Callable[[], object]) -> int:
    """Return how many bytes of answers some work reads."""
    before = db.stats().received_bytes
    work()
    return db.stats().received_bytes - before


def turn(make: Callable[[], SyncCheckpointStore]) -> None:
    """Load a thread, and save it with one more message, as a request of a service does."""
    store = make()
    state = store.load("thread")
    assert state is not None
    store.save("thread", conversation(len(state["messages"]) + 1))


def test_a_store_for_each_request_reads_as_little_as_a_kept_one(make_config: MakeConfig) -> None:
    with Database(make_config(driver="pymysql")) as db:
        kept = SyncCheckpointStore(db)
        kept.save("thread", conversation(MESSAGES))
        for_kept = [received_bytes(db, lambda: turn(lambda: kept)) for _ in range(TURNS)]
        for_new = [received_bytes(db, lambda: turn(lambda: SyncCheckpointStore(db))) for _ in range(TURNS)]
        assert max(for_new) <= 1.1 * max(for_kept)
        with Database(db.config) as other:
            cold = received_bytes(other, lambda: turn(lambda: SyncCheckpointStore(other)))
        assert max(for_new) < cold / 100
        assert kept.load("thread") == conversation(MESSAGES + 2 * TURNS + 1)


def test_embeddings_and_headers_are_shared_too(make_config: MakeConfig) -> None:
    with Database(make_config(driver="pymysql")) as db:
        store = partial(SyncMemoryStore, db, dims=2)
        for number in range(200):
            store().put(("n",), f"{number}", {"text": "word " * 100}, embedding=[1, number])
        find = lambda: store().search(("n",), embedding=[1, 5], limit=1)  # noqa: E731
        first, _, third = (received_bytes(db, find) for _ in range(3))
        assert db.stats().vector_cache_hits >= 1
        assert third < first

        memu = [MemuDatabase(db) for _ in range(2)]
        for number in range(100):
            memu[0].memory_item_repo.create_item(
                memory_type="profile", summary=f"{number}", embedding=[1.0, number], user_data=SCOPE
            )
        near = [
            received_bytes(db, lambda one=one: one.memory_item_repo.vector_search_items([1.0, 0.0], 1, SCOPE))  # type: ignore[misc]
            for one in memu
        ]
        assert near[1] < near[0]

        key = TranscriptKey("kind", "", "t")
        add = lambda: SyncTranscriptStore(db).append(key, [NewItem("a")], fold=lambda state, items: "word " * 200)  # noqa: E731
        add()
        before = db.stats().round_trips
        add()
        assert db.stats().round_trips - before == 1


def test_the_limit_holds_for_all_stores_together(make_config: MakeConfig) -> None:
    state = {"messages": [secrets.token_hex(100) for _ in range(50)]}
    with Database(make_config(driver="pymysql", cache_bytes=22_000)) as db:
        stores = {"dicts": SyncCheckpointStore(db), "current": SyncMySQLBackend(db)}
        for store in stores.values():
            store.save("thread", state)
            store.save("thread", state)
        large = {
            name: received_bytes(db, lambda store=store: store.load("thread"))
            for name, store in reversed(stores.items())
        }  # type: ignore[misc]
        assert large["dicts"] > 10 * large["current"], "the state used last has displaced the other one"


def test_stores_of_other_tenants_prefixes_and_keys_share_no_entry(make_config: MakeConfig) -> None:
    key = {"a": bytes(32)}
    with Database(make_config(driver="pymysql")) as db:
        SyncCheckpointStore(db).save("thread", {"n": 1})
        assert SyncCheckpointStore(db, tenant="other").load("thread") is None
        assert SyncCheckpointStore(db, table_prefix="other_").load("thread") is None
        sealed = SyncCheckpointStore(db, table_prefix="sealed_", encryption=Encryption(keys=key, active="a"))
        sealed.save("thread", {"n": 2})
        hits = db.stats().cache_hits
        assert SyncCheckpointStore(db, table_prefix="sealed_", encryption=Encryption(keys=key, active="a")).load(
            "thread"
        ) == {"n": 2}
        assert db.stats().cache_hits == hits + 1
        with pytest.raises(Exception, match="encrypt"):
            SyncCheckpointStore(db, table_prefix="sealed_").load("thread")


@pytest.mark.parametrize("side", ONE_OF_EACH)
@pytest.mark.parametrize(
    "sample",  # memU's stores have one tenant, working memory's are sessions, and toys take no options
    [one for one in SAMPLES.values() if one.family not in {"memu", "toys", "working"}],
    ids=lambda one: one.family,
)
async def test_a_scope_assigns_calls_of_each_store_to_a_tenant(
    make_config: MakeConfig, side: str, sample: Sample
) -> None:
    async with Database(make_config(driver=side.rpartition("-")[0])) as db:
        make = sample.classes[side.endswith("-sync")]
        store, other = AnyStore(make(db)), AnyStore(make(db))
        with store.store.tenant_scope("acme"):
            await sample.fill(store, "of acme")
            in_scope = await sample.read(store, "of acme")
            await sample.fill(other, "of the default")  # a scope is that of one store
            of_default = await sample.read(other, "of the default")
        await sample.fill(store, "of acme")  # the same name in another tenant
        assert await sample.read(store, "of the default") == of_default
        acme = AnyStore(make(db, tenant="acme"))
        assert await sample.read(acme, "of acme") == in_scope
        assert await sample.read(acme, "of acme") == await sample.read(store, "of acme")
        with acme.store.tenant_scope("umbrella"):
            await sample.fill(acme, "of acme")
        assert await sample.read(acme, "of acme") == in_scope
        db.close()
