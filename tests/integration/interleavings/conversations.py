"""Conversations of the tests of interleavings, and a check of what a new process reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .stage import Process, Stage

State = dict[str, Any]
CheckTables = Callable[[], None]


def conversation(*words: str) -> State:
    """Return a state that extends the state of fewer words, and is long enough to be stored as its delta."""
    return {"said": [f"{word} " * (1_500 if index == 0 else 100) for index, word in enumerate(words)]}


def assert_serves_anew(stage: Stage, process: Process, thread_id: str) -> None:
    """Check that this process and another one can save and load the thread."""
    for turn in ("once", "again"):
        process.save(thread_id, conversation("anew", turn))
        assert process.load(thread_id) == conversation("anew", turn)
        assert stage.afresh("load", thread_id) == conversation("anew", turn)
