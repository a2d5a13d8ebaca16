"""Long-term memory by number of items: put, get and search by meaning, beside other ways to keep embeddings.

All embeddings are of length 1, in 100 clusters; a search asks for the ten nearest to another point of a cluster. The
stores are blocking ones on PyMySQL, with TLS; NumPy has one thread. A "warm" process has searched before,
a "cold" one has not; "small scope" is a namespace with 100 of the items. A round trip here reads ten items by their
keys. The hits of a warm search are compared with the ten that NumPy finds in a matrix of all embeddings.
"Vectors fetched" reads all embeddings in one SELECT and ranks them with NumPy, like a store that keeps bytes without an
index. memU's unreleased MySQL provider keeps JSON text and ranks it in Python loops; this method is measured, as its
code cannot be imported. PgMemory is Locus' own store on PostgreSQL with pgvector (HNSW, with its
defaults); its rows are copied in and the index is built afterwards.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from locus.memory.store_backends.postgresql import PgMemory
from locus.rag.embeddings.base import BaseEmbedding, EmbeddingConfig, EmbeddingResult

from ci.private_servers import PrivateServer, ServerMissing, VectorPostgreSQL
from locus_mysql import Database, SyncMemoryStore
from locus_mysql.families.memories.puts import Put

from .database import fresh_database
from .disk import administrator
from .embeddings import Missing, clustered, real
from .environment import environment
from .markdown import markdown_table
from .peers import Peers

#: Name of this measurement's own page.
PAGE = "memories"

#: Numbers of items by width of the embeddings.
SIZES = {384: (1_000, 10_000, 100_000), 1_536: (1_000, 10_000)}
QUICK_SIZES = {384: (1_000,)}
#: Time limit of a slow way in seconds; it has at least one round.
ROUNDS, QUICK_ROUNDS, SLOW_S = 30, 5, 5.0
WANTED, SMALL, BATCH = 10, 100, 1_000
#: Maximum number of items for memU's way; with more, it takes 20 s.
LOOPS_UP_TO = 10_000
#: Number of searches that measure recall, and of the items that they search, besides the largest size above.
ASKED, RECALL_AMONG, QUICK_AMONG = 100, 10_000, 1_000

WARM, COLD, SCOPED = "warm", "cold", "cold, small scope"
CHANGED = "warm, after another process wrote"
PRODUCT, TRIP = "NumPy's product alone", "a round trip alone"
FETCHED, LOOPS, PGMEMORY = "all vectors fetched", "memU's way", "Locus PgMemory"
PUT, GET, PUT_PG, GET_PG = "put", "get", "PgMemory put", "PgMemory get"

ALL, LARGE, LITTLE = ("bench",), ("bench", "large"), ("bench", "small")


class _Prepared:
    """A way with a preparation that is not measured.

    Args:
        prepare: Called before each round.
    """

    def __init__(self, prepare: Callable[[Any], Callable[[], Any]]) -> None:
        self.prepare = prepare


#: A function of a query.
Way: TypeAlias = Callable[[Any], Any] | _Prepared


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Measure every number of items and dimensions, and recall; ``quick``: a few rounds of a thousand items."""
    result: dict[str, Any] = {"environment": environment(dsn, Peers()), "missing": {}, "sizes": {}, "recall": {}}
    with ExitStack() as stack:
        try:
            postgresql = stack.enter_context(VectorPostgreSQL.start(_say))
        except ServerMissing as error:
            postgresql, result["missing"][PGMEMORY] = None, str(error)
        for dims, sizes in (QUICK_SIZES if quick else SIZES).items():
            for size in sizes:
                _say(f"memories, {size:,} items of {dims} dimensions")
                with fresh_database(dsn) as own:
                    rounds = QUICK_ROUNDS if quick else ROUNDS
                    figures = _at_size(own, postgresql, size, dims, rounds)
                if "recall" in figures:
                    result["recall"][f"clustered, {size:,} of {dims} dimensions"] = figures.pop("recall")
                result["sizes"].setdefault(str(dims), {})[str(size)] = figures
        among = QUICK_AMONG if quick else RECALL_AMONG
        result["recall"][f"clustered, {among:,} of 384 dimensions"] = _recall(dsn, clustered(among + ASKED, 384))
        try:
            result["recall"]["real sentences, all-MiniLM-L6-v2"] = _recall(dsn, real()[: RECALL_AMONG + ASKED])
        except Missing as error:
            result["missing"]["real embeddings"] = str(error)
    return result


