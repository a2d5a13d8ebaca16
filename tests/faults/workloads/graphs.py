"""Checkpoints of graphs, with the writes of their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from locus_mysql import MySQLCheckpointSaver, SyncMySQLCheckpointSaver

from .workload import Call, Stores, Workload, taken


def _content(record: Any) -> Any:
    return None if record is None else (record["checkpoint_id"], record["parent_checkpoint_id"], record["checkpoint"])


class Graphs(Workload):
    """Checkpoints that follow each other, and writes of a task."""

    title, family = "checkpoints of graphs", "graphs"
    stores = Stores(MySQLCheckpointSaver, SyncMySQLCheckpointSaver)

    def _put(self, checkpoint_id: str, text: str, parent: str | None = None, thread_id: str = "thread") -> Any:
        data = {"said": [text], "kept": "a long text " * 200}
        return self.store.put(
            thread_id=thread_id, checkpoint_id=checkpoint_id, checkpoint_data=data, parent_checkpoint_id=parent
        )

    def calls(self) -> Sequence[Call]:
        writes = [("channel", "yes"), ("other", [1])]
        return [
            lambda: self._put("c1", "plum"),
            lambda: self._put("c2", "fig", "c1"),
            lambda: self.store.put_writes(thread_id="thread", checkpoint_id="c2", task_id="task", writes=writes),
            lambda: taken(self.store.get(thread_id="thread"), _content),
            lambda: self._put("s1", "nut", thread_id="short"),
            lambda: self.store.copy_thread("thread", "copy"),
            lambda: self.store.delete_checkpoint(thread_id="copy", checkpoint_id="c1"),
            lambda: self.store.delete_thread("short"),
        ]

    async def stored(self) -> Any:
        found = []
        for thread in sorted(await self.store.list_threads()):
            checkpoints = [_content(one) for one in await self.store.list_checkpoints(thread_id=thread)]
            writes = await self.store.get_writes(thread_id=thread, checkpoint_id="c2")
            found.append((thread, checkpoints, writes))
        return found
