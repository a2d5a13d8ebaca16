"""How near two embeddings are: `Metric`, and exact scores."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import tee
from operator import mul, sub
from typing import Any, Literal, TypeAlias

from .coding import decode_vector
from .numeric import np
from .sums import sum_columns_in_halves, sum_in_halves

#: ``cosine``: the cosine of the angle, from -1 to 1. ``dot``: the inner product. ``euclidean``: 1 / (1 + distance),
#: from 0 to 1. More is nearer, always.
Metric: TypeAlias = Literal["cosine", "dot", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "dot", "euclidean")


class Query:
    """An embedding that others are compared with.

    A score depends on the two embeddings alone, to the last bit: it is the same with and without NumPy, on every
    processor, and whatever else is compared in the same call. So equal embeddings have equal scores.

    Args:
        values: 32-bit floats.
        metric: How near is near.
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
        """The same of length 1, as 32-bit floats. With NumPy only."""
        return (self._wide / self.norm).astype(np.float32)

    def scores(self, embeddings: Sequence[bytes]) -> list[float]:
        """The score of each of these embeddings; NaN with one that is damaged or all zeros.

        The cosine is the product by the root of the product of both squares: exactly 1 with the query itself.
        """
        if not embeddings:
            return []
        if np is not None:
            return self.scores_of_rows(np.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(embeddings), -1))
        decoded = [decode_vector(raw) for raw in embeddings]
        squares: list[float] = []
        if self.metric == "euclidean":
            gaps = [map(sub, values, self.values) for values in decoded]
            sums = [sum_in_halves(map(mul, *tee(gap))) for gap in gaps]
        else:
            sums = [sum_in_halves(map(mul, values, self.values)) for values in decoded]
            if self.metric == "cosine":
                squares = [sum_in_halves(map(mul, values, values)) for values in decoded]
        return self._scored(sums, squares or [float(any(values)) for values in decoded])

    def scores_of_rows(self, matrix: Any) -> list[float]:
        """The same of the rows of a matrix of 32-bit floats. With NumPy only."""
        count, own = len(matrix), self._wide[:, np.newaxis]
        wide = matrix.T.astype(np.float64, order="C")
        columns = np.empty((len(wide), 2 * count if self.metric == "cosine" else count))
        with np.errstate(invalid="ignore"):  # infinities in damaged ones
            if self.metric == "euclidean":
                np.subtract(wide, own, out=columns)
                np.multiply(columns, columns, out=columns)
            else:
                np.multiply(wide, own, out=columns[:, :count])
                if self.metric == "cosine":
                    np.multiply(wide, wide, out=columns[:, count:])
            sums = sum_columns_in_halves(columns).tolist()
        return self._scored(sums[:count], sums[count:] or wide.any(axis=0).tolist())

    def _scored(self, sums: list[float], squares: list[float]) -> list[float]:
        """Scores of products, or of squares of distances.

        Args:
            sums: These.
            squares: For cosines the squares of the lengths, else any numbers that are 0 where these are.
        """
        scores = [math.nan] * len(sums)
        for place, (total, square) in enumerate(zip(sums, squares, strict=True)):
            if not square or not math.isfinite(total):
                continue
            if self.metric == "cosine":
                length = math.sqrt(self._square * square)
                scores[place] = max(-1.0, min(1.0, total / length)) if length else math.nan
            else:
                scores[place] = total if self.metric == "dot" else 1 / (1 + math.sqrt(total))
        return scores

    def bounds(self, products: Any, slack: Any, norms: Any) -> Any:
        """No score is above its bound.

        Args:
            products: About the inner products with the query; numbers, or NumPy arrays of them, like the others.
            slack: By how much they may be wrong.
            norms: The lengths of the embeddings.
        """
        above = products + slack
        if self.metric == "dot":
            return above
        if self.metric == "cosine":
            return above / (self.norm * norms)
        squares = self.norm**2 + norms * norms
        gap = squares - 2 * above - 1e-9 * squares
        root = np.sqrt(np.maximum(gap, 0.0)) if np is not None else math.sqrt(max(gap, 0.0))
        return 1 / (1 + root)
