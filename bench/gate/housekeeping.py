"""Figures that are counted leave out what one write in many, by chance, does for others as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch


@contextmanager
def no_luck(operations: ModuleType) -> Iterator[None]:
    """Have no write do housekeeping, unless every one does.

    Args:
        operations: The module whose writes ask `one_in`.
    """
    with patch.object(operations, "one_in", lambda one_in: one_in == 1):
        yield