def _at_size(dsn: str, postgresql: PrivateServer | None, size: int, dims: int, rounds: int) -> dict[str, Any]:
    """Measure the milliseconds of each way with a number of items, and the speed of filling."""
    vectors, asked = clustered(size, dims), clustered(rounds * 2 + 16, dims, seed=6)
    with ExitStack() as stack:
        database = stack.enter_context(Database(dsn, driver="pymysql", pool_size=1))
        store = SyncMemoryStore(database, dims=dims)
        began = time.perf_counter()
        fill(store, vectors)
        figures: dict[str, Any] = {"filled_per_s": size / (time.perf_counter() - began)}
        began = time.perf_counter()
        store.search(ALL, embedding=asked[0], exact=True)
        figures["loaded_ms"] = (time.perf_counter() - began) * 1000
        ways = _ways(store, database, vectors, stack, dsn)
        if postgresql is not None:
            pg = stack.enter_context(_pgmemory(postgresql, vectors))
            figures["pgmemory_built_s"] = pg.built_s
            ways |= {PGMEMORY: pg.search, PUT_PG: pg.put, GET_PG: pg.get}
        for unit, taken in zip(("ms", "processor_ms"), _in_rounds(ways, asked, rounds), strict=True):
            figures[unit] = {name: _typical(one) for name, one in taken.items()}
        if size > RECALL_AMONG:
            figures["recall"] = _found(database, vectors, clustered(ASKED, dims, seed=8))
    return figures


def fill(store: SyncMemoryStore, vectors: Any) -> None:
    """Put an item for each row, in batches; the first hundred into a separate namespace."""
    for start in range(0, len(vectors), BATCH):
        store.put_batch(
            Put(LITTLE if n < SMALL else LARGE, _key(n), _value(n), embedding=vectors[n])
            for n in range(start, min(start + BATCH, len(vectors)))
        )


def _key(number: int) -> str:
    return f"{number:07}"


def _value(number: int) -> dict[str, str]:
    return {"fact": f"What is known as number {number}."}


def _ways(store: SyncMemoryStore, database: Database, vectors: Any, stack: ExitStack, dsn: str) -> dict[str, Way]:
    """Return the ways by name; each is a function of a query."""
    dims, size = vectors.shape[1], len(vectors)
    other = SyncMemoryStore(database, dims=dims)
    cursor = stack.enter_context(administrator(dsn))
    source = random.Random(3)

    def nearest(query: Any) -> list[int]:
        return top(vectors @ query)

    def search(query: Any) -> list[int]:
        return [int(hit.item.key) for hit in store.search(ALL, embedding=query, limit=WANTED)]

    def warm(query: Any) -> Callable[[], Any]:
        search(vectors[0])  # reads the changes that other ways made before
        return lambda: search(query)

    def changed(query: Any) -> Callable[[], Any]:
        number = source.randrange(SMALL, size)
        other.put(LARGE, _key(number), {"fact": "Changed."}, embedding=vectors[number])
        return lambda: search(query)

    def put(query: Any) -> None:
        number = source.randrange(SMALL, size)
        other.put(LARGE, _key(number), {"fact": "Put again."}, embedding=vectors[number])

    def fetched(query: Any) -> list[int]:
        cursor.execute("SELECT item_key, embedding FROM locus_memory_vectors WHERE tenant = 'default'")
        rows = cursor.fetchall()
        embeddings = b"".join(row[1][-4 * dims :] for row in rows)  # behind the seal
        return top(np.frombuffer(embeddings, dtype="<f4").reshape(len(rows), dims) @ query)

    def fresh() -> SyncMemoryStore:
        return SyncMemoryStore(database, dims=dims)

    keys = [(LARGE, _key(number)) for number in range(SMALL, SMALL + WANTED)]
    ways: dict[str, Way] = {
        WARM: _Prepared(warm),
        COLD: lambda query: fresh().search(ALL, embedding=query, limit=WANTED),
        SCOPED: lambda query: fresh().search(LITTLE, embedding=query, limit=WANTED),
        PRODUCT: nearest,
        TRIP: lambda query: store.get_batch(keys),
        FETCHED: fetched,
        GET: lambda query: store.get(*keys[0]),
        PUT: put,
        CHANGED: _Prepared(changed),
    }
    for query in clustered(5, dims, seed=7):
        if set(search(query)) != set(nearest(query)):
            raise AssertionError("a warm search found others than NumPy")
    if size <= LOOPS_UP_TO:
        _keep_as_json(cursor, vectors)
        ways[LOOPS] = lambda query: _in_loops(cursor, query)
    return ways


