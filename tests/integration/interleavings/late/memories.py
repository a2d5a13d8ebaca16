"""Writes of memories whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from typing import Any

from locus_mysql.memory import Put

from ..stage import Call
from .stores import Case, Stores

PLACE = ("users", "ada")


def item(side: Stores, value: str = "tea", **options: Any) -> Call:
    return side.memories.begin("put", PLACE, "drink", {"text": value}, **options)


def item_put(side: Stores) -> None:
    item(side).finish()


def item_put_anew(side: Stores) -> None:
    side.memories.delete(PLACE, "drink")
    item(side, "water").finish()


MEMORIES: dict[str, Case] = {
    "put": (None, item),
    "put over": (item_put, lambda side: item(side, "coffee")),
    "put with a version": (item_put, lambda side: item(side, "coffee", if_version=1)),
    "put with another version": (item_put, lambda side: item(side, "coffee", if_version=2)),
    "put_batch": (None, lambda side: side.memories.begin("put_batch", [Put(PLACE, "drink", 1), Put(PLACE, "b", 2)])),
    "put_batch with another version": (
        item_put,
        lambda side: side.memories.begin("put_batch", [Put(PLACE, "drink", 1, if_version=2), Put(PLACE, "b", 2)]),
    ),
    "write_batch": (
        item_put,
        lambda side: side.memories.begin("write_batch", [Put(PLACE, "b", 2)], [(PLACE, "drink")]),
    ),
    "delete": (item_put, lambda side: side.memories.begin("delete", PLACE, "drink")),
    "delete of what is missing": (None, lambda side: side.memories.begin("delete", PLACE, "drink")),
    "clear_namespace": (item_put, lambda side: side.memories.begin("clear_namespace", PLACE)),
    "clear_namespace that is empty": (None, lambda side: side.memories.begin("clear_namespace", PLACE)),
}


def item_put_again(side: Stores) -> None:
    item(side, "water").finish()


def item_deleted(side: Stores) -> None:
    side.memories.delete(PLACE, "drink")


def memories_left(side: Stores) -> Any:
    return [(key, side.memories.get(PLACE, key)) for key in sorted(side.memories.list_keys(PLACE))]


MEMORIES_MEANWHILE = (item_put_again, item_put_anew, item_deleted)
