"""Counters and pools of a database: `Stats`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..engine.counters import Counters, PoolState
from ..engine.execution import AsyncEngine, SyncEngine

#: Names of caches whose look-ups are counted: newest states of threads, and embeddings.
STATES, EMBEDDINGS = "states", "embeddings"


@dataclass(frozen=True, slots=True)
class Stats:
    """The pools of a `Database` at one moment, and its counters, which only grow.

    Args:
        open: Connections that are open, or being opened, in all pools.
        in_use: Open connections that calls use now.
        waiting: Calls that wait for a connection.
        opened: Connections opened so far.
        lost: Connections dropped so far because they, or their server, failed.
        round_trips: Packets that were sent, answered or not. Those of calls under way are not counted.
        retries: Batches sent again, after a lost connection, a deadlock or a lock wait.
        cache_hits: Loads of a newest state that used a cached state, which is the newest one or a base of it.
        cache_misses: Other loads of a newest state. A load by an id counts only if the cached state has that id.
        vector_cache_hits: Searches by meaning that used cached embeddings of the namespaces.
        vector_cache_misses: Other searches by meaning, except those among few embeddings, which need no cache.
        sent_bytes: Bytes of commands, before TLS; logins are not counted.
        received_bytes: Bytes of answers, likewise.
        synchronous: The pool of the synchronous stores.
        asynchronous: The pools of the asynchronous stores, one for each event loop that has made a call.
    """

    open: int
    in_use: int
    waiting: int
    opened: int
    lost: int
    round_trips: int
    retries: int
    cache_hits: int
    cache_misses: int
    vector_cache_hits: int
    vector_cache_misses: int
    sent_bytes: int
    received_bytes: int
    synchronous: PoolState = field(default_factory=PoolState)
    asynchronous: tuple[PoolState, ...] = ()


def stats_of(counters: Counters, blocking: SyncEngine | None, awaited: AsyncEngine | None) -> Stats:
    """Return the statistics of a database, from those of its engines that exist."""
    (synchronous,) = (PoolState(),) if blocking is None else blocking.pools()
    asynchronous = () if awaited is None else awaited.pools()
    pools = (synchronous, *asynchronous)
    return Stats(
        open=sum(pool.open for pool in pools),
        in_use=sum(pool.in_use for pool in pools),
        waiting=sum(pool.waiting for pool in pools),
        opened=counters.opened,
        lost=counters.lost,
        round_trips=counters.total.round_trips,
        retries=counters.retries,
        cache_hits=counters.looked_up(STATES, hit=True),
        cache_misses=counters.looked_up(STATES, hit=False),
        vector_cache_hits=counters.looked_up(EMBEDDINGS, hit=True),
        vector_cache_misses=counters.looked_up(EMBEDDINGS, hit=False),
        sent_bytes=counters.total.sent_bytes,
        received_bytes=counters.total.received_bytes,
        synchronous=synchronous,
        asynchronous=asynchronous,
    )
