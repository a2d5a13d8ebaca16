"""The items nearest to an embedding: those that a process knows, brought up to date before each search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from ...dialect.memu.conditions import Condition
from ...drivers.interface import Row
from ...engine.operation import Batch, Operation
from ...families.memories.vectors.scoring import Query
from .operations import MemuStore
from .ranking import Embedded, Pool, nearest, salience_factor

#: Of so many known embeddings it is asked whether they have changed before it is asked what.
FINGERPRINTED = 500

#: Beyond that nothing decays; whole numbers have no end, floats have.
LONGEST_DECAY_DAYS = 1e300


class SearchingOperations:
    """What ranks items by their embeddings.

    Args:
        store: What is shared.
    """

    def __init__(self, store: MemuStore) -> None:
        self._store = store

    def by_similarity(self, query: Query, condition: Condition, wanted: int) -> Operation[list[tuple[str, float]]]:
        """The nearest items that fulfil a condition, with their cosines, best first."""
        pool = yield from self._known(len(query.values), condition)
        return nearest(query, pool, None, wanted)

    def by_salience(
        self, query: Query, condition: Condition, wanted: int, recency_decay_days: float
    ) -> Operation[list[tuple[str, float]]]:
        """The most salient items that fulfil a condition, with their scores, best first."""
        pool, rows, now = yield from self._pool(len(query.values), condition, salience=True)
        days = min(recency_decay_days, LONGEST_DECAY_DAYS)
        factors = {cast(str, id): salience_factor(count, last, now, days) for id, _, _, count, last in rows}
        return nearest(query, pool, factors, wanted)

    def _known(self, dims: int, condition: Condition) -> Operation[Pool]:
        """The embeddings that fulfil a condition; of many, first only whether they are those that are known."""
        known = self._store.pools.get((dims, condition))
        if known is not None and len(known.ids) >= FINGERPRINTED:
            (found,) = yield Batch.of(self._store.sql.fingerprint(self._store.tenant, dims, condition))
            if tuple(map(int, cast(tuple[int, int, int], found.rows[0]))) == known.fingerprint:
                return known
        pool, _, _ = yield from self._pool(dims, condition, salience=False)
        return pool

    def _pool(
        self, dims: int, condition: Condition, *, salience: bool
    ) -> Operation[tuple[Pool, Sequence[Row], datetime]]:
        """The embeddings that fulfil a condition, the rows they were told by, and the server's time."""
        sql, key = self._store.sql, (dims, condition)
        known = self._store.pools.get(key)
        marks = sql.marks(self._store.tenant, dims, condition, embeddings=known is None, salience=salience)
        clock, found = yield Batch((sql.now(), marks), atomic=False)
        now = cast(datetime, clock.rows[0][0]).replace(tzinfo=UTC)
        rows = [row for row in found.rows if row[1] is not None]  # one without a mark was not written by this package
        if known is None:
            pool = Pool.of(dims, [cast(Embedded, (row[0], row[1], row[2])) for row in rows])
        else:
            places = known.places
            new = [cast(str, row[0]) for row in rows if places.get(cast(str, row[0]), (0, None))[1] != row[1]]
            if not new and len(rows) == len(places):
                return known, rows, now
            fresh: list[Embedded] = []
            if new:
                answers = yield Batch(sql.embeddings(self._store.tenant, dims, new), atomic=False)
                fresh = [cast(Embedded, row) for answer in answers for row in answer.rows]
            changed = set(new)
            pool = known.changed(dims, [cast(str, row[0]) for row in rows if row[0] not in changed], fresh)
        self._store.pools.put(key, pool)
        return pool, rows, now
