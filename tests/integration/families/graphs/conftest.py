"""Savers of every driver and side."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import pytest

from locus_mysql import MySQLCheckpointSaver, MySQLConfig, SyncMySQLCheckpointSaver

from ...conftest import ONE_OF_EACH, AnyStore, MakeConfig
from ...proxy import WireProxy

OpenSaver: TypeAlias = Callable[..., AnyStore]


@pytest.fixture
async def open_saver(make_config: MakeConfig) -> AsyncIterator[OpenSaver]:
    """Yield ``open_saver(side, **options)``: a saver in the test's schema, closed after the test.

    If ``config=`` is passed, it is used unchanged except for its driver.
    """
    opened: list[AnyStore] = []

    def open_one(side: str = ONE_OF_EACH[0], config: MySQLConfig | None = None, **options: Any) -> AnyStore:
        driver, _, way = side.rpartition("-")
        if config is None:
            config = make_config(driver=driver, **options)
        else:
            config = config.model_copy(update={"driver": driver, **options})
        saver = AnyStore((MySQLCheckpointSaver if way == "async" else SyncMySQLCheckpointSaver)(config))
        opened.append(saver)
        return saver

    yield open_one
    for saver in opened:
        await saver.close()


@pytest.fixture
def through_proxy(make_config: MakeConfig, proxy: WireProxy) -> MakeConfig:
    """Return ``through_proxy(**options)``: a configuration of the test's schema, reached through the proxy."""

    def make(**options: Any) -> MySQLConfig:
        return make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", **options)

    return make
