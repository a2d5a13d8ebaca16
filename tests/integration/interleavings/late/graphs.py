"""Writes of graphs whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

import os
from typing import Any

from locus_mysql.families.graphs.operations import GraphOperations
from locus_mysql.families.graphs.records import LoadedWrite, NewGraphCheckpoint, NewValue
from locus_mysql.families.graphs.statements import tables
from locus_mysql.families.graphs.values import EncodedValue

from ..stage import Call
from .stores import LONG, TENANT, Case, Stores


def put(side: Stores, words: str = "plum", checkpoint_id: str = "c1", parent: str | None = None) -> Call:
    data = {"said": [words, LONG], "kept": LONG}
    return side.saver.begin(
        "put", thread_id="thread", checkpoint_id=checkpoint_id, checkpoint_data=data, parent_checkpoint_id=parent
    )


def replaced(
    side: Stores, words: str = "plum", *, run_id: str | None = None, checkpoint_id: str = "c1", keep: int | None = None
) -> Call:
    """Begin a save as LangGraph's saver does it."""
    graphs = side.graphs if keep is None else GraphOperations(side.graphs.config.for_store(keep_checkpoints=keep))
    values = [NewValue("said", 1, EncodedValue("json", f'"{words} {LONG}"'.encode()))]
    new = NewGraphCheckpoint(
        codec="json",
        ns="default",
        checkpoint_id=checkpoint_id,
        parent_id=None,
        head=EncodedValue("json", b""),
        values=lambda base: values,
        metadata=None,
        run_id=run_id,
        needs=0,
        replace=True,
        token=os.urandom(16),
    )
    return side.begin(graphs.saving.save(TENANT, "thread", new, None))


def write(side: Stores, value: str = "yes", *, idx: int = 0, replace: bool = True) -> Call:
    row = LoadedWrite("task", idx, "channel", "", EncodedValue("json", f'[["channel", "{value}"]]'.encode()))
    other = LoadedWrite("task", 1, "other", "", EncodedValue("json", f'[["other", "{value}"]]'.encode()))
    checkpoint_key = tables.checkpoint_key("default", "c1")
    saving = side.graphs.saving
    return side.begin(saving.put_writes(TENANT, "thread", checkpoint_key, "task", [row, other], replace=replace))


def put_first(side: Stores) -> None:
    put(side).finish()


def put_two(side: Stores) -> None:
    put(side).finish()
    put(side, "fig", "c2", "c1").finish()


def thread_goes_on(side: Stores) -> None:
    put(side, "later", "d1").finish()
    for number in range(10):
        replaced(side, f"again {number}").finish()
    write(side, "no").finish()
    side.saver.begin("put", thread_id="source", checkpoint_id="s2", checkpoint_data={"said": LONG}).finish()


def graph_made_anew(side: Stores) -> None:
    side.saver.delete_thread("thread")
    put(side, "later", "c1").finish()
    put(side, "later", "c9", "c1").finish()


def graph_deleted(side: Stores) -> None:
    side.saver.delete_thread("thread")


def checkpoints_removed(side: Stores) -> None:
    for checkpoint_id in ("c1", "c2"):
        side.saver.delete_checkpoint(thread_id="thread", checkpoint_id=checkpoint_id)
    side.saver.vacuum(0)


def source_put(side: Stores) -> None:
    side.saver.put(thread_id="source", checkpoint_id="s1", checkpoint_data={"said": LONG})


GRAPHS: dict[str, Case] = {
    "put first": (None, put),
    "put behind": (put_first, lambda side: put(side, "nut", "c2", "c1")),
    "put again": (put_first, put),
    "put that is refused": (put_first, lambda side: put(side, "nut")),
    "replace first": (None, replaced),
    "replace": (lambda side: replaced(side).finish(), lambda side: replaced(side, "nut")),
    "replace that removes older ones": (put_two, lambda side: replaced(side, checkpoint_id="c3", keep=1)),
    "put_writes": (None, write),
    "put_writes again": (lambda side: write(side, "before").finish(), write),
    "put_writes once": (None, lambda side: write(side, replace=False)),
    "put_writes once again": (
        lambda side: write(side, replace=False).finish(),
        lambda side: write(side, replace=False),
    ),
    "put_writes special": (None, lambda side: write(side, idx=-1, replace=False)),
    "delete_thread": (put_two, lambda side: side.saver.begin("delete_thread", "thread")),
    "delete_thread that is missing": (None, lambda side: side.saver.begin("delete_thread", "thread")),
    "delete_checkpoint": (
        put_two,
        lambda side: side.saver.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c1"),
    ),
    "delete_checkpoint that is missing": (
        None,
        lambda side: side.saver.begin("delete_checkpoint", thread_id="thread", checkpoint_id="c1"),
    ),
    "prune": (put_two, lambda side: side.saver.begin("prune", thread_id="thread")),
    "prune of nothing": (put_first, lambda side: side.saver.begin("prune", thread_id="thread")),
    "prune of what is missing": (None, lambda side: side.saver.begin("prune", thread_id="thread")),
    "delete_runs": (
        lambda side: replaced(side, run_id="run").finish(),
        lambda side: side.begin(side.graphs.removing.delete_runs(TENANT, ["run"])),
    ),
    "copy": (source_put, lambda side: side.saver.begin("copy_thread", "source", "thread")),
    "copy that is refused": (
        lambda side: (source_put(side), put_first(side)),
        lambda side: side.saver.begin("copy_thread", "source", "thread"),
    ),
    "copy of what is missing": (None, lambda side: side.saver.begin("copy_thread", "source", "thread")),
    "vacuum": (put_two, lambda side: side.saver.begin("vacuum", 0)),
}


def graphs_left(side: Stores) -> Any:
    writes = side.run(side.graphs.loading.writes(TENANT, "thread", tables.checkpoint_key("default", "c1"), None))
    return writes, {
        thread_id: [
            (one["checkpoint_id"], one["checkpoint"]) for one in side.saver.list_checkpoints(thread_id=thread_id)
        ]
        for thread_id in sorted(side.saver.list_threads())
    }


GRAPHS_MEANWHILE = (thread_goes_on, graph_made_anew, graph_deleted, checkpoints_removed)
