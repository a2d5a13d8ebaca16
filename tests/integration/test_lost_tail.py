"""A server loses its newest commits while processes run: none of them returns data that is no longer stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import SyncWorkingMemory
from locus_mysql.integrations.memu import MemuDatabase

from .conftest import ONE_OF_EACH, MakeConfig, OpenStore
from .integrations.memu.conftest import UserModel
from .lost_tail import Moment, Tables

pytestmark = pytest.mark.slow

RunSQL = Callable[..., tuple[Any, ...]]

SEEDS = range(6)
STEPS = 70


class Loss:
    """A model of the stored data, and moments to which the model and the tables return.

    Args:
        tables: The tables.
        chosen: The random generator that chooses the steps.
    """

    def __init__(self, tables: Tables, chosen: random.Random) -> None:
        self.stored: dict[Any, Any] = {}
        self._tables = tables
        self._moments: list[tuple[Moment, dict[Any, Any]]] = []
        self._chosen = chosen

    def note(self) -> None:
        """Record the current state of the model and the tables."""
        self._moments.append((self._tables.note(), dict(self.stored)))

    def lose(self) -> None:
        """Restore one of the last recorded states."""
        if self._moments:
            moment, stored = self._chosen.choice(self._moments[-3:])
            self._tables.put_back(moment)
            self.stored = dict(stored)

    def step(self) -> None:
        """At random, record the current state or restore an earlier one."""
        match self._chosen.choices(["go on", "note", "lose"], [10, 3, 2])[0]:
            case "note":
                self.note()
            case "lose":
                self.lose()


@pytest.mark.parametrize("side", ONE_OF_EACH)
@pytest.mark.parametrize("seed", SEEDS)
async def test_checkpoints_load_exactly_or_not_at_all(
    open_store: OpenStore, run_sql: RunSQL, database: str, side: str, seed: int
) -> None:
    chosen = random.Random(seed)
    stores = [open_store(side), open_store(side, cache_bytes=0), open_store(side)]
    loss = Loss(Tables(run_sql, database), chosen)
    messages: list[str] = []
    for step in range(STEPS):
        store = chosen.choice(stores)
        if step and chosen.random() < 0.4:
            name = chosen.choice([None, *list(loss.stored)[-4:]])
            newest = next(reversed(loss.stored), None)
            assert await store.load("t", name) == loss.stored.get(name or newest)
        else:
            messages = [
                *(messages if chosen.random() < 0.7 else list(loss.stored.values() or [{"m": []}])[-1]["m"]),
                f"{step:04}" * 150,
            ]
            loss.stored[f"c{step}"] = {"m": messages}
            await store.save("t", {"m": messages}, f"c{step}")
        loss.step()
    for reader in (*stores, open_store(side)):
        for name, state in loss.stored.items():
            assert await reader.load("t", name) == state


@pytest.mark.parametrize("seed", SEEDS)
def test_working_memory_gives_what_is_stored(
    make_config: MakeConfig, run_sql: RunSQL, database: str, seed: int
) -> None:
    chosen = random.Random(seed)
    memories = [SyncWorkingMemory("s", make_config(driver="pymysql")) for _ in range(2)]
    loss = Loss(Tables(run_sql, database), chosen)
    try:
        for step in range(STEPS):
            memory = chosen.choice(memories)
            key = chosen.choice("abc")
            match chosen.choice(["set", "increment", "delete", "clear"]):
                case "set":
                    memory.set(key, step)
                    loss.stored[key] = step
                case "increment":
                    assert memory.increment(key) == loss.stored.get(key, 0) + 1
                    loss.stored[key] = loss.stored.get(key, 0) + 1
                case "delete":
                    assert memory.delete(key) == (key in loss.stored)
                    loss.stored.pop(key, None)
                case "clear" if step % 3 == 0:
                    memory.clear()
                    loss.stored.clear()
            loss.step()
            for reader in memories:
                assert dict(reader.get_all()) == loss.stored
    finally:
        for memory in memories:
            memory.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_memu_finds_exactly_the_stored_records(
    make_config: MakeConfig, run_sql: RunSQL, database: str, seed: int
) -> None:
    chosen = random.Random(seed)
    databases = [MemuDatabase(make_config(driver="pymysql"), user_model=UserModel) for _ in range(2)]
    loss = Loss(Tables(run_sql, database), chosen)
    ada = {"user_id": "ada"}
    try:
        for step in range(STEPS // 2):
            items = chosen.choice(databases).memory_item_repo
            vector = [chosen.uniform(-1, 1), chosen.uniform(-1, 1)]
            if loss.stored and chosen.random() < 0.3:
                changed = chosen.choice(list(loss.stored))
                items.update_item(item_id=changed, embedding=vector)
                loss.stored[changed] = vector
            else:
                made = items.create_item(memory_type="profile", summary=f"{step}", embedding=vector, user_data=ada)
                loss.stored[made.id] = vector
            loss.step()
            for reader in databases:
                found = reader.memory_item_repo.vector_search_items([1.0, 0.0], 100, where=ada)
                expected = {id: x / (x * x + y * y) ** 0.5 for id, (x, y) in loss.stored.items()}
                assert {id: pytest.approx(score, abs=1e-5) for id, score in found} == expected
    finally:
        for one in databases:
            one.close()
