"""The saver returns the same as LangGraph's in-memory saver, while other processes remove checkpoints."""

from __future__ import annotations

import pytest

from ....thoroughness import FULL
from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS
from .against_in_memory import compare

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("driver", ASYNC_DRIVERS if FULL else ("mysql-connector",))
def test_random_operations_give_what_the_saver_in_memory_gives(make_config: MakeConfig, driver: str) -> None:
    config = make_config(driver=driver, ssl_mode="DISABLED")
    options = {name: getattr(config, name) for name in config.model_fields_set}
    counted = compare(options, 10_000 if FULL else 200)
    assert len(counted) == 8
