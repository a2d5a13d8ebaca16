"""Search by embedding: items are ranked in memory, by embeddings that are brought up to date before each search."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from typing import Any, Protocol

from ...engine.operation import Batch, Operation, fetch
from ...errors import InvalidInput
from ...families.memories.vectors.coding import QueryVector, decode_vector, warn_if_numpy_is_missing
from ...families.memories.vectors.matrix import Matrix
from ...lru_cache import CachePart, LRUCache
from . import statements
from .declaration import RecordSeals
from .records import encode_embedding
from .statements import Condition, Filter, MarkRow, Records

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


@dataclass(frozen=True, slots=True)
class KnownEmbeddings:
    """The embeddings of the items that match a filter, as they were last read; never changed.

    Args:
        matrix: The embeddings by the ids of their items.
        marks: Their marks.
        fingerprint: The number of items, and the XOR and the sum of their marks. As marks are random, no other set of
            items has the same.
    """

    matrix: Matrix[str]
    marks: dict[str, int]
    fingerprint: tuple[int, int, int]


class HasEmbeddings(Protocol):
    """Operations with a cache of embeddings."""

    @property
    def embedding_tables(self) -> LRUCache[KnownEmbeddings] | CachePart[KnownEmbeddings]:
        """Embeddings of repeated searches."""


class SearchingOperations:
    """Ranks items by their embeddings.

    Args:
        records: Makes statements about items.
        seals: The seals of items. Those whose embedding or scope does not fit are left out.
        store: Has the embeddings of repeated searches.
    """

    def __init__(self, records: Records, seals: RecordSeals, store: HasEmbeddings) -> None:
        self._records = records
        self._seals = seals
        self._store = store

    def nearest(
        self, query: QueryVector, conditions: Filter, wanted: int, recency_decay_days: float | None = None
    ) -> Operation[list[tuple[str, float]]]:
        """Return the nearest items that match a filter, with their cosines, best first.

        If many embeddings are cached, it is checked first whether any have changed.

        Args:
            query: The embedding to compare with.
            conditions: The filter.
            wanted: The maximum number of items to return.
            recency_decay_days: If given, the cosines are multiplied by memU's factors of salience.
        """
        dims = len(query.values)
        key = dims, conditions
        known, make = self._store.embedding_tables.get(key), self._records.make
        if known is not None and recency_decay_days is None and len(known.marks) >= FINGERPRINTED:
            (found,) = yield from fetch(make(statements.FINGERPRINT, conditions, dims=dims))
            if (found.total, int(found.xor), int(found.sum)) == known.fingerprint:
                return known.matrix.best(query, wanted, undefined=0.0)
        clock, fresh = make(statements.SERVER_TIME), dict[str, tuple[int, bytes]]()
        pieces = statements.NO_SALIENCE if recency_decay_days is None else statements.SALIENCE
        if known is None:
            reading = make(statements.ITEM_EMBEDDINGS, conditions, pieces=pieces, dims=dims)
            results = yield Batch((clock, reading), atomic=False)
            marks, fresh = self._fitting(results.of(reading).rows)
        else:
            listing = make(statements.MARKS, conditions, pieces=pieces, dims=dims)
            results = yield Batch((clock, listing), atomic=False)
            marks = results.rows(listing)
        found_marks = {row.id: row.mark for row in marks if row.mark is not None}  # None: another program wrote the row
        if known is None or known.marks != found_marks:
            if known is not None:
                changed = [id for id, mark in found_marks.items() if known.marks.get(id) != mark]
                fresh = yield from self._read(dims, changed)
            known = _changed(known, dims, found_marks, fresh)
            self._store.embedding_tables.put(key, known, known.matrix.size_bytes)
        factors: dict[str, float] | None = None
        if recency_decay_days is not None:
            ((time,),) = results.rows(clock)
            now, days = time.replace(tzinfo=UTC), min(recency_decay_days, LONGEST_DECAY_DAYS)
            factors = {row.id: salience_factor(row.count_json, row.reinforced_at_json, now, days) for row in marks}
        return known.matrix.best(query, wanted, factors, undefined=0.0)

    def _read(self, dims: int, ids: list[str]) -> Operation[dict[str, tuple[int, bytes]]]:
        """Return the embeddings of some items with their marks."""
        if not ids:
            return {}
        at_once = statements.IDS_PER_STATEMENT
        portions = [(Condition("id", tuple(ids[start : start + at_once])),) for start in range(0, len(ids), at_once)]
        queries = tuple(
            self._records.make(statements.ITEM_EMBEDDINGS, portion, pieces=statements.NO_SALIENCE, dims=dims)
            for portion in portions
        )
        results = yield Batch(queries, atomic=False)
        return self._fitting([row for query in queries for row in results.of(query).rows])[1]

    def _fitting(self, rows: Iterable[Sequence[Any]]) -> tuple[list[MarkRow], dict[str, tuple[int, bytes]]]:
        """Return the marks of the items that fit their seals, and their embeddings with these marks."""
        found = [(MarkRow(id, *rest), embedding) for id, embedding, rest in self._seals.fit_embeddings(rows)]
        embeddings = {row.id: (row.mark, embedding) for row, embedding in found if row.mark is not None}
        return [row for row, _ in found], embeddings


def _changed(
    known: KnownEmbeddings | None, dims: int, marks: dict[str, int], fresh: dict[str, tuple[int, bytes]]
) -> KnownEmbeddings:
    """Return known embeddings with those that were read, without those of other items."""
    old = {} if known is None else known.marks
    kept = {id: mark for id, mark in marks.items() if id not in fresh and old.get(id) == mark}
    matrix: Matrix[str] = Matrix(dims) if known is None else known.matrix.copy()
    for id in old.keys() - kept.keys():
        matrix.remove(id)
    matrix.fill((id, raw) for id, (_, raw) in fresh.items())
    kept |= {id: mark for id, (mark, _) in fresh.items() if id in matrix}
    return KnownEmbeddings(matrix, kept, (len(kept), reduce(xor, kept.values(), 0), sum(kept.values())))


def salience_factor(count: object, last: object, now: datetime, recency_decay_days: float) -> float:
    """Return memU's factor of a similarity: ln(count + 1), times the decay since the last reinforcement.

    Args:
        count: JSON text of ``extra.reinforcement_count``; a value that is not a number counts as 1.
        last: JSON text of ``extra.last_reinforced_at``; for a value that is not a time, the decay is 0.5.
        now: The server's time, in UTC.
        recency_decay_days: The number of days after which the decay is a half.
    """
    times = _json(count)
    if isinstance(times, bool) or not isinstance(times, int | float):
        times = 1
    then = _moment(_json(last))
    decay = 0.5
    if then is not None:
        days = (now - then).total_seconds() / 86_400
        decay = math.exp(min(-0.693 * days / recency_decay_days, 700.0))
    return math.log(max(times, 0) + 1) * decay


def _json(text: object) -> Any:
    return None if text is None else json.loads(str(text))


def _moment(text: object) -> datetime | None:
    """Parse a time as memU writes it; without a time zone, it is in UTC."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
