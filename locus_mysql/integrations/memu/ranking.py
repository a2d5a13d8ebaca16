"""Exact ranking of embeddings in memory: `EmbeddingTable` and `nearest`. Does no I/O."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from typing import Any, TypeAlias

from ...families.memories.vectors.numeric import np
from ...families.memories.vectors.scoring import QueryVector

#: The approximate memory of an item besides its embedding, in bytes.
OVERHEAD_BYTES = 200

#: The largest error of a product of 32-bit floats for each dimension, relative to the lengths of both vectors.
_ERROR_PER_DIMENSION = 2.0**-23

#: For embeddings shorter than this, products of 32-bit floats may underflow.
_SHORT = 1e-30

#: The id, mark and embedding of an item.
Embedded: TypeAlias = tuple[str, int, bytes]


@dataclass(frozen=True, slots=True)
class EmbeddingTable:
    """Embeddings of one width.

    Args:
        ids: The ids of the items, by index.
        indexes: The index of each item by its id, with the mark of its embedding.
        embeddings: The stored embeddings, by index; empty with NumPy.
        fingerprint: The number of items, and the XOR and the sum of their marks. As marks are random, no other set of
            items has the same.
        matrix: The embeddings as a NumPy array; None without NumPy.
        norms: The lengths of the embeddings; None without NumPy.
    """

    ids: Sequence[str]
    indexes: Mapping[str, tuple[int, int]]
    embeddings: Sequence[bytes]
    fingerprint: tuple[int, int, int]
    matrix: Any = None
    norms: Any = None

    @classmethod
    def of(cls, dims: int, found: Sequence[Embedded]) -> EmbeddingTable:
        """Return a table of these embeddings, without damaged ones."""
        found = [one for one in found if len(one[2]) == 4 * dims]
        ids = [id for id, _, _ in found]
        indexes = {id: (index, mark) for index, (id, mark, _) in enumerate(found)}
        embeddings = [raw for _, _, raw in found]
        fingerprint = _fingerprint(mark for _, mark, _ in found)
        if np is None:
            return cls(ids, indexes, embeddings, fingerprint)
        matrix = np.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(found), dims)
        return cls(
            ids, indexes, (), fingerprint, matrix, np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        )

    def changed(self, dims: int, kept: Sequence[str], fresh: Sequence[Embedded]) -> EmbeddingTable:
        """Return a table of some items of this one, and of new ones."""
        more = EmbeddingTable.of(dims, fresh)
        ids = [*kept, *more.ids]
        marks = (*(self.indexes[id][1] for id in kept), *(mark for _, mark in more.indexes.values()))
        indexes = {id: (index, mark) for index, (id, mark) in enumerate(zip(ids, marks, strict=True))}
        fingerprint = _fingerprint(marks)
        old = [self.indexes[id][0] for id in kept]
        if self.matrix is None:
            embeddings = [*(self.embeddings[index] for index in old), *more.embeddings]
            return EmbeddingTable(ids, indexes, embeddings, fingerprint)
        return EmbeddingTable(
            ids,
            indexes,
            (),
            fingerprint,
            np.concatenate([self.matrix[old], more.matrix]),
            np.concatenate([self.norms[old], more.norms]),
        )

    def raw(self, index: int) -> bytes:
        """Return the embedding at an index."""
        if self.matrix is None:
            return self.embeddings[index]
        raw: bytes = self.matrix[index].tobytes()
        return raw

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the table, in bytes."""
        held = sum(map(len, self.embeddings)) if self.matrix is None else self.matrix.nbytes
        return int(held) + OVERHEAD_BYTES * len(self.indexes)


def nearest(
    query: QueryVector, table: EmbeddingTable, factors: Mapping[str, float] | None, wanted: int
) -> list[tuple[str, float]]:
    """Return the items with the highest products of cosine and factor, best first; equal ones by id.

    Args:
        query: The embedding to compare with.
        table: The items.
        factors: The factors of the items by id, none negative; items without a factor are left out. None: 1 for all.
        wanted: The maximum number of items to return.
    """
    if factors is None:
        indexes, weights = list(range(len(table.ids))), [1.0] * len(table.ids)
    else:
        known = [id for id in factors if id in table.indexes]
        indexes, weights = [table.indexes[id][0] for id in known], [factors[id] for id in known]
    if not indexes or wanted < 1:
        return []
    if table.matrix is not None and len(indexes) > wanted:
        chosen = _candidates(query, table, indexes, weights, wanted)
        indexes, weights = [indexes[index] for index in chosen], [weights[index] for index in chosen]
    cosines = _cosines(query, [table.raw(index) for index in indexes])
    scores = [
        (table.ids[index], cosine * weight) for index, cosine, weight in zip(indexes, cosines, weights, strict=True)
    ]
    return sorted(scores, key=lambda found: (-found[1], found[0]))[:wanted]


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


def _candidates(
    query: QueryVector, table: EmbeddingTable, chosen: list[int], factors: list[float], wanted: int
) -> list[int]:
    """Return all items that may be among the best, by products of 32-bit floats and their maximum error."""
    indexes, weights = np.asarray(chosen), np.asarray(factors)
    unit = (np.asarray(query.values, dtype=np.float64) / (query.norm or 1.0)).astype(np.float32)
    lengths = table.norms[indexes]
    with np.errstate(over="ignore", invalid="ignore"):  # candidates whose length overflows 32-bit floats are kept
        products = (table.matrix @ unit)[indexes].astype(np.float64)
        scores = np.divide(products, lengths, out=np.zeros(len(chosen)), where=lengths > 0) * weights
    slack = _ERROR_PER_DIMENSION * (len(unit) + 8) * weights + 1e-300
    unknown = ~np.isfinite(scores) | (lengths < _SHORT)
    least = np.partition(np.where(unknown, -np.inf, scores - slack), len(chosen) - wanted)[len(chosen) - wanted]
    kept: list[int] = np.flatnonzero((scores + slack >= least) | unknown).tolist()
    return kept


def _cosines(query: QueryVector, embeddings: Sequence[bytes]) -> list[float]:
    """Return exact cosines; zero if the embedding or the query is all zeros."""
    cosines = query.scores(embeddings) if query.norm else [0.0] * len(embeddings)
    return [cosine if math.isfinite(cosine) else 0.0 for cosine in cosines]


def _fingerprint(marks: Iterable[int]) -> tuple[int, int, int]:
    all_marks = list(marks)
    return len(all_marks), reduce(xor, all_marks, 0), sum(all_marks)


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
