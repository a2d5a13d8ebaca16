"""Excludes from counted figures the housekeeping that a random sample of writes does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest.mock import patch


@contextmanager
def without_random_housekeeping(operations: ModuleType) -> Iterator[None]:
    """Disable the housekeeping that only a random sample of writes does.

    Args:
        operations: The module whose writes call `one_in`.
    """
    with patch.object(operations, "one_in", lambda one_in: one_in == 1):
        yield
