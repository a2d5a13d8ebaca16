"""Excludes from counted figures the housekeeping that a random sample of writes does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from locus_mysql.records import ledger


@contextmanager
def without_random_housekeeping() -> Iterator[None]:
    """Disable the housekeeping that only a random sample of writes does."""
    with patch.object(ledger, "one_in", lambda every: every == 1):
        yield
