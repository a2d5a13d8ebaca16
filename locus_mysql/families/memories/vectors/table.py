"""The codes of a range of namespaces in memory, and which of them may be nearest: `CodeTable`.

Where embeddings are few enough to be kept beside their codes, these tell it, in less time and more narrowly.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import mul
from typing import Any, NamedTuple, TypeAlias

from .coding import HEADER
from .numeric import np
from .scoring import Query

#: Path, key and place of an embedding.
VectorKey: TypeAlias = tuple[bytes, bytes, int]

#: What an entry takes beside its code and its key's bytes, counted generously.
_OVERHEAD_BYTES = 350

#: So many dimensions are multiplied at a time, so that their wider copies stay in a processor's cache.
_BLOCK = 524_288

#: So many are added at a time, so that their bytes stay few.
_FILLED_AT_ONCE = 4_096

#: How far a sum of 32-bit products may be off, for each product: Higham, Accuracy and Stability, 3.1.
_ROUNDING = 6.1e-8

#: A 32-bit product below this may be rounded to 0.
_SMALLEST = 1.2e-38


class Candidate(NamedTuple):
    """An embedding by what its code tells of it.

    Args:
        key: Its key.
        bound: Its score is at most this.
        floor: And about this at least.
    """

    key: VectorKey
    bound: float
    floor: float


class CodeTable:
    """Codes by their keys, to be compared with a query all at once.

    Args:
        dims: The width of the embeddings; codes of others are passed over.
    """

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self._keys: list[VectorKey] = []
        self._lent = False
        self._rows: dict[VectorKey, int] = {}
        self._headers: Any = np.empty((3, 0)) if np is not None else []  # a row for each number of a header
        self._codes: Any = np.empty((0, dims), dtype=np.int8) if np is not None else []
        self._floats: Any = None
        self._lacking: dict[VectorKey, None] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def could_keep_embeddings(self) -> bool:
        """Whether embeddings could be kept and are not. Only NumPy holds them in little memory."""
        return np is not None and self._floats is None

    @property
    def knows_all(self) -> bool:
        """Whether all embeddings are at hand, so that `best` tells their order but for roundings."""
        return self._floats is not None and not self._lacking

    def keep_embeddings(self) -> None:
        """Keep embeddings from now on, as they become known."""
        self._floats = np.empty(self._codes.shape, dtype="<f4")
        self._lacking = dict.fromkeys(self._keys)
        self.size_bytes += 4 * self.dims * len(self._keys)

    def lacking(self, limit: int) -> list[VectorKey]:
        """Some whose embeddings shall be kept and are not known: new ones, and those that changed."""
        return list(islice(self._lacking, limit))

    def know(self, key: VectorKey, embedding: bytes) -> None:
        """Keep an embedding, if it is wanted. It must be the one that the code was made of."""
        if key in self._lacking and len(embedding) == 4 * self.dims:
            self._floats[self._rows[key]] = np.frombuffer(embedding, dtype="<f4")
            del self._lacking[key]

    def scores(self, query: Query, keys: Iterable[VectorKey]) -> dict[VectorKey, float]:
        """The exact scores of those of these keys whose embeddings are known; NaN of one that is damaged."""
        if self._floats is None:
            return {}
        known = [key for key in keys if key not in self._lacking]
        rows = [self._rows[key] for key in known]
        return dict(zip(known, query.scores_of_rows(self._floats[rows]), strict=True)) if known else {}

    def put(self, key: VectorKey, code: bytes) -> None:
        """Add an embedding, or give it another code."""
        if len(code) != HEADER.size + self.dims:
            self.remove(key)
            return
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = len(self._keys)
            self._changing_keys().append(key)
            self.size_bytes += self._bytes_of(key)
        if self._floats is not None:
            self._lacking[key] = None
        header = HEADER.unpack_from(code)
        if np is None:
            values = array("b", code[HEADER.size :])
            if row == len(self._codes):
                self._headers.append(header)
                self._codes.append(values)
            else:
                self._headers[row], self._codes[row] = header, values
            return
        if row >= len(self._codes):
            self._grow(max(64, 2 * row))
        self._headers[:, row] = header
        self._codes[row] = np.frombuffer(code, dtype=np.int8, offset=HEADER.size)

    def fill(self, rows: Sequence[tuple[VectorKey, bytes]]) -> None:
        """Add many embeddings that are not there yet."""
        if np is None or self._floats is not None:
            for key, code in rows:
                self.put(key, code)
            return
        width = HEADER.size + self.dims
        kind = np.dtype([("header", "<f8", (3,)), ("code", "i1", (self.dims,))])
        rows = [row for row in rows if len(row[1]) == width]
        self._grow(len(self._keys) + len(rows))
        for begin in range(0, len(rows), _FILLED_AT_ONCE):
            some = rows[begin : begin + _FILLED_AT_ONCE]
            start, end = len(self._keys), len(self._keys) + len(some)
            coded = np.frombuffer(b"".join([code for _, code in some]), dtype=kind)
            self._headers[:, start:end], self._codes[start:end] = coded["header"].T, coded["code"]
            keys = [key for key, _ in some]
            self._changing_keys().extend(keys)
            self._rows.update(zip(keys, range(start, end), strict=True))
            self.size_bytes += sum(map(self._bytes_of, keys))

    def remove(self, key: VectorKey) -> None:
        """Remove an embedding if it is there. The last one takes its row."""
        row = self._rows.pop(key, None)
        if row is None:
            return
        self.size_bytes -= self._bytes_of(key)
        self._lacking.pop(key, None)
        last = self._changing_keys().pop()
        end = len(self._keys)
        if row != end:
            self._keys[row] = last
            self._rows[last] = row
            if np is None:
                self._headers[row] = self._headers[end]
            else:
                self._headers[:, row] = self._headers[:, end]
            self._codes[row] = self._codes[end]
            if self._floats is not None:
                self._floats[row] = self._floats[end]
        if np is None:
            self._headers.pop()
            self._codes.pop()

    def remove_path(self, path: bytes) -> None:
        """Remove all embeddings of a namespace."""
        for key in [key for key in self._keys if key[0] == path]:
            self.remove(key)

    def best(self, query: Query) -> Iterator[Candidate]:
        """All embeddings as they are now, in falling order of what their scores are at most."""
        self._lent = True  # a copy would take longer than all else here: it touches every key
        return _in_order(self._keys, query, *self._compared(query))

    def _changing_keys(self) -> list[VectorKey]:
        """The list of keys, to be changed: a new one if `best` has lent it."""
        if self._lent:
            self._keys, self._lent = list(self._keys), False
        return self._keys

    def _compared(self, query: Query) -> tuple[Any, Any, Any]:
        """Of each embedding about its product with the query's, by how much that may be wrong, and its length."""
        count = len(self._keys)
        if np is None:
            unit = [value / query.norm for value in query.values]
            scaled = [
                query.norm * header[0] * sum(map(mul, unit, code))
                for header, code in zip(self._headers, self._codes, strict=True)
            ]
            slack = [self._slack(query, error, norm) for _, error, norm in self._headers]
            return scaled, slack, [norm for _, _, norm in self._headers]
        unit = query.unit
        scales, errors, norms = self._headers[:, :count]
        if self.knows_all:
            with np.errstate(invalid="ignore", over="ignore"):
                products = (self._floats[:count] @ unit).astype(np.float64)
            products *= query.norm
            products[~np.isfinite(products)] = np.inf  # too large for 32 bits, or damaged: it may be anything
            return products, self._slack(query, self.dims * _SMALLEST, norms), norms
        products = np.empty(count, dtype=np.float64)
        rows = max(1, _BLOCK // self.dims)
        wide = np.empty((min(rows, count), self.dims), dtype=np.float32)
        for start in range(0, count, rows):
            end = min(count, start + rows)
            np.copyto(wide[: end - start], self._codes[start:end])
            products[start:end] = wide[: end - start] @ unit
        products *= scales * query.norm
        return products, self._slack(query, errors, norms), norms

    def _slack(self, query: Query, error: Any, norm: Any) -> Any:
        """By how much a product may be wrong: the code's error, and the rounding of sums."""
        return query.norm * (error + (self.dims + 16) * _ROUNDING * (norm + error))

    def _grow(self, rows: int) -> None:
        if rows <= len(self._codes):
            return
        headers, codes = np.empty((3, rows)), np.empty((rows, self.dims), dtype=np.int8)
        count = len(self._codes)
        headers[:, :count], codes[:count] = self._headers, self._codes
        self._headers, self._codes = headers, codes
        if self._floats is not None:
            floats = np.empty((rows, self.dims), dtype="<f4")
            floats[:count] = self._floats
            self._floats = floats

    def _bytes_of(self, key: VectorKey) -> int:
        width = self.dims if self._floats is None else 5 * self.dims
        return _OVERHEAD_BYTES + width + len(key[0]) + len(key[1])


def _in_order(keys: list[VectorKey], query: Query, products: Any, slack: Any, norms: Any) -> Iterator[Candidate]:
    if np is None:
        bounds = [_sure(query.bounds(*one)) for one in zip(products, slack, norms, strict=True)]
        for row in sorted(range(len(bounds)), key=lambda row: -bounds[row]):
            yield Candidate(keys[row], bounds[row], query.bounds(products[row], -slack[row], norms[row]))
        return
    bounds = query.bounds(products, slack, norms)
    bounds[np.isnan(bounds)] = np.inf
    for order in _parts_in_order(bounds):
        floors = query.bounds(products[order], -slack[order], norms[order])
        for row, bound, floor in zip(order.tolist(), bounds[order].tolist(), floors.tolist(), strict=True):
            yield Candidate(keys[row], bound, floor)


def _sure(bound: float) -> float:
    """A bound; of a damaged code, which has none, infinity."""
    return math.inf if math.isnan(bound) else bound


def _parts_in_order(bounds: Any) -> Iterator[Any]:
    """All rows in falling order of their bounds, a part at a time, as few are asked for. With NumPy only.

    A part ends behind all that are equal to its last bound, so none is in two parts or in none.
    """
    count, size = len(bounds), 64
    rest, above = count, None
    while rest:
        if size < count:
            least = np.partition(bounds, count - size)[count - size]
            chosen = bounds >= least if above is None else (bounds >= least) & (bounds < above)
        else:
            least, chosen = -np.inf, np.ones(count, dtype=bool) if above is None else bounds < above
        part = np.flatnonzero(chosen)
        yield part[np.argsort(-bounds[part], kind="stable")]
        rest, above, size = rest - len(part), least, 16 * size
