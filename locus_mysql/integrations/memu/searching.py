"""Search by embedding: items are ranked in memory, by embeddings that are brought up to date before each search."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ...dialect.memu.record_filters import RecordFilter
from ...dialect.memu.result_rows import MarkRow
from ...engine.operation import Batch, Operation, fetch
from ...errors import InvalidInput
from ...families.memories.vectors.coding import decode_vector
from ...families.memories.vectors.numeric import warn_if_numpy_is_missing
from ...families.memories.vectors.scoring import QueryVector
from .embeddings import encode_embedding
from .operations import MemuStore
from .ranking import Embedded, EmbeddingTable, nearest, salience_factor

#: From this number of cached embeddings on, a search first checks whether any have changed, and only then which.
FINGERPRINTED = 500

#: The maximum decay; longer ones are replaced by it, as integers may be larger than any float.
LONGEST_DECAY_DAYS = 1e300


def query_of(query_vec: Any) -> QueryVector | None:
    """Return the query of a search by cosine; None for an empty one, to which nothing is near.

    Raises:
        InvalidInput: It is not an embedding.
    """
    if query_vec is None:
        raise InvalidInput("The query must be a list of numbers, not NoneType.")
    raw = encode_embedding(query_vec, "The query")
    if not raw:
        return None
    warn_if_numpy_is_missing()
    return QueryVector(decode_vector(raw), "cosine")


class SearchingOperations:
    """Ranks items by their embeddings.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        self._store = store

    def by_similarity(
        self, query: QueryVector, condition: RecordFilter, wanted: int
    ) -> Operation[list[tuple[str, float]]]:
        """Return the nearest items that match a filter, with their cosines, best first."""
        table = yield from self._known(len(query.values), condition)
        return nearest(query, table, None, wanted)

    def by_salience(
        self, query: QueryVector, condition: RecordFilter, wanted: int, recency_decay_days: float
    ) -> Operation[list[tuple[str, float]]]:
        """Return the most salient items that match a filter, with their scores, best first."""
        table, rows, now = yield from self._table(len(query.values), condition, salience=True)
        days = min(recency_decay_days, LONGEST_DECAY_DAYS)
        factors = {row.id: salience_factor(row.count_json, row.reinforced_at_json, now, days) for row in rows}
        return nearest(query, table, factors, wanted)

    def _known(self, dims: int, condition: RecordFilter) -> Operation[EmbeddingTable]:
        """Return the embeddings that match a filter. If many are cached, check first whether any have changed."""
        known = self._store.embedding_tables.get((dims, condition))
        if known is not None and len(known.ids) >= FINGERPRINTED:
            (found,) = yield from fetch(self._store.sql.fingerprint(self._store.tenant, dims, condition))
            if (found.total, int(found.xor), int(found.sum)) == known.fingerprint:
                return known
        table, _, _ = yield from self._table(dims, condition, salience=False)
        return table

    def _table(
        self, dims: int, condition: RecordFilter, *, salience: bool
    ) -> Operation[tuple[EmbeddingTable, Sequence[MarkRow], datetime]]:
        """Return the embeddings that match a filter, the rows with their marks, and the server's time."""
        sql, key = self._store.sql, (dims, condition)
        known = self._store.embedding_tables.get(key)
        marks = sql.marks(self._store.tenant, dims, condition, embeddings=known is None, salience=salience)
        clock = sql.now()
        results = yield Batch((clock, marks), atomic=False)
        ((time,),) = results.rows(clock)
        now = time.replace(tzinfo=UTC)
        rows = [row for row in results.rows(marks) if row.mark is not None]  # None: another program wrote the row
        if known is None:
            table = EmbeddingTable.of(
                dims,
                [(id, mark, raw) for id, mark, raw, *_ in rows if mark is not None and raw is not None],
            )
        else:
            indexes = known.indexes
            new = [row.id for row in rows if indexes.get(row.id, (0, None))[1] != row.mark]
            if not new and len(rows) == len(indexes):
                return known, rows, now
            fresh: list[Embedded] = []
            if new:
                queries = sql.embeddings(self._store.tenant, dims, new)
                results = yield Batch(queries, atomic=False)
                fresh = [(row.id, row.mark, row.embedding) for query in queries for row in results.rows(query)]
            changed = set(new)
            table = known.changed(dims, [row.id for row in rows if row.id not in changed], fresh)
        self._store.embedding_tables.put(key, table, table.size_bytes)
        return table, rows, now
