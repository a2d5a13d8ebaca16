"""On uvloop, which `serve` and many services use, asynchronous drivers work, fail and close as on asyncio's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from locus_mysql import CheckpointStore, MySQLConfig

from ..conftest import ASYNC_DRIVERS, MakeConfig
from ..proxy import WireProxy

LARGE = {"text": "x" * 3_000_000}


def run(main: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


@pytest.fixture(params=["DISABLED", "REQUIRED"])
def config(make_config: MakeConfig, request: pytest.FixtureRequest) -> Callable[..., MySQLConfig]:
    return lambda driver, **options: make_config(driver=driver, ssl_mode=request.param, **options)


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_states_large_and_small_saved_at_once(config: Callable[..., MySQLConfig], driver: str) -> None:
    async def main() -> None:
        store = CheckpointStore(config(driver, pool_size=3))
        ids = await asyncio.gather(*(store.save(f"t{n}", LARGE if n % 4 == 0 else {"n": n}) for n in range(12)))
        assert len(set(ids)) == 12
        for n in range(12):
            assert await store.load(f"t{n}") == (LARGE if n % 4 == 0 else {"n": n})
        await store.close()
        assert await store.load("t1") == {"n": 1}
        await store.close()

    run(main())


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_a_cancelled_call_drops_its_connection(config: Callable[..., MySQLConfig], driver: str) -> None:
    async def main() -> None:
        store = CheckpointStore(config(driver, pool_size=1))
        await store.save("t", {"n": 1})
        task = asyncio.create_task(store.save("t", LARGE))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await store.load("t") in ({"n": 1}, LARGE)
        await store.close()

    run(main())


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_a_lost_answer_is_asked_for_again(make_config: MakeConfig, proxy: WireProxy, driver: str) -> None:
    async def main() -> None:
        index: dict[str, Any] = {"host": "127.0.0.1", "port": proxy.port, "ssl_mode": "DISABLED"}
        store = CheckpointStore(make_config(driver=driver, **index))
        await store.save("t", {"n": 1})
        proxy.drop_after_send()
        await store.save("t", {"n": 2}, "second")
        proxy.drop_before()
        assert await store.load("t") == {"n": 2}
        assert len(await store.list_checkpoints("t")) == 2
        await store.close()

    run(main())
