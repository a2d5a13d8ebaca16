"""Calls of a store of every family and of every framework, as `test_every_fault` makes them: `WORKLOADS`.

`workload` says what a workload is; the other modules have those of one family, or of the frameworks whose records are
in it. `test_every_fault` checks that each family of the registry has one.
"""

from __future__ import annotations

from .checkpoints import AgentStates, Backend, Checkpoints, StrandsSnapshots
from .graphs import Graphs
from .memories import AdkMemories, KeyValues, Memories, StrandsMemories
from .memu import Memu
from .sessions import AdkSessions, ClaudeSessions, Conversations, OpenAIBranches, OpenAISessions, StrandsSessions
from .transcripts import Transcripts
from .working import Working
from .workload import Workload

WORKLOADS: tuple[type[Workload], ...] = (
    *(Checkpoints, AgentStates, Backend, Graphs, Memories, Working, Memu, Transcripts),
    *(ClaudeSessions, Conversations, OpenAISessions, OpenAIBranches),
    *(AdkSessions, AdkMemories, StrandsSnapshots, StrandsSessions, StrandsMemories, KeyValues),
)

__all__ = ["WORKLOADS", "Workload"]
