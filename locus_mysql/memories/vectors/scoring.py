"""How near two embeddings are: `Metric`, and exact scores."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Any, Literal, TypeAlias

from .coding import decode_vector
from .numeric import np

#: ``cosine``: the cosine of the angle, from -1 to 1. ``dot``: the inner product. ``euclidean``: 1 / (1 + distance),
#: from 0 to 1. More is nearer, always.
Metric: TypeAlias = Literal["cosine", "dot", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "dot", "euclidean")


class Query:
    """An embedding that others are compared with.

    Args:
        values: 32-bit floats.
        metric: How near is near.
    """

    def __init__(self, values: array[float], metric: Metric) -> None:
        self.values = values
        self.metric = metric
        if np is not None:
            self._wide = np.array(values, dtype=np.float64)
            self.norm = math.sqrt(self._wide @ self._wide)
        else:
            self.norm = math.sqrt(math.fsum(map(mul, values, values)))

    @property
    def unit(self) -> Any:
        """The same of length 1, as 32-bit floats. With NumPy only."""
        return (self._wide / self.norm).astype(np.float32)

    def scores(self, embeddings: Sequence[bytes]) -> list[float]:
        """The score of each of these embeddings, in 64-bit arithmetic; NaN with one that is damaged or all zeros."""
        if not embeddings:
            return []
        if np is not None:
            return self.scores_of_rows(np.frombuffer(b"".join(embeddings), dtype="<f4").reshape(len(embeddings), -1))
        decoded = [decode_vector(raw) for raw in embeddings]
        products = [sum_of(map(mul, self.values, values)) for values in decoded]
        norms = [math.sqrt(sum_of(map(mul, values, values))) for values in decoded]
        gaps = [math.dist(self.values, values) for values in decoded] if self.metric == "euclidean" else norms
        return self._scored(products, norms, gaps)

    def scores_of_rows(self, matrix: Any) -> list[float]:
        """The same of the rows of a matrix of 32-bit floats. With NumPy only."""
        wide = matrix.astype(np.float64)
        gaps: list[float] = []
        with np.errstate(invalid="ignore"):  # infinities in damaged ones
            products = (wide * self._wide).sum(axis=1).tolist()
            norms = np.sqrt((wide * wide).sum(axis=1)).tolist()
            if self.metric == "euclidean":
                gaps = np.sqrt(((wide - self._wide) ** 2).sum(axis=1)).tolist()
        return self._scored(products, norms, gaps)

    def _scored(self, products: list[float], norms: list[float], gaps: list[float]) -> list[float]:
        sound = [math.isfinite(norm) and norm > 0 for norm in norms]
        if self.metric == "cosine":
            scores = [
                max(-1.0, min(1.0, product / (self.norm * norm))) if whole else math.nan
                for product, norm, whole in zip(products, norms, sound, strict=True)
            ]
        elif self.metric == "dot":
            scores = [float(product) for product in products]
        else:
            scores = [1 / (1 + gap) for gap in gaps]
        return [score if whole else math.nan for score, whole in zip(scores, sound, strict=True)]

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


def sum_of(products: Iterable[float]) -> float:
    """Their exact sum; NaN if there are infinities among them."""
    try:
        return math.fsum(products)
    except (OverflowError, ValueError):
        return math.nan
