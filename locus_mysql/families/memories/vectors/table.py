"""The codes of a range of namespaces in memory, ranked by upper bounds of their scores: `CodeTable`.

If the embeddings are few enough to be kept beside their codes, they rank faster and with narrower bounds.
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
from .scoring import QueryVector

#: The path, item key and number of an embedding.
VectorKey: TypeAlias = tuple[bytes, bytes, int]

#: The memory of an entry besides its code and the bytes of its key, estimated generously.
_OVERHEAD_BYTES = 350

#: The number of dimensions that are multiplied at a time, so that their wider copies stay in the processor's cache.
_BLOCK = 524_288

#: The number of codes that are added at a time, to limit memory.
_FILLED_AT_ONCE = 4_096

#: The largest relative error of a sum of 32-bit products, for each product: Higham, Accuracy and Stability, 3.1.
_ROUNDING = 6.1e-8

#: A 32-bit product below this may be rounded to 0.
_SMALLEST = 1.2e-38


class Candidate(NamedTuple):
    """An embedding with bounds of its score.

    Args:
        key: The key.
        bound: The upper bound of the score.
        floor: About the lower bound of the score.
    """

    key: VectorKey
    bound: float
    floor: float


class CodeTable:
    """Codes by key, which are compared with a query all at once.

    Args:
        dims: The width of the embeddings; codes of another width are ignored.
        model: Their model; so are those of another model.

    Attributes:
        others: The number of codes of other models that were ignored.
    """

    def __init__(self, dims: int, model: int = 0) -> None:
        self.dims = dims
        self.others = 0
        self._model = model
        self._keys: list[VectorKey] = []
        self._lent = False
        self._rows: dict[VectorKey, int] = {}
        self._headers: Any = np.empty((3, 0)) if np is not None else []  # a row for each number of the header
        self._codes: Any = np.empty((0, dims), dtype=np.int8) if np is not None else []
        self._floats: Any = None
        self._missing: dict[VectorKey, None] = {}
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def can_keep_embeddings(self) -> bool:
        """Return whether embeddings could be kept and are not. Only NumPy stores them in little memory."""
        return np is not None and self._floats is None

    @property
    def has_all_embeddings(self) -> bool:
        """Return whether all embeddings are kept, so that the order of `ranked` is right except for roundings."""
        return self._floats is not None and not self._missing

    def keep_embeddings(self) -> None:
        """Keep embeddings from now on; see `add_embedding`."""
        self._floats = np.empty(self._codes.shape, dtype="<f4")
        self._missing = dict.fromkeys(self._keys)
        self.size_bytes += 4 * self.dims * len(self._keys)

    def missing_embeddings(self, limit: int) -> list[VectorKey]:
        """Return keys whose embeddings should be kept and are missing: new ones, and those that changed."""
        return list(islice(self._missing, limit))

    def add_embedding(self, key: VectorKey, embedding: bytes) -> None:
        """Keep an embedding, if it is missing. It must be the one that the code was made from."""
        if key in self._missing and len(embedding) == 4 * self.dims:
            self._floats[self._rows[key]] = np.frombuffer(embedding, dtype="<f4")
            del self._missing[key]

    def scores(self, query: QueryVector, keys: Iterable[VectorKey]) -> dict[VectorKey, float]:
        """Return the exact scores of those of these keys whose embeddings are kept; NaN for a damaged one."""
        if self._floats is None:
            return {}
        known = [key for key in keys if key not in self._missing]
        rows = [self._rows[key] for key in known]
        return dict(zip(known, query.scores_of_rows(self._floats[rows]), strict=True)) if known else {}

    def put(self, key: VectorKey, code: bytes) -> None:
        """Add an embedding, or replace its code."""
        if not self._fits(code):
            self.remove(key)
            return
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = len(self._keys)
            self._changing_keys().append(key)
            self.size_bytes += self._bytes_of(key)
        if self._floats is not None:
            self._missing[key] = None
        header = HEADER.unpack_from(code)[:3]
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
        """Add many new embeddings."""
        if np is None or self._floats is not None:
            for key, code in rows:
                self.put(key, code)
            return
        kind = np.dtype([("header", "<f8", (3,)), ("model", "<u4"), ("code", "i1", (self.dims,))])
        rows = [row for row in rows if self._fits(row[1])]
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

    def _fits(self, code: bytes) -> bool:
        """Check whether a code has the width and the model of the table."""
        if len(code) != HEADER.size + self.dims:
            return False
        is_ours: bool = HEADER.unpack_from(code)[3] == self._model
        self.others += not is_ours
        return is_ours

    def remove(self, key: VectorKey) -> None:
        """Remove an embedding, if it exists. The last embedding takes its row."""
        row = self._rows.pop(key, None)
        if row is None:
            return
        self.size_bytes -= self._bytes_of(key)
        self._missing.pop(key, None)
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

    def ranked(self, query: QueryVector) -> Iterator[Candidate]:
        """Return all current embeddings, in falling order of the upper bounds of their scores."""
        self._lent = True  # copying every key would take longer than everything else here
        return _in_order(self._keys, query, *self._compared(query))

    def _changing_keys(self) -> list[VectorKey]:
        """Return the list of keys to change: a copy if `ranked` has lent it."""
        if self._lent:
            self._keys, self._lent = list(self._keys), False
        return self._keys

    def _compared(self, query: QueryVector) -> tuple[Any, Any, Any]:
        """Return of each embedding the approximate inner product with the query, its largest error, and the length."""
        count = len(self._keys)
        if np is None:
            unit = [value / (query.norm or 1.0) for value in query.values]
            scaled = [
                query.norm * header[0] * sum(map(mul, unit, code))
                for header, code in zip(self._headers, self._codes, strict=True)
            ]
            slack = [self._slack(query, error, norm) for _, error, norm in self._headers]
            return scaled, slack, [norm for _, _, norm in self._headers]
        unit = query.unit
        scales, errors, norms = self._headers[:, :count]
        if self.has_all_embeddings:
            with np.errstate(invalid="ignore", over="ignore"):
                products = (self._floats[:count] @ unit).astype(np.float64)
            products *= query.norm
            products[~np.isfinite(products)] = np.inf  # too large for 32 bits, or damaged: the score is unknown
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

    def _slack(self, query: QueryVector, error: Any, norm: Any) -> Any:
        """Return the largest error of a product: that of the code, and that of rounding."""
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


def _in_order(keys: list[VectorKey], query: QueryVector, products: Any, slack: Any, norms: Any) -> Iterator[Candidate]:
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
    """Return a bound; infinity for a damaged code, which has none."""
    return math.inf if math.isnan(bound) else bound


def _parts_in_order(bounds: Any) -> Iterator[Any]:
    """Return all rows in falling order of their bounds, a part at a time, as few are needed. Requires NumPy.

    A part includes all rows that are equal to its last bound, so each row is in exactly one part.
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
