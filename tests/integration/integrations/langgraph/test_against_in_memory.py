"""The saver returns the same as LangGraph's in-memory saver, while other processes remove checkpoints."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver

from locus_mysql.errors import ThreadExists

from ....thoroughness import FULL
from ...conftest import EACH_WAY
from .conftest import OpenSaver

pytestmark = [pytest.mark.slow, pytest.mark.kept_tables("graphs")]

THREADS = ("a", "b", "c")
RUNS = tuple(f"run{number}" for number in range(6))

#: The relative frequency of each operation.
WEIGHTS = {
    "put": 40,
    "write": 25,
    "read": 17,
    "list": 8,
    "delete_thread": 2,
    "prune": 4,
    "copy_thread": 2,
    "delete_for_runs": 2,
}


def config_of(thread: str, checkpoint_id: str | None = None) -> Any:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}}


class Model(InMemorySaver):
    """LangGraph's in-memory saver, extended by the removals that it lacks."""

    def keep_newest(self, thread_id: str) -> None:
        for checkpoints in self.storage[thread_id].values():
            for checkpoint_id in sorted(checkpoints)[:-1]:
                self._remove(thread_id, checkpoint_id)

    def remove_runs(self, run_ids: list[str]) -> None:
        for thread_id in list(self.storage):
            for checkpoint_id, (_, metadata, _) in list(self.storage[thread_id][""].items()):
                if self.serde.loads_typed(metadata).get("run_id") in run_ids:
                    self._remove(thread_id, checkpoint_id)

    def copy_to(self, source: str, target: str) -> None:
        self.delete_thread(target)
        self.storage[target] = copy.deepcopy(self.storage[source])
        for stored in (self.writes, self.blobs):
            for key in [key for key in stored if key[0] == source]:
                stored[(target, *key[1:])] = copy.deepcopy(stored[key])  # type: ignore[index]

    def ids(self, thread_id: str) -> list[str]:
        return sorted(self.storage[thread_id][""]) if thread_id in self.storage else []

    def _remove(self, thread_id: str, checkpoint_id: str) -> None:
        del self.storage[thread_id][""][checkpoint_id]
        self.writes.pop((thread_id, "", checkpoint_id), None)


