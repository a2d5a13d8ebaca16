"""A server loses its last transactions, which running processes have already read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from locus_mysql.families.memories import nearest
from locus_mysql.families.memories.puts import Put

from ...conftest import EACH_WAY
from ...lost_tail import RunSQL, Tables
from .conftest import Make

DIMS = 8
rng = random.Random(11)


def vector() -> list[float]:
    return [rng.gauss(0, 1) for _ in range(DIMS)]


@pytest.fixture(autouse=True)
def known_from_the_second_search_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES", 5)
    monkeypatch.setattr(nearest, "SERVER_CANDIDATES_PER_HIT", 1)


async def agree(store: Any, make: Make, prefix: tuple[str, ...]) -> None:
    """Check that a search with warm caches returns the same as one with cold caches."""
    fresh = make(dims=DIMS)
    for _ in range(4):
        asked = vector()
        found, expected = [await one.search(prefix, embedding=asked, limit=50, exact=True) for one in (store, fresh)]
        assert found.exact
        assert [(hit.item.key, hit.score) for hit in found] == [(hit.item.key, hit.score) for hit in expected]


@pytest.mark.parametrize("side", EACH_WAY)
@pytest.mark.parametrize(("namespaces", "writes"), [(1, 0), (1, 1), (1, 3), (6, 1), (6, 2), (6, 5)])
@pytest.mark.kept_tables
async def test_lost_items_are_not_found(
    make_memories: Make, sql: RunSQL, run_sql: RunSQL, database: str, namespaces: int, writes: int
) -> None:
    """Writes after the loss get the same stamps again, as the clock is behind the lost stamps."""
    spaces = [("docs", str(number)) for number in range(namespaces)]
    writer, reader = make_memories(dims=DIMS), make_memories(dims=DIMS)
    await writer.put_batch([Put(spaces[n % namespaces], f"{n:02}", n, embedding=vector()) for n in range(30)])
    sql(f"UPDATE locus_memory_scopes SET stamp = {2**60}, purged = {2**60 - 1}")
    for _ in range(3):
        await reader.search(("docs",), embedding=vector(), limit=3)
    tables = Tables(run_sql, database)
    kept = tables.note()
    await writer.put(spaces[0], "00", 0, embedding=vector())
    await writer.delete(spaces[0], f"{namespaces:02}" if namespaces < 30 else "01")
    await writer.put(spaces[-1], "lost", 0, embedding=vector())
    await agree(reader, make_memories, ("docs",))
    tables.put_back(kept)
    for number in range(writes):
        key = ("other", f"{namespaces:02}", "another")[number % 3]
        await writer.put(spaces[-number % namespaces], key, number, embedding=vector())
    await agree(reader, make_memories, ("docs",))
    await writer.put(spaces[0], "last", 0, embedding=vector())
    await agree(reader, make_memories, ("docs",))


@pytest.mark.kept_tables
async def test_a_write_after_a_long_while_is_caught_up_with(make_memories: Make, sql: RunSQL) -> None:
    """Tokens are removed from the ledger. After one write, the cache catches up, as that write names the one before
    it; after several writes, the cache is reloaded."""
    writer, reader = make_memories(dims=DIMS), make_memories(dims=DIMS)
    await writer.put_batch([Put(("docs",), f"{n:02}", n, embedding=vector()) for n in range(30)])
    for writes in (1, 2, 3):
        for _ in range(3):
            await reader.search(("docs",), embedding=vector(), limit=3)
        sql("DELETE FROM locus_memory_ledger")
        for number in range(writes):
            await writer.put(("docs",), f"{writes}{number}", 0, embedding=vector())
        await agree(reader, make_memories, ("docs",))