def top(scores: Any) -> list[int]:
    """Return the indexes of the ten highest scores, best first."""
    best = np.argpartition(-scores, WANTED)[:WANTED]
    return [int(index) for index in best[np.argsort(-scores[best])]]


def _keep_as_json(cursor: Any, vectors: Any) -> None:
    cursor.execute("CREATE TABLE as_json (id INT PRIMARY KEY, summary TEXT, embedding_json LONGTEXT)")
    for start in range(0, len(vectors), 100):
        rows = [
            (n, f"Number {n}", json.dumps(vectors[n].tolist())) for n in range(start, min(start + 100, len(vectors)))
        ]
        cursor.executemany("INSERT INTO as_json VALUES (%s, %s, %s)", rows)


def _in_loops(cursor: Any, query: Any) -> list[tuple[float, int]]:
    """Read and decode all embeddings, and compare them number by number."""
    asked = query.tolist()
    cursor.execute("SELECT id, embedding_json FROM as_json")
    scored = []
    for row_id, text in cursor.fetchall():
        vector = json.loads(text)
        product = sum(a * b for a, b in zip(asked, vector, strict=True))
        lengths = math.sqrt(sum(a * a for a in asked)) * math.sqrt(sum(b * b for b in vector))
        scored.append((product / lengths, row_id))
    return sorted(scored, reverse=True)[:WANTED]


def _in_rounds(ways: Mapping[str, Way], asked: Any, rounds: int) -> tuple[dict[str, list[float]], ...]:
    """Measure the milliseconds of each way, and those of this process's processor time.

    The order is shuffled in each round; a slow way has fewer rounds.
    """
    source, order = random.Random(4), list(ways)
    times: dict[str, list[float]] = {name: [] for name in ways}
    work: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 2):
        source.shuffle(order)
        for name in order:
            if sum(times[name]) > SLOW_S * 1000:
                continue
            way, query = ways[name], asked[number]
            call = way.prepare(query) if isinstance(way, _Prepared) else partial(way, query)
            began = time.perf_counter()
            worked = time.process_time()
            call()
            if number >= 2 or name in (LOOPS, FETCHED):  # the first two rounds warm up
                times[name].append((time.perf_counter() - began) * 1000)
                work[name].append((time.process_time() - worked) * 1000)
    return times, work


def _typical(times: list[float]) -> float:
    """Return the lower quartile: the time of a call without interference from other processes."""
    return statistics.quantiles(times, n=4)[0] if len(times) > 1 else times[0]


class _Known(BaseEmbedding):
    """Embeds a text that names a row as that row; other texts as one of the queries."""

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors
        self.query: Any = vectors[0]

    @property
    def config(self) -> EmbeddingConfig:
        """See the base."""
        return EmbeddingConfig(dimension=self.vectors.shape[1])

    async def embed(self, text: str) -> EmbeddingResult:
        """See the base."""
        return EmbeddingResult(embedding=self.query.tolist(), text=text, model="known")


