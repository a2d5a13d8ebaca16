"""Processes and threads that store the same summary concurrently create one item and one category."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from locus_mysql import MySQLConfig
from locus_mysql.engine.operation import Operation
from locus_mysql.integrations.memu import MemuDatabase

from ...conftest import MakeConfig
from ...test_concurrent_writers import PROCESSES
from .conftest import ADA, AnyMemu, UserModel

WRITERS, TIMES = 8, 4

#: Limit for the whole test in seconds, sufficient on a busy machine.
DEADLINE_S = 300.0


# Contention takes long only on a slow machine, so retries have the longest deadline.
PATIENT = {"retry_deadline_s": 300, "pool_timeout_s": 300}


def say_the_same(config: MySQLConfig, name: str, start: Any) -> None:
    with MemuDatabase(config, user_model=UserModel) as memu:
        category = memu.memory_category_repo.get_or_create_category(
            name="tea", description="", embedding=None, user_data=ADA
        )
        start.wait(DEADLINE_S)
        for turn in range(TIMES):
            item = memu.memory_item_repo.create_item(
                memory_type="profile", summary="Ada likes tea", embedding=[1.0], user_data=ADA, reinforce=True
            )
            memu.memory_item_repo.update_item(item_id=item.id, extra={f"{name}{turn}": turn})
            memu.category_item_repo.link_item_category(item.id, category.id, ADA)


def test_eight_processes_reinforce_one_item(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql", **PATIENT)
    with MemuDatabase(config, user_model=UserModel) as memu:
        memu.load_existing()
        start = PROCESSES.Barrier(WRITERS)
        processes = [
            PROCESSES.Process(target=say_the_same, args=(config, f"w{number}", start)) for number in range(WRITERS)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(DEADLINE_S)
        assert [process.exitcode for process in processes] == [0] * WRITERS
        (item,) = memu.items.values()
        assert item.extra["reinforcement_count"] == WRITERS * TIMES
        assert {key for key in item.extra if key.startswith("w")} == {
            f"w{number}{turn}" for number in range(WRITERS) for turn in range(TIMES)
        }
        assert len(memu.categories) == len(memu.relations) == 1


def test_an_item_is_cleared_by_one_of_several(make_config: MakeConfig) -> None:
    with MemuDatabase(make_config(driver="pymysql", **PATIENT), user_model=UserModel) as memu:
        for number in range(20):
            memu.memory_item_repo.create_item(memory_type="event", summary=str(number), embedding=None, user_data=ADA)
        there = set(memu.items)
        start = threading.Barrier(WRITERS)

        def clear(number: int) -> list[str]:
            start.wait(DEADLINE_S)
            return list(memu.memory_item_repo.clear_items(ADA))

        with ThreadPoolExecutor(WRITERS) as threads:
            cleared = [id for ids in threads.map(clear, range(WRITERS)) for id in ids]
        assert sorted(cleared) == sorted(there)
        assert len(memu.items) == 0


def between(operation: Operation[Any], change: Callable[[], object]) -> Operation[Any]:
    """Run an operation, with a change by another process after its first round trip."""
    try:
        results = yield next(operation)
        change()
        while True:
            results = yield operation.send(results)
    except StopIteration as done:
        return done.value


async def test_clear_keeps_a_record_that_was_changed_and_no_longer_matches(
    memu: AnyMemu, make_config: MakeConfig
) -> None:
    kept, gone = [await memu.remember(text, ADA, memory_type="event") for text in "ab"]
    with MemuDatabase(make_config(), user_model=UserModel) as other:
        repo = memu.memory_item_repo.wrapped
        clearing = between(
            repo._operations.remove(repo._operations.conditions({"memory_type": "event"})),
            lambda: other.memory_item_repo.update_item(item_id=kept.id, memory_type="profile"),
        )
        cleared = repo._run(clearing)
        cleared = await cleared if inspect.isawaitable(cleared) else cleared
        assert list(cleared) == [gone.id]
        assert [(item.id, item.memory_type) for item in other.items.values()] == [(kept.id, "profile")]
