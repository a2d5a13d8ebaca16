"""The declaration of the tables of graphs: `tables`."""

from __future__ import annotations

from functools import lru_cache

from ...records.tables import Owner, Part, Sealed, Tables
from .statements.tables import graph_schema, table_names


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix.

    A save that only adds a checkpoint changes nothing in the thread's row, so threads are compared by all their rows. A
    part is bound to its thread only, as it may move to another table; checkpoints name the checksums of their parts.
    """
    return Tables(
        graph_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "threads",
            key=("thread_id",),
            noun="thread",
            epoch=("epoch",),
            fresh=(("epoch", 8),),
            named="thread_id",
            stamp="updated_at",
        ),
        (
            Part(
                "checkpoints",
                key=("thread_id", "ns_key", "seq"),
                sealed=(
                    Sealed("payload", "payload", row=("checkpoint_key", "parent_key", "needs", "metadata")),
                    Sealed("chunk", "chunk"),
                ),
                noun="checkpoint",
                title="checkpoint_id",
            ),
            Part("parts", key=("thread_id", "part"), sealed=(Sealed("chunk", "chunk"),), noun="part of a value"),
            Part(
                "writes",
                key=("thread_id", "checkpoint_key", "task_key", "idx"),
                sealed=(Sealed("payload", "write", row=("checkpoint_key", "task_id", "idx", "channel", "task_path")),),
                noun="write",
                title="task_id",
            ),
        ),
    )
