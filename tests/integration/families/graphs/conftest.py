"""Savers of every driver and side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import MySQLCheckpointSaver, SyncMySQLCheckpointSaver

from ...conftest import ONE_OF_EACH, AnyStore, Opening

OpenSaver: TypeAlias = Callable[..., AnyStore]


@pytest.fixture
def open_saver(opening: Opening) -> OpenSaver:
    """Return ``open_saver(side, **options)``: a saver in the test's schema; see `opening`."""

    def open_one(side: str = ONE_OF_EACH[0], **options: Any) -> AnyStore:
        return opening(side, (MySQLCheckpointSaver, SyncMySQLCheckpointSaver), **options)

    return open_one
