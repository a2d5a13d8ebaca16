"""Checkpoints: of dicts, of Locus' agents, current states only, and the snapshots of Strands' storage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import (
    CheckpointStore,
    MySQLBackend,
    MySQLCheckpointer,
    SyncCheckpointStore,
    SyncMySQLBackend,
    SyncMySQLCheckpointer,
)
from locus_mysql.integrations.strands import StrandsStorage

from .workload import Call, Stores, Workload

FIRST = {"notes": ["a first word " * 200]}
SECOND = {"notes": [*FIRST["notes"], "and another " * 20]}


class Checkpoints(Workload):
    """Checkpoints of dicts."""

    title, family = "checkpoints of dicts", "dicts"
    stores = Stores(CheckpointStore, SyncCheckpointStore)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.save("thread", FIRST, "first"),
            lambda: self.store.save("thread", SECOND, "second"),
            lambda: self.store.load("thread"),
            lambda: self.store.copy_thread("thread", "other"),
            lambda: self.store.list_checkpoints("thread", 100),
            lambda: self.store.delete("other", "first"),
            lambda: self.store.delete("thread"),
        ]

    async def stored(self) -> Any:
        threads = sorted(await self.store.list_threads())
        return [
            (thread, one, await self.store.load(thread, one))
            for thread in threads
            for one in await self.store.list_checkpoints(thread, 100)
        ]


def _state(*contents: str) -> AgentState:
    return AgentState(run_id="run", messages=tuple(map(Message.user, contents)))


STATES = _state("a first word " * 200), _state("a first word " * 200, "and another " * 20)


class AgentStates(Checkpoints):
    """States of Locus' agents."""

    title, family = "states of Locus' agents", "agents"
    stores = Stores(MySQLCheckpointer, SyncMySQLCheckpointer)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.save(STATES[0], "thread", "first"),
            lambda: self.store.save(STATES[1], "thread", "second"),
            *super().calls()[2:],
        ]


class Backend(Workload):
    """Current states without history."""

    title, family = "current states", "current"
    stores = Stores(MySQLBackend, SyncMySQLBackend)

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.save("thread", FIRST, "first"),
            lambda: self.store.save("thread", SECOND, "second"),
            lambda: self.store.load("thread"),
            lambda: self.store.copy_thread("thread", "other"),
            lambda: self.store.delete("thread"),
        ]

    async def stored(self) -> Any:
        return [(thread, await self.store.load(thread)) for thread in sorted(await self.store.list_threads())]


def _snapshot(*texts: str) -> bytes:
    messages = [{"role": "user", "content": [{"text": text}]} for text in texts]
    return json.dumps({"scope": "agent", "data": {"messages": messages}}).encode()


class StrandsSnapshots(Workload):
    """Snapshots and other bytes in the storage of Strands Agents."""

    title, family = "Strands Agents: storage", "dicts"
    stores = Stores(StrandsStorage)
    latest = "session/s/scopes/agent/a/snapshots/snapshot_latest.json"

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.write(self.latest, _snapshot("Hello")),
            lambda: self.store.write(self.latest, _snapshot("Hello", "again " * 200)),
            lambda: self.store.write("notes/a.bin", b"\0\xff"),
            lambda: self.store.read(self.latest),
            lambda: self.store.list("session"),
            lambda: self.store.write("notes/b.bin", b"b"),
            lambda: self.store.delete("notes/a.bin"),
        ]

    async def stored(self) -> Any:
        return [(key, await self.store.read(key)) for key in sorted(await self.store.list(""))]
