"""Writes of every family, with what exists before, what others do meanwhile, and what is left: `FAMILIES`.

`test_late` delays their packets, and `tests/faults/test_unread_answers.py` breaks their connections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .checkpoints import CHECKPOINTS, CHECKPOINTS_MEANWHILE, checkpoints_left
from .graphs import GRAPHS, GRAPHS_MEANWHILE, graphs_left
from .memories import MEMORIES, MEMORIES_MEANWHILE, memories_left
from .memu import MEMU, MEMU_MEANWHILE, RECALL, RECALL_MEANWHILE, memu_left, recall_left
from .stores import Case, Meanwhile, Stores
from .transcripts import TRANSCRIPTS, TRANSCRIPTS_MEANWHILE, transcripts_left
from .turns import TURNS, TURNS_MEANWHILE
from .working import WORKING, WORKING_MEANWHILE, working_left


class Family(NamedTuple):
    """The writes of one family.

    Args:
        writes: By name.
        meanwhile: The writes of other processes.
        prefix: The prefix of the names of its tables.
        left: Returns what is stored, without times and random ids.
    """

    writes: dict[str, Case]
    meanwhile: Sequence[Meanwhile]
    prefix: str
    left: Callable[[Stores], Any]


FAMILIES = {
    "checkpoints": Family(CHECKPOINTS, CHECKPOINTS_MEANWHILE, "locus_store_", checkpoints_left),
    "turns": Family(TURNS, TURNS_MEANWHILE, "locus_store_", checkpoints_left),
    "graphs": Family(GRAPHS, GRAPHS_MEANWHILE, "locus_graph_", graphs_left),
    "memories": Family(MEMORIES, MEMORIES_MEANWHILE, "locus_memory_", memories_left),
    "working": Family(WORKING, WORKING_MEANWHILE, "locus_working_", working_left),
    "transcripts": Family(TRANSCRIPTS, TRANSCRIPTS_MEANWHILE, "locus_transcript", transcripts_left),
    "memu": Family(MEMU, MEMU_MEANWHILE, "memu_", memu_left),
    "recall": Family(RECALL, RECALL_MEANWHILE, "memu_", recall_left),
}
