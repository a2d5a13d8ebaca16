"""Embeddings of one width in memory, ranked exactly: `Matrix`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any, Generic, TypeVar

from ....errors import ConfigError
from .coding import QueryVector, decode_vector, np

#: The key of an embedding. Equal scores are ordered by it.
K = TypeVar("K", bound=Any)

#: The memory of an entry besides its embedding, estimated generously.
OVERHEAD_BYTES = 400

#: The number of embeddings that are compared exactly at a time, to limit memory.
_AT_ONCE = 4_096

#: The number of embeddings that are decoded at a time: so few that the processor's cache holds them.
_DECODED_AT_ONCE = 32

#: The largest relative error of a sum of 32-bit products, for each product: Higham, Accuracy and Stability, 3.1.
_ROUNDING = 6.1e-8

#: A 32-bit product below this may be rounded to 0.
_SMALLEST = 1.2e-38


class Matrix(Generic[K]):
    """Embeddings by key, which are compared with a query all at once.

    Products of 32-bit floats, and their largest error, show which embeddings may be among the best. The scores of these
    are computed exactly.

    Args:
        dims: The width of the embeddings; those of another width are ignored.
    """

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self._keys: list[K] = []
        self._rows: dict[K, int] = {}
        self._values: Any = [] if np is None else np.empty((0, dims), dtype="<f4")
        self._norms: Any = [] if np is None else np.empty(0)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    @property
    def size_bytes(self) -> int:
        """The approximate memory of the matrix."""
        return size_bytes(len(self._keys), self.dims)

    def fill(self, embeddings: Iterable[tuple[K, bytes]], begin: int = 0) -> None:
        """Add embeddings, or replace those of the same keys.

        Args:
            embeddings: Bytes that end with the 32-bit floats.
            begin: The number of bytes before the floats.
        """
        size, rows = begin + 4 * self.dims, self._rows
        fitting: dict[K, bytes] = {}
        for key, raw in embeddings:
            if len(raw) == size:
                fitting[key] = raw
            else:
                self.remove(key)
        new = [key for key in fitting if key not in rows]
        first = len(rows)
        self._grow(first + len(new))
        rows.update(zip(new, range(first, first + len(new)), strict=True))
        self._keys += new
        places: Sequence[int] = [rows[key] for key in fitting] if len(new) < len(fitting) else range(first, len(rows))
        raws = list(fitting.values())
        for start in range(0, len(raws), _DECODED_AT_ONCE):
            self._decode(places[start : start + _DECODED_AT_ONCE], raws[start : start + _DECODED_AT_ONCE], begin)

    def _decode(self, places: Sequence[int], raws: Sequence[bytes], begin: int) -> None:
        """Decode embeddings into some rows."""
        if np is None:
            for place, raw in zip(places, raws, strict=True):
                values = decode_vector(raw[begin:])
                self._values[place], self._norms[place] = values, math.sqrt(math.fsum(map(mul, values, values)))
            return
        shape, strides = (len(raws), self.dims), (begin + 4 * self.dims, 4)
        part = np.ndarray(shape, "<f4", b"".join(raws), begin, strides)
        rows = slice(places.start, places.stop) if isinstance(places, range) else places
        with np.errstate(over="ignore", invalid="ignore"):  # damaged embeddings may contain infinities
            wide = part.astype(np.float64)
            self._values[rows], self._norms[rows] = part, np.sqrt(np.einsum("ij,ij->i", wide, wide))

    def remove(self, key: K) -> None:
        """Remove an embedding, if it exists. The last embedding takes its row."""
        row = self._rows.pop(key, None)
        if row is None:
            return
        last, end = self._keys.pop(), len(self._keys)
        if row != end:
            self._keys[row] = last
            self._rows[last] = row
            self._values[row], self._norms[row] = self._values[end], self._norms[end]
        if np is None:
            self._values.pop()
            self._norms.pop()

    def copy(self) -> Matrix[K]:
        """Return a copy, which can be changed."""
        other: Matrix[K] = Matrix(self.dims)
        other._keys, other._rows = list(self._keys), dict(self._rows)
        other._values, other._norms = self._values.copy(), self._norms.copy()
        return other

    def best(
        self,
        query: QueryVector,
        limit: int,
        factors: Mapping[K, float] | None = None,
        *,
        undefined: float | None = None,
    ) -> list[tuple[K, float]]:
        """Return the best embeddings with their exact scores, best first; equal ones by key.

        Args:
            query: The embedding to compare with.
            limit: The maximum number of embeddings to return.
            factors: Numbers by key, none negative, by which the scores are multiplied; embeddings without one are left
                out. None: 1 for all.
            undefined: The score of embeddings that have none, as the cosine of zeros; None to leave them out.
        """
        rows: Sequence[int] = range(len(self._keys))
        weights = [1.0] * len(rows)
        if factors is not None:
            given = [(self._rows[key], factor) for key, factor in factors.items() if key in self._rows]
            rows, weights = [row for row, _ in given], [weight for _, weight in given]
        if not rows or limit < 1:
            return []
        if len(rows) > limit:
            chosen = self._candidates(query, limit, None if factors is None else rows, weights)
            rows, weights = [rows[index] for index in chosen], [weights[index] for index in chosen]
        scored: list[tuple[K, float]] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            for row, weight, score in zip(some, weights[start:], self._exact(query, some), strict=False):
                if not math.isnan(score):
                    scored.append((self._keys[row], score * weight))
                elif undefined is not None:
                    scored.append((self._keys[row], undefined * weight))
        return sorted(scored, key=lambda one: (-one[1], one[0]))[:limit]

    def _candidates(
        self, query: QueryVector, limit: int, rows: Sequence[int] | None, weights: Sequence[float]
    ) -> list[int]:
        """Return the indexes of rows that may be among the best: the upper bound reaches the lower one of the last.

        Args:
            query: The embedding to compare with.
            limit: The number of embeddings to find, less than there are.
            rows: The rows; None for all.
            weights: Their factors.
        """
        if np is None:
            return self._candidates_in_loops(query, limit, range(len(self._keys)) if rows is None else rows, weights)
        count = len(self._keys)
        with np.errstate(invalid="ignore", over="ignore"):
            products = (self._values[:count] @ query.unit).astype(np.float64)
            norms = self._norms[:count]
            if rows is not None:
                products, norms = products[rows], norms[rows]
            products *= query.norm
            slack, factors = self._slack(query, norms), 1.0 if rows is None else np.asarray(weights)
            upper = query.bounds(products, slack, norms) * factors
            lower = query.bounds(products, -slack, norms) * factors
        # too large for 32 bits, damaged or without a score
        unknown = ~(np.isfinite(products) & np.isfinite(upper) & np.isfinite(lower))
        lower[unknown] = -np.inf
        least = np.partition(lower, len(lower) - limit)[len(lower) - limit]
        chosen: list[int] = np.flatnonzero((upper >= least) | unknown).tolist()
        return chosen

    def _candidates_in_loops(
        self, query: QueryVector, limit: int, rows: Sequence[int], weights: Sequence[float]
    ) -> list[int]:
        """Do the same without NumPy."""
        unit = [value / (query.norm or 1.0) for value in query.values]
        bounds: list[tuple[float, float]] = []
        for row, weight in zip(rows, weights, strict=True):
            product, norm = query.norm * sum(map(mul, unit, self._values[row])), self._norms[row]
            slack = self._slack(query, norm)
            upper = query.bounds(product, slack, norm) * weight
            lower = query.bounds(product, -slack, norm) * weight
            known = math.isfinite(product) and math.isfinite(upper) and math.isfinite(lower)
            bounds.append((lower, upper) if known else (-math.inf, math.inf))
        least = sorted((lower for lower, _ in bounds), reverse=True)[limit - 1]
        return [index for index, (_, upper) in enumerate(bounds) if upper >= least]

    def _exact(self, query: QueryVector, rows: Sequence[int]) -> list[float]:
        if np is None:
            return query.scores_of_floats([self._values[row] for row in rows])
        return query.scores_of_rows(self._values[rows])

    def _slack(self, query: QueryVector, norm: Any) -> Any:
        """Return the largest error of a product by rounding."""
        return query.norm * ((self.dims + 16) * _ROUNDING * norm + self.dims * _SMALLEST)

    def _grow(self, rows: int) -> None:
        if np is None:
            self._values += [None] * (rows - len(self._values))
            self._norms += [0.0] * (rows - len(self._norms))
        elif rows > len(self._values):
            # A first filling fits exactly; later ones leave room for more.
            more = rows if not len(self._values) else max(64, rows + rows // 2)
            values, norms = np.empty((more, self.dims), dtype="<f4"), np.empty(more)
            count = len(self._keys)
            values[:count], norms[:count] = self._values[:count], self._norms[:count]
            self._values, self._norms = values, norms


def size_bytes(count: int, dims: int) -> int:
    """Return the approximate memory of a matrix."""
    return count * (4 * dims + OVERHEAD_BYTES)


def check_cache_bytes(limit: object) -> int:
    """Check the size of a cache of embeddings.

    Raises:
        ConfigError: The size is not a whole number, or is below 0.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise ConfigError(f"vector_cache_bytes must be a whole number of bytes, 0 or more, not {limit!r:.50}.")
    return limit
