"""Embeddings encoded in full and as a bit per dimension (signs), and their scores; NumPy, if it is installed."""

from __future__ import annotations

import hashlib
import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import tee
from operator import add, mul, sub
from typing import Any, Literal, NamedTuple, TypeAlias

from ....engine.logs import CALLS
from ....errors import InvalidInput
from ....extras import install_command

np: Any
try:
    import numpy as np
except ImportError:  # pragma: no cover - depends on what is installed
    np = None

_warned: set[str] = set()

#: The signs of an embedding take at most 2,048 bytes. MySQL's VECTOR type has the same limit.
DIMENSIONS_LIMIT = 16_383

#: Types of NumPy arrays that are converted at once.
_FLOATS = () if np is None else (np.dtype(np.float32), np.dtype(np.float64))

#: The end of the error about an embedding of zeros.
NO_DIRECTION = "is all zeros (as 32-bit floats): it has no direction to be compared by."


class Coded(NamedTuple):
    """An embedding in each of its forms.

    Args:
        embedding: 32-bit floats, little-endian.
        sig: A bit per dimension; that of the first dimension is the highest of the first byte.
        model: The model; see `model_number`.
    """

    embedding: bytes
    sig: bytes
    model: int = 0

    @property
    def is_zero(self) -> bool:
        """Whether all numbers are zero."""
        return not any(decode_vector(self.embedding))


