"""A pool belongs to an event loop, and can be closed from another one."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any

import pytest
import uvloop

from locus_mysql import CheckpointStore, Database

from ..conftest import MakeConfig


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("driver", ["mysql-connector", "aiomysql", "asyncmy"])
def test_a_pool_of_a_closed_event_loop_is_closed_without_an_error(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, driver: str, loop_factory: Any
) -> None:
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    config = make_config(driver=driver)

    def use() -> None:
        database = Database(config)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(CheckpointStore(database).save("t", {"n": 1}))
        asyncio.run(database.aclose())

    use()
    gc.collect()
    assert [str(one.exc_value) for one in complaints] == []
