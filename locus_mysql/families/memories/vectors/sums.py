"""Sums that are the same to the last bit with and without NumPy, on every processor, and whatever else is summed.

How NumPy adds depends on the shape of what it is given, and a product by BLAS on the number of rows too. So what scores
are made of is added in one fixed order: the second half of the terms to the first, until one is left. Each addition is
one of IEEE 754, and the error is that of pairwise summation, of a dozen roundings or fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Any


def sum_in_halves(terms: Iterable[float]) -> float:
    """The sum of some 64-bit floats, in the fixed order."""
    several = list(terms)
    while (width := len(several)) > 1:
        half = width // 2
        several = [*map(add, several, several[width - half :]), *several[half : width - half]]
    return several[0] if several else 0.0


def sum_columns_in_halves(terms: Any) -> Any:
    """The same of each column of a matrix of NumPy's, which is overwritten; it should be contiguous."""
    while (width := len(terms)) > 1:
        half = width // 2
        terms[:half] += terms[width - half :]
        terms = terms[: width - half]
    return terms[0]
