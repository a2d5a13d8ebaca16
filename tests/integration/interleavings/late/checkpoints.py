"""Writes of checkpoints whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from typing import Any

from locus_mysql import NO_CHECKPOINT

from ..stage import Call
from .stores import LONG, Case, Stores


def save(side: Stores, words: str = "plum", checkpoint_id: str | None = "c1", **options: Any) -> Call:
    return side.store.begin("save", "thread", {"said": [words, LONG]}, checkpoint_id, **options)


def saved(side: Stores) -> None:
    save(side).finish()


def saved_by_another(side: Stores) -> None:
    side.stage.afresh("save", "thread", {"said": ["plum", LONG]}, "c1")


def saved_over(side: Stores) -> None:
    save(side, "fig").finish()


def thread_saved_anew(side: Stores) -> None:
    side.store.delete("thread")
    save(side, "fig").finish()


def all_deleted(side: Stores) -> None:
    side.store.delete("thread")


CHECKPOINTS: dict[str, Case] = {
    "save anew": (None, save),
    "save over": (saved, lambda side: save(side, "nut")),
    "save over another process's": (saved_by_another, lambda side: save(side, "nut")),
    "save behind": (saved, lambda side: save(side, "nut", "c2")),
    "save where none is expected": (None, lambda side: save(side, "nut", expected=NO_CHECKPOINT)),
    "save that is refused": (saved, lambda side: save(side, "nut", expected=NO_CHECKPOINT)),
    "delete": (saved, lambda side: side.store.begin("delete", "thread")),
    "delete of what is missing": (None, lambda side: side.store.begin("delete", "thread")),
    "delete one": (saved, lambda side: side.store.begin("delete", "thread", "c1")),
    "delete one that is missing": (None, lambda side: side.store.begin("delete", "thread", "c1")),
    "copy": (
        lambda side: side.store.save("source", {"said": []}, "s1"),
        lambda side: side.store.begin("copy_thread", "source", "thread"),
    ),
    "copy that is refused": (
        lambda side: (saved(side), side.store.save("source", {"said": []}, "s1")),
        lambda side: side.store.begin("copy_thread", "source", "thread"),
    ),
    "copy of what is missing": (None, lambda side: side.store.begin("copy_thread", "source", "thread")),
    "vacuum": (saved, lambda side: side.store.begin("vacuum", 0)),
    "forget_tenant": (saved, lambda side: side.store.begin("forget_tenant")),
}


def checkpoints_left(side: Stores) -> Any:
    return {
        thread_id: [(name, side.store.load(thread_id, name)) for name in side.store.list_checkpoints(thread_id)]
        for thread_id in sorted(side.store.list_threads())
    }


CHECKPOINTS_MEANWHILE = (saved_over, thread_saved_anew, all_deleted)
