"""What a process remembers is forgotten in a forked child.

There the lock that guards it may be held for ever, by a thread of the parent that the child does not have.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Memory(Protocol):
    """Something remembered, with a lock."""

    def begin_empty(self) -> None:
        """Remember nothing, under a new lock."""


_memories: weakref.WeakSet[Memory] = weakref.WeakSet()


def forget_at_fork(memory: Memory) -> None:
    """See to it that a forked child begins with this memory empty."""
    _memories.add(memory)


def _forget() -> None:
    for memory in list(_memories):
        memory.begin_empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
