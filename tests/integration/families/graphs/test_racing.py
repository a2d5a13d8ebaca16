"""First puts are neither lost nor damaged while other processes prune and delete."""

from __future__ import annotations

import pymysql
import pytest

from ....thoroughness import FULL
from ...conftest import MakeConfig
from ...connecting import connect
from ...drivers_under_test import ASYNC_DRIVERS
from ...soundness import assert_graphs_sound
from .racing import race

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("driver", ASYNC_DRIVERS if FULL else ("mysql-connector",))
@pytest.mark.parametrize(
    "pipeline", [True, False] if FULL else [True], ids=lambda on: "packets" if on else "statements"
)
def test_first_puts_beside_pruners_and_a_deleter_are_neither_gone_nor_damaged(
    make_config: MakeConfig, database: str, driver: str, pipeline: bool
) -> None:
    config = make_config(driver=driver, pipeline=pipeline, ssl_mode="DISABLED")
    options = {name: getattr(config, name) for name in config.model_fields_set}
    outcome = race(options, 1_000 if FULL else 60)
    assert (outcome.gone, outcome.damaged) == (0, 0), outcome
    connection: pymysql.Connection[tuple[object, ...]] = connect(config, database)
    with connection:
        assert_graphs_sound(connection)