def model_number(name: str) -> int:
    """Return the number that stands for a model beside its embeddings: a digest of its name; 0 for an unnamed one."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) if name else 0


def encode_vector(vector: Any, dims: int | None, what: str = "The embedding", *, model: int = 0) -> Coded:
    """Encode an embedding.

    Args:
        vector: Numbers: a list, an array of any kind, or a NumPy array of one dimension.
        dims: The width that the embedding must have; any width if None.
        what: The name of the embedding in errors.
        model: The model that computed it.

    Raises:
        InvalidInput: The embedding has another width, or contains NaN or an infinity, as 32-bit floats.
    """
    values = finite_floats(vector, dims, what)
    return Coded(encode_floats(values), signs_of(values), model)


def floats_of(vector: Any, dims: int | None, what: str = "The embedding") -> array[float]:
    """Return an embedding as 32-bit floats. Raises as `encode_vector` does, and if all of them are zeros."""
    values = finite_floats(vector, dims, what)
    if not any(values):
        raise InvalidInput(f"{what} {NO_DIRECTION}")
    return values


def finite_floats(vector: Any, dims: int | None, what: str = "The embedding") -> array[float]:
    """Return an embedding, which may be all zeros, as 32-bit floats."""
    if np is not None and isinstance(vector, np.ndarray) and vector.dtype in _FLOATS and vector.ndim == 1:
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        values, finite = array("f", narrow.tobytes()), bool(np.isfinite(narrow).all())
        return _checked(values, dims, what, finite=finite)
    if isinstance(vector, str | bytes) or not isinstance(vector, Iterable):
        raise InvalidInput(f"{what} must be a list of numbers, not {type(vector).__name__}.")
    try:
        values = array("f", vector)
    except OverflowError:
        raise InvalidInput(f"{what} holds a number that a 32-bit float cannot hold.") from None
    except (TypeError, ValueError):
        raise InvalidInput(f"{what} contains a value that is not a number.") from None
    return _checked(values, dims, what, finite=all(map(math.isfinite, values)))


def _checked(values: array[float], dims: int | None, what: str, *, finite: bool) -> array[float]:
    if dims is not None and len(values) != dims:
        raise InvalidInput(f"{what} has {len(values)} dimensions; the store's have {dims} (dims).")
    if not 1 <= len(values) <= DIMENSIONS_LIMIT:
        raise InvalidInput(f"{what} has {len(values)} dimensions; it may have 1 to {DIMENSIONS_LIMIT}.")
    if not finite:
        raise InvalidInput(f"{what} holds NaN or an infinity (as a 32-bit float).")
    return values


def decode_vector(raw: bytes) -> array[float]:
    """Return the 32-bit floats of a stored embedding."""
    values = array("f", raw)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def signs_of(values: array[float]) -> bytes:
    """Return a bit per dimension: whether it is above zero."""
    bits = "".join("1" if value > 0 else "0" for value in values)
    width = -(-len(bits) // 8)
    return int(bits.ljust(8 * width, "0"), 2).to_bytes(width)


def encode_floats(values: array[float]) -> bytes:
    """Return 32-bit floats as they are stored."""
    if sys.byteorder == "little":
        return values.tobytes()
    swapped = array("f", values)
    swapped.byteswap()
    return swapped.tobytes()


def warn_if_numpy_is_missing() -> None:
    """Log once that searches are slower without NumPy."""
    if np is None and not _warned:
        _warned.add("slow")
        CALLS.warning(
            "NumPy is not installed: searches by meaning give the same results, but more slowly. Run %s.",
            install_command("vectors"),
        )


#: ``cosine``: the cosine of the angle, from -1 to 1. ``dot``: the inner product. ``euclidean``: 1 / (1 + distance),
#: from 0 to 1. A higher score is always nearer.
Metric: TypeAlias = Literal["cosine", "dot", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "dot", "euclidean")


class QueryVector:
    """The embedding of a query, with which others are compared.

    A score depends on the two embeddings only, to the last bit: it is the same with and without NumPy, on every
    processor, and whatever else is compared in the same call. So equal embeddings have equal scores.

    Args:
        values: 32-bit floats.
        metric: How embeddings are compared.
    """

    def __init__(self, values: array[float], metric: Metric) -> None:
        self.values = values
        self.metric = metric
        if np is not None:
            self._wide = np.array(values, dtype=np.float64)
            self._square = float(sum_columns_in_halves(self._wide * self._wide))
        else:
            self._square = sum_in_halves(map(mul, values, values))
        self.norm = math.sqrt(self._square)

    @property
    def unit(self) -> Any:
        """The embedding scaled to length 1, as 32-bit floats. Requires NumPy."""
        return (self._wide / (self.norm or 1.0)).astype(np.float32)

    def scores(self, embeddings: Sequence[bytes]) -> list[float]:
        """Return the scores of embeddings; NaN for one that is damaged, or that has no cosine, as it is all zeros.

        The cosine is the inner product divided by the root of the product of both squares: exactly 1 for the query
        itself.
        """
        if not embeddings:
            return []
        if np is not None:
            return self.scores_of_rows(np.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(embeddings), -1))
        return self.scores_of_floats([decode_vector(raw) for raw in embeddings])

    def scores_of_floats(self, decoded: Sequence[array[float]]) -> list[float]:
        """Return the scores of embeddings, without NumPy."""
        squares: list[float] = []
        if self.metric == "euclidean":
            gaps = [map(sub, values, self.values) for values in decoded]
            sums = [sum_in_halves(map(mul, *tee(gap))) for gap in gaps]
        else:
            sums = [sum_in_halves(map(mul, values, self.values)) for values in decoded]
            if self.metric == "cosine":
                squares = [sum_in_halves(map(mul, values, values)) for values in decoded]
        return self._scored(sums, squares)

    def scores_of_rows(self, matrix: Any) -> list[float]:
        """Return the scores of the rows of a matrix of 32-bit floats. Requires NumPy."""
        count, own = len(matrix), self._wide[:, np.newaxis]
        wide = matrix.T.astype(np.float64, order="C")
        columns = np.empty((len(wide), 2 * count if self.metric == "cosine" else count))
        with np.errstate(invalid="ignore"):  # damaged embeddings may contain infinities
            if self.metric == "euclidean":
                np.subtract(wide, own, out=columns)
                np.multiply(columns, columns, out=columns)
            else:
                np.multiply(wide, own, out=columns[:, :count])
                if self.metric == "cosine":
                    np.multiply(wide, wide, out=columns[:, count:])
            sums = sum_columns_in_halves(columns).tolist()
        return self._scored(sums[:count], sums[count:])

    def _scored(self, sums: list[float], squares: list[float]) -> list[float]:
        """Return the scores for inner products, or for squares of distances.

        Args:
            sums: The products, or squares of distances.
            squares: The squares of the lengths, for the cosine.
        """
        scores = [math.nan] * len(sums)
        for index, total in enumerate(sums):
            if not math.isfinite(total):
                continue
            if self.metric == "cosine":
                length = math.sqrt(self._square * squares[index])
                scores[index] = max(-1.0, min(1.0, total / length)) if length else math.nan
            else:
                scores[index] = total if self.metric == "dot" else 1 / (1 + math.sqrt(total))
        return scores

    def bounds(self, products: Any, slack: Any, norms: Any) -> Any:
        """Return upper bounds of scores.

        Args:
            products: Approximate inner products with the query. Numbers or NumPy arrays, like the other arguments.
            slack: The largest errors of the products.
            norms: The lengths of the embeddings.
        """
        above = products + slack
        if self.metric == "dot":
            return above
        if self.metric == "cosine":
            if np is None:
                return above / (self.norm * norms) if norms else math.nan
            with np.errstate(invalid="ignore", divide="ignore"):  # embeddings of zeros have no cosine
                return above / (self.norm * norms)
        squares = self.norm**2 + norms * norms
        gap = squares - 2 * above - 1e-9 * squares
        root = np.sqrt(np.maximum(gap, 0.0)) if np is not None else math.sqrt(max(gap, 0.0))
        return 1 / (1 + root)


def sum_in_halves(terms: Iterable[float]) -> float:
    """Return the sum of 64-bit floats: the same to the last bit with and without NumPy, on every processor.

    The order in which NumPy adds depends on the shape of the array, and that of a BLAS product also on the number of
    rows. So terms are added in one fixed order: the second half of them to the first, until one is left. Each addition
    is one of IEEE 754, and the error is that of pairwise summation, at most a dozen roundings.
    """
    several = list(terms)
    while (width := len(several)) > 1:
        half = width // 2
        several = [*map(add, several, several[width - half :]), *several[half : width - half]]
    return several[0] if several else 0.0


def sum_columns_in_halves(terms: Any) -> Any:
    """Return the sums of a NumPy matrix's columns in the same order. The matrix is overwritten; best contiguous."""
    while (width := len(terms)) > 1:
        half = width // 2
        terms[:half] += terms[width - half :]
        terms = terms[: width - half]
    return terms[0]
