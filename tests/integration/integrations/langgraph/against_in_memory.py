"""Random operations on a saver, compared with LangGraph's saver in memory; removals run in other processes.

As a program, it takes a DSN, a driver and a number:
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import multiprocessing
import random
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver

from locus_mysql import MySQLConfig
from locus_mysql.errors import ThreadExists
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

#: Drivers without a synchronous side.
AWAITED = {"aiomysql", "asyncmy"}

THREADS = ("a", "b", "c")
RUNS = tuple(f"run{number}" for number in range(6))
REMOVERS = 2

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


class Saver:
    """One interface for savers of either side.

    Args:
        options: Options of the configuration.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._awaited = options["driver"] in AWAITED
        self._runner = asyncio.Runner() if self._awaited else None
        config = MySQLConfig(**options)
        self._saver: Any = self._of(AsyncMySQLSaver, config) if self._runner else MySQLSaver(config)

    def _of(self, kind: Any, config: MySQLConfig) -> Any:
        async def make() -> Any:
            return kind(config)

        assert self._runner is not None
        return self._runner.run(make())

    def call(self, method: str, *args: Any, **options: Any) -> Any:
        """Call a method, and return its result, or a list if it iterates."""
        if self._runner is None:
            found = getattr(self._saver, method)(*args, **options)
            return list(found) if inspect.isgenerator(found) or method == "list" else found
        return self._runner.run(self._call(method, args, options))

    async def _call(self, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        found = getattr(self._saver, f"a{method}")(*args, **options)
        return [one async for one in found] if method == "list" else await found


def remove(options: dict[str, Any], pipe: Any) -> None:
    """Run the requests that arrive by a pipe; this is the main function of a child process."""
    saver = Saver(options)
    while (asked := pipe.recv()) is not None:
        method, args, named = asked
        try:
            saver.call(method, *args, **named)
            pipe.send("done")
        except ThreadExists:
            pipe.send("exists")


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
        options: Options of the configuration.
        seed: Seed of the random numbers.
    """

    def __init__(self, options: dict[str, Any], seed: int) -> None:
        self._options = options
        self._random = random.Random(seed)
        self._saver, self._model = Saver(options), Model()
        self._version = 0
        self.counted: Counter[str] = Counter()
        context = multiprocessing.get_context("spawn")
        self._pipes, self._processes = [], []
        for _ in range(REMOVERS):
            mine, theirs = context.Pipe()
            process = context.Process(target=remove, args=(options, theirs), daemon=True)
            process.start()
            self._pipes.append(mine)
            self._processes.append(process)

    def close(self) -> None:
        """End the other processes."""
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join(60)
            if process.is_alive():
                process.kill()

    def run(self, operations: int) -> None:
        """Run a number of operations on both savers, and compare the results."""
        chosen = self._random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=operations)
        for number, name in enumerate(chosen):
            self.counted[name] += 1
            getattr(self, name)(self._random.choice(THREADS))
            if number % 500 == 499:
                self.compare_all()
        self.compare_all()

    def put(self, thread: str) -> None:
        ids = self._model.ids(thread)
        parent = None if not ids else ids[-1] if self._random.random() < 0.8 else self._random.choice(ids)
        before: Any = None
        if parent is not None:
            before = self._model.get_tuple(_config(thread, parent))
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
        self._both("put", _config(thread, parent), checkpoint, metadata, changed)

    def write(self, thread: str) -> None:
        ids = self._model.ids(thread)
        if ids:
            writes = [(self._random.choice(("x", "y", "__error__")), self._random.randint(0, 999)) for _ in range(2)]
            self._both("put_writes", _config(thread, self._random.choice(ids[-3:])), writes, f"task{len(ids) % 3}")

    def read(self, thread: str) -> None:
        ids = self._model.ids(thread)
        self.compare(thread, self._random.choice((None, *ids[-4:])))

    def list(self, thread: str) -> None:
        ids = self._model.ids(thread)
        asked: dict[str, Any] = {"limit": self._random.choice((None, 1, 3))}
        if ids and self._random.random() < 0.5:
            asked["before"] = _config(thread, self._random.choice(ids))
        if self._random.random() < 0.3:
            asked["filter"] = {"run_id": self._random.choice(RUNS)}
        found = self._saver.call("list", _config(thread), **asked)
        expected = list(self._model.list(_config(thread), **asked))
        assert [self._plain(one) for one in found] == [self._plain(one) for one in expected], (thread, asked)

    def delete_thread(self, thread: str) -> None:
        self._elsewhere("delete_thread", thread)
        self._model.delete_thread(thread)

    def prune(self, thread: str) -> None:
        self._elsewhere("prune", [thread], strategy="keep_latest")
        if thread in self._model.storage:
            self._model.keep_newest(thread)

    def delete_for_runs(self, thread: str) -> None:
        runs = self._random.sample(RUNS, 1)
        self._elsewhere("delete_for_runs", runs)
        self._model.remove_runs(runs)

    def copy_thread(self, thread: str) -> None:
        target = self._random.choice([other for other in THREADS if other != thread])
        exists = self._elsewhere("copy_thread", thread, target) == "exists"
        assert exists == bool(self._model.ids(target) and self._model.ids(thread)) or not self._model.ids(thread)
        if self._model.ids(thread) and not exists:
            self._model.copy_to(thread, target)

    def compare_all(self) -> None:
        """Compare every checkpoint, read by this process and by a new one."""
        mine, self._saver = self._saver, Saver(self._options)
        for _ in range(2):
            for thread in THREADS:
                for checkpoint_id in (None, *self._model.ids(thread)):
                    self.compare(thread, checkpoint_id)
            self._saver = mine

    def compare(self, thread: str, checkpoint_id: str | None) -> None:
        """Compare one checkpoint, by default the newest."""
        config = _config(thread, checkpoint_id)
        found, expected = self._saver.call("get_tuple", config), self._model.get_tuple(config)
        assert (found is None) == (expected is None), (thread, checkpoint_id)
        if found is not None:
            assert self._plain(found) == self._plain(expected), (thread, checkpoint_id)

    def _both(self, method: str, *args: Any) -> None:
        self._saver.call(method, *copy.deepcopy(args))
        getattr(self._model, method)(*args)

    def _elsewhere(self, method: str, *args: Any, **named: Any) -> str:
        """Run a removal in another process."""
        pipe = self._random.choice(self._pipes)
        pipe.send((method, args, named))
        assert pipe.poll(120), f"{method}: the other process did not answer"
        answer: str = pipe.recv()
        return answer

    def _plain(self, found: Any) -> tuple[Any, ...]:
        """Return the compared fields of a checkpoint, without a removed parent, which only some savers return."""
        thread = found.config["configurable"]["thread_id"]
        parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]
        return (
            found.config["configurable"],
            found.checkpoint,
            found.metadata,
            parent if parent in self._model.ids(thread) else None,
            sorted(found.pending_writes, key=repr),
        )


def _config(thread: str, checkpoint_id: str | None = None) -> Any:
    configurable = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": configurable if checkpoint_id is None else {**configurable, "checkpoint_id": checkpoint_id}}


def compare(options: dict[str, Any], operations: int, seed: int = 1) -> Counter[str]:
    """Compare a number of random operations, and return the count of each kind.

    Args:
        options: Options of the configuration.
        operations: Number of operations.
        seed: Seed of the random numbers.
    """
    comparison = Comparison(options, seed)
    try:
        comparison.run(operations)
    finally:
        comparison.close()
    return comparison.counted


if __name__ == "__main__":
    dsn, driver, number = sys.argv[1:]
    print(driver, dict(compare({"dsn": dsn, "driver": driver, "ssl_mode": "DISABLED"}, int(number))))
