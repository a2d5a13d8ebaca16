"""Working memory: a session's variables, notes and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_mysql.families.working.storages.mysql import MySQLStorage
from locus_mysql.working import SyncWorkingMemory, WorkingMemory

from .workload import Call, Stores, Workload


class Working(Workload):
    """One session."""

    title, family = "working memory", "working"
    stores = Stores(
        lambda config: WorkingMemory("session", MySQLStorage(config), tenant=config.tenant),
        lambda config: SyncWorkingMemory("session", MySQLStorage(config), tenant=config.tenant),
    )

    def calls(self) -> Sequence[Call]:
        return [
            lambda: self.store.set("plan", ["ask", "look"]),
            lambda: self.store.set_many({"a": 1, "b": "a long text " * 200}),
            lambda: self.store.increment("a", 2),
            lambda: self.store.append_scratchpad("a note"),
            self._checkpoint,
            lambda: self.store.compare_and_set("a", 3, 4),
            lambda: self.store.get("a"),
            lambda: self.store.append_scratchpad("another note"),
            lambda: self.store.delete("b"),
        ]

    async def _checkpoint(self) -> Any:
        return bool(await self.store.create_checkpoint("before"))

    async def stored(self) -> Any:
        checkpoints = [one.label for one in await self.store.list_checkpoints()]
        return await self.store.get_all(), await self.store.get_scratchpad(), checkpoints

    async def close(self) -> None:
        storage = self.store.store.storage
        await self.store.close()
        await storage.aclose()
