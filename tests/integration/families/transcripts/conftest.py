"""Transcript stores of both sides with one interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ...conftest import EACH_WAY, Opening

Make: TypeAlias = Callable[..., Any]


@pytest.fixture(params=EACH_WAY)
def side(request: pytest.FixtureRequest) -> str:
    """Each driver and side."""
    return str(request.param)


@pytest.fixture
def make_store(opening: Opening, side: str) -> Make:
    """Return ``make_store(**options)``: another store on the test's schema, like that of another process."""
    return partial(opening, side, (TranscriptStore, SyncTranscriptStore))


@pytest.fixture
def store(make_store: Make) -> Any:
    return make_store()
