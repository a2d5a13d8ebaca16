"""Fixtures of the tests of checkpoint operations."""

from __future__ import annotations

import pytest

from locus_mysql.families.checkpoints import maintenance


@pytest.fixture(autouse=True)
def no_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the random maintenance after a save."""
    monkeypatch.setattr(maintenance, "one_in", lambda one_in: False)