class _PgMemory:
    """Locus' `PgMemory` with the same items, called from outside the event loop."""

    def __init__(self, runner: asyncio.Runner, store: PgMemory, known: _Known) -> None:
        self.runner, self.store, self.known = runner, store, known
        self.number = 0
        self.built_s = 0.0

    def fill(self, url: str, vectors: Any) -> None:
        """Copy the rows into the table, then build the index with enough memory."""
        import asyncpg

        async def filled() -> None:
            await self.store.get(ALL, "nothing")  # creates the table
            connection = await asyncpg.connect(url)
            try:
                await connection.execute("DROP INDEX idx_locus_memories_ann")
                statement = (
                    "INSERT INTO locus_memories (tenant, ns, key, value, embedding) VALUES ($1,$2,$3,$4,$5::vector)"
                )
                for start in range(0, len(vectors), BATCH):
                    rows = [
                        (*ALL, *ALL, _key(n), json.dumps(_value(n)), _literal(vectors[n]))
                        for n in range(start, min(start + BATCH, len(vectors)))
                    ]
                    await connection.executemany(statement, rows)
                await connection.execute("SET maintenance_work_mem = '1GB'")
                await connection.execute(
                    "CREATE INDEX idx_locus_memories_ann ON locus_memories USING hnsw (embedding vector_cosine_ops)"
                )
                await connection.execute("ANALYZE locus_memories")
            finally:
                await connection.close()

        began = time.perf_counter()
        self.runner.run(filled())
        self.built_s = time.perf_counter() - began

    def search(self, query: Any) -> Any:
        """Return the ten nearest items."""
        self.known.query = query
        self.number += 1
        found = self.runner.run(self.store.search(ALL, f"query {self.number}", WANTED))
        assert len(found) == WANTED
        return found

    def put(self, query: Any) -> None:
        """Put an item again."""
        self.known.query = query
        self.number += 1
        self.runner.run(self.store.put(ALL, _key(SMALL), {"fact": f"Put again, {self.number}."}))

    def get(self, query: Any) -> None:
        """Get an item."""
        self.runner.run(self.store.get(ALL, _key(SMALL)))


@contextmanager
def _pgmemory(server: PrivateServer, vectors: Any) -> Iterator[_PgMemory]:
    known = _Known(vectors)
    with asyncio.Runner() as runner:
        store = PgMemory(server.url, embedder=known)
        one = _PgMemory(runner, store, known)
        try:
            one.fill(server.url, vectors)
            yield one
        finally:
            runner.run(_dropped(server.url))
            runner.run(store.close())


async def _dropped(url: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute("DROP TABLE IF EXISTS locus_memories")
    await connection.close()


def _literal(vector: Any) -> str:
    return "[" + ",".join(f"{value:.6f}" for value in vector) + "]"


def _recall(dsn: str, rows: Any) -> float:
    """Return the fraction of the ten nearest that a cold search finds. The last rows are the queries."""
    vectors, asked = rows[:-ASKED], rows[-ASKED:]
    with fresh_database(dsn) as own, Database(own, driver="pymysql", pool_size=1) as database:
        fill(SyncMemoryStore(database, dims=vectors.shape[1]), vectors)
        return _found(database, vectors, asked)


def _found(database: Database, vectors: Any, asked: Any) -> float:
    """Return the fraction of the ten nearest that cold searches find."""
    shares = []
    for query in asked:
        hits = SyncMemoryStore(database, dims=vectors.shape[1]).search(ALL, embedding=query, limit=WANTED)
        best = set(top(vectors @ query))
        shares.append(len(best & {int(hit.item.key) for hit in hits}) / WANTED)
    return statistics.mean(shares)


def table(result: dict[str, Any]) -> str:
    """Return a table for each number of dimensions, with a column for each number of items; recall; missing ways."""
    parts = [" ".join((__doc__ or "").split("\n\n", 1)[1].split())]
    for dims, sizes in result["sizes"].items():
        names = list(dict.fromkeys(name for one in sizes.values() for name in one["ms"]))
        rows = [[name, *(_shown(one["ms"].get(name)) for one in sizes.values())] for name in names]
        rows += [
            ["first exact search: codes loaded", *(_shown(one["loaded_ms"]) for one in sizes.values())],
            ["items put by batches, each", *(_shown(1000 / one["filled_per_s"]) for one in sizes.values())],
        ]
        heading = ["", *(f"{int(size):,} items" for size in sizes)]
        parts += [f"{int(dims):,} dimensions, lower quartiles, ms", markdown_table(heading, rows)]
        rows = [[name, *(_shown(one["processor_ms"].get(name)) for one in sizes.values())] for name in names]
        parts += [f"{int(dims):,} dimensions, the client's processor time, ms", markdown_table(heading, rows)]
    rows = [[name, f"{share:.4f}"] for name, share in result["recall"].items()]
    parts += ["Part of the ten nearest that a cold search finds", markdown_table(["among", "recall@10"], rows)]
    parts += [f"Left out: {name}: {reason}" for name, reason in result["missing"].items()]
    return "\n\n".join(parts)


def _shown(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds:,.0f}" if milliseconds >= 100 else f"{milliseconds:.2f}"


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)