class Comparison:
    """A run of random operations.

    Args:
        mine: The saver that is compared.
        other: The saver of another process, which removes checkpoints.
        seed: Seed of the random numbers.
    """

    def __init__(self, mine: Any, other: Any, seed: int) -> None:
        self._saver, self._other, self.model, self._random = mine, other, Model(), random.Random(seed)
        self._version = 0

    async def put(self, thread: str) -> None:
        ids = self.model.ids(thread)
        parent = None if not ids else ids[-1] if self._random.random() < 0.8 else self._random.choice(ids)
        before: Any = None if parent is None else self.model.get_tuple(config_of(thread, parent))
        values = dict(before.checkpoint["channel_values"]) if before else {}
        versions = dict(before.checkpoint["channel_versions"]) if before else {}
        changed = {}
        for name in self._random.sample(("log", "text", "small"), self._random.randint(1, 3)):
            self._version += 1
            changed[name] = versions[name] = f"{self._version:032}.0"
            if name == "log":
                values[name] = [*values.get(name, []), f"{self._version} " * self._random.choice((5, 300))]
            else:
                values[name] = f"{self._version} " * (2 if name == "small" else 900)
        checkpoint = {
            "v": 4,
            "id": str(uuid6()),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": values,
            "channel_versions": versions,
            "versions_seen": {},
            "updated_channels": None,
        }
        metadata = {"source": "loop", "step": self._version, "run_id": self._random.choice(RUNS)}
        await self._both("aput", config_of(thread, parent), checkpoint, metadata, changed)

    async def write(self, thread: str) -> None:
        if ids := self.model.ids(thread):
            writes = [(self._random.choice(("x", "y", "__error__")), self._random.randint(0, 999)) for _ in range(2)]
            config = config_of(thread, self._random.choice(ids[-3:]))
            await self._both("aput_writes", config, writes, f"task{len(ids) % 3}")

    async def read(self, thread: str) -> None:
        await self.compare(self._saver, thread, self._random.choice((None, *self.model.ids(thread)[-4:])))

    async def list(self, thread: str) -> None:
        ids = self.model.ids(thread)
        asked: dict[str, Any] = {"limit": self._random.choice((None, 1, 3))}
        if ids and self._random.random() < 0.5:
            asked["before"] = config_of(thread, self._random.choice(ids))
        if self._random.random() < 0.3:
            asked["filter"] = {"run_id": self._random.choice(RUNS)}
        found = [one async for one in self._saver.alist(config_of(thread), **asked)]
        expected = [*self.model.list(config_of(thread), **asked)]
        assert [self._plain(one) for one in found] == [self._plain(one) for one in expected], (thread, asked)

    async def delete_thread(self, thread: str) -> None:
        await self._other.adelete_thread(thread)
        self.model.delete_thread(thread)

    async def prune(self, thread: str) -> None:
        await self._other.aprune([thread], strategy="keep_latest")
        if thread in self.model.storage:
            self.model.keep_newest(thread)

    async def delete_for_runs(self, thread: str) -> None:
        runs = self._random.sample(RUNS, 1)
        await self._other.adelete_for_runs(runs)
        self.model.remove_runs(runs)

    async def copy_thread(self, thread: str) -> None:
        target = self._random.choice([other for other in THREADS if other != thread])
        if self.model.ids(thread) and self.model.ids(target):
            with pytest.raises(ThreadExists):
                await self._other.acopy_thread(thread, target)
        elif self.model.ids(thread):
            await self._other.acopy_thread(thread, target)
            self.model.copy_to(thread, target)

    async def compare_all(self, *savers: Any) -> None:
        """Compare every checkpoint, read by each of some savers."""
        for saver in savers:
            for thread in THREADS:
                for checkpoint_id in (None, *self.model.ids(thread)):
                    await self.compare(saver, thread, checkpoint_id)

    async def compare(self, saver: Any, thread: str, checkpoint_id: str | None) -> None:
        """Compare one checkpoint, by default the newest."""
        config = config_of(thread, checkpoint_id)
        found, expected = await saver.aget_tuple(config), self.model.get_tuple(config)
        assert (found is None) == (expected is None), (thread, checkpoint_id)
        if found is not None:
            assert self._plain(found) == self._plain(expected), (thread, checkpoint_id)

    async def _both(self, method: str, *args: Any) -> None:
        await getattr(self._saver, method)(*copy.deepcopy(args))
        await getattr(self.model, method)(*args)

    def _plain(self, found: Any) -> tuple[Any, ...]:
        """Return the compared fields of a checkpoint, without a removed parent, which only some savers return."""
        thread = found.config["configurable"]["thread_id"]
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        return (
            found.config["configurable"],
            found.checkpoint,
            found.metadata,
            parent if parent in self.model.ids(thread) else None,
            sorted(found.pending_writes, key=repr),
        )


@pytest.mark.parametrize("side", EACH_WAY)
async def test_random_operations_give_what_the_saver_in_memory_gives(open_saver: OpenSaver, side: str) -> None:
    mine, other, seed = open_saver(side), open_saver(side), 1
    comparison, chosen = Comparison(mine, other, seed), random.Random(seed)
    names = chosen.choices([*WEIGHTS], [*WEIGHTS.values()], k=10_000 if FULL else 200)
    assert len(Counter(names)) == len(WEIGHTS)
    for number, name in enumerate(names, 1):
        await getattr(comparison, name)(chosen.choice(THREADS))
        if number % 500 == 0:
            await comparison.compare_all(mine)
    await comparison.compare_all(mine, other, open_saver(side))
