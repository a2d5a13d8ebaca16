"""Long-term memory: round trips, rows read by the server, and bytes on the wire, of the same calls at two sizes.

A figure that grows with the number of items shows a missing index or unneeded data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from locus_mysql import SyncMemoryStore
from locus_mysql.families.memories.puts import Put

from ..database import fresh_database
from ..disk import administrator
from ..embeddings import clustered
from ..wire import CountingProxy
from .housekeeping import without_random_housekeeping
from .reads import rows_read

SIZES = (600, 2_400)
BATCH, SMALL = 300, 50
DIMS = 64
EVERYWHERE, HERE, LITTLE = ("bench",), ("bench", "large"), ("bench", "small")
KEYS = [(HERE, f"{number:05}") for number in range(100, 110)]

QUERY, *OTHERS = clustered(21, DIMS, seed=9)
ITEM = {"fact": "What is known."}


#: The calls, of a store with all embeddings in memory and of one without any.
CALLS: dict[str, Callable[[SyncMemoryStore, SyncMemoryStore], Any]] = {
    "put": lambda s, _: s.put(HERE, "00103", ITEM, embedding=QUERY, if_version=1),
    "put_batch of 20": lambda s, _: s.put_batch([Put(HERE, f"new {n}", ITEM, embedding=OTHERS[n]) for n in range(20)]),
    "get": lambda s, _: s.get(HERE, "00107"),
    "get_batch of 10": lambda s, _: s.get_batch(KEYS),
    "list_keys": lambda s, _: s.list_keys(HERE, 10),
    "list_namespaces": lambda s, _: s.list_namespaces(),
    "search by word": lambda s, _: s.search(LITTLE, query="seldom"),
    "search by meaning, after a change": lambda s, _: s.search(EVERYWHERE, embedding=QUERY),
    "search by meaning, warm": lambda s, _: s.search(EVERYWHERE, embedding=QUERY),
    "search by both, warm": lambda s, _: s.search(EVERYWHERE, embedding=QUERY, query="seldom"),
    "search by meaning, cold": lambda _, s: s.search(EVERYWHERE, embedding=QUERY),
    "search by meaning, small scope": lambda _, s: s.search(LITTLE, embedding=QUERY),
    "delete": lambda s, _: s.delete(HERE, "00104"),
}


def figures(dsn: str) -> dict[str, float]:
    """Return round trips, rows read and bytes, by call and number of items."""
    found: dict[str, float] = {}
    for size in SIZES:
        with (
            fresh_database(dsn) as own,
            CountingProxy(own) as proxy,
            administrator(own) as cursor,
            _store(proxy) as warm,
            without_random_housekeeping(),
        ):
            _fill(warm, size)
            cursor.execute("ANALYZE TABLE locus_memory_items, locus_memory_vectors")
            cursor.fetchall()
            for name, call in CALLS.items():
                with _store(proxy) as cold:
                    for what, count in _counted(proxy, cursor, lambda call=call, cold=cold: call(warm, cold)).items():
                        found[f"{what}, {name}, {size:,} items"] = count
    return found


@contextmanager
def _store(proxy: CountingProxy) -> Iterator[SyncMemoryStore]:
    """Yield a store with an open connection."""
    with SyncMemoryStore(dsn=proxy.dsn, dims=DIMS, driver="pymysql", ssl_mode="DISABLED", pool_size=1) as store:
        store.exists(HERE, "nothing")
        yield store


def _fill(store: SyncMemoryStore, size: int) -> None:
    """Save items with embeddings, index their text, and load their embeddings into the store's cache."""
    vectors = clustered(size, DIMS)
    for start in range(0, size, BATCH):
        store.put_batch(
            Put(LITTLE if n < SMALL else HERE, f"{n:05}", {"fact": _fact(n)}, embedding=vectors[n])
            for n in range(start, start + BATCH)
        )
    store.search(EVERYWHERE, query="seldom")
    for _ in range(2):
        store.search(EVERYWHERE, embedding=QUERY, exact=True)


def _fact(number: int) -> str:
    return "seldom" if number < SMALL and number % 10 == 0 else f"word{number}"


def _counted(proxy: CountingProxy, cursor: pymysql.cursors.Cursor, call: Callable[[], Any]) -> dict[str, float]:
    """Return the figures of one call."""
    before = rows_read(cursor)
    with proxy.counting() as count:
        call()
    return {
        "round trips": count.round_trips,
        "rows read": rows_read(cursor) - before,
        "bytes": count.bytes_sent + count.bytes_received,
    }
