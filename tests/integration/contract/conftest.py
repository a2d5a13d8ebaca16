"""Fixtures: stores of the family under test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import Encryption

from ...either_side import AnyStore
from ..conftest import MakeConfig
from ..encryption.conftest import RunSQL, columns_with  # noqa: F401 - a fixture
from .samples import Sample
from .tampering import Tampering

#: A driver of tests that do not depend on it.
SIDE = "pymysql-sync"

Open: TypeAlias = Callable[..., AnyStore]


@pytest.fixture(autouse=True)
def with_toys(toy_family: None) -> None:
    """Register the family that exists only in the tests."""


@pytest.fixture
async def open_sample(make_config: MakeConfig, sample: Sample) -> AsyncIterator[Open]:
    """Yield ``open_sample(encryption, side, **options)``: a store of the family."""
    opened: list[AnyStore] = []

    def open_one(encryption: Encryption | None = None, side: str = SIDE, **options: Any) -> AnyStore:
        opened.append(sample.open(make_config(encryption=encryption, compression="none", **options), side))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
def tampering(run_sql: RunSQL, database: str) -> Tampering:
    """Return what changes rows as an attacker with the server's rights would."""
    return Tampering(run_sql, database)
