"""Writes of memU's tables whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from locus_mysql.engine.operation import Operation
from locus_mysql.errors import LocusMySQLError
from locus_mysql.integrations.memu.categories import CategoryOperations
from locus_mysql.integrations.memu.items import ItemOperations
from locus_mysql.integrations.memu.relations import RelationOperations
from locus_mysql.integrations.memu.resources import ResourceOperations

from .stores import Case, Stores

ADA = {"user_id": "ada"}


def remember(side: Stores, summary: str = "Ada likes tea", *, reinforce: bool = False) -> Operation[Any]:
    return ItemOperations(side.memu).create_item(
        memory_type="profile", summary=summary, embedding=[1.0, 0.0], user_data=ADA, reinforce=reinforce
    )


def categorize(side: Stores, description: str = "What she drinks") -> Operation[Any]:
    return CategoryOperations(side.memu).get_or_create_category(
        name="drinks", description=description, embedding=[1.0, 0.0], user_data=ADA
    )


def remembered(side: Stores) -> None:
    side.made = side.run(remember(side, reinforce=True)), side.run(categorize(side))


def linked(side: Stores) -> None:
    remembered(side)
    side.run(_link(side))


def _link(side: Stores) -> Operation[Any]:
    made_item, category = side.made
    return RelationOperations(side.memu).link_item_category(made_item.id, category.id, ADA)


def _unlink(side: Stores) -> Operation[Any]:
    made_item, category = side.made
    return RelationOperations(side.memu).unlink_item_category(made_item.id, category.id)


def _update(side: Stores, summary: str = "Ada likes coffee") -> Operation[Any]:
    return ItemOperations(side.memu).update_item(item_id=side.made[0].id, summary=summary)


def _resource(side: Stores) -> Operation[Any]:
    return ResourceOperations(side.memu).create_resource(
        url="u", modality="text", local_path="p", caption=None, embedding=None, user_data=ADA
    )


MEMU: dict[str, Case] = {
    "create_resource": (None, lambda side: side.begin(_resource(side))),
    "create_item": (None, lambda side: side.begin(remember(side))),
    "create_item to be reinforced": (None, lambda side: side.begin(remember(side, reinforce=True))),
    "reinforce": (remembered, lambda side: side.begin(remember(side, reinforce=True))),
    "update_item": (remembered, lambda side: side.begin(_update(side))),
    "delete_item": (remembered, lambda side: side.begin(ItemOperations(side.memu).delete_item(side.made[0].id))),
    "clear_items": (remembered, lambda side: side.begin(ItemOperations(side.memu).clear_items())),
    "clear_categories": (remembered, lambda side: side.begin(CategoryOperations(side.memu).clear_categories())),
    "get_or_create_category": (None, lambda side: side.begin(categorize(side))),
    "update_category": (
        remembered,
        lambda side: side.begin(
            CategoryOperations(side.memu).update_category(category_id=side.made[1].id, summary="new")
        ),
    ),
    "link": (remembered, lambda side: side.begin(_link(side))),
    "unlink": (linked, lambda side: side.begin(_unlink(side))),
}


def memu_goes_on(side: Stores) -> None:
    side.run(remember(side, reinforce=True))
    side.run(categorize(side, "Drinks"))
    if side.made:
        for operation in (_update(side, "Ada likes water"), _link(side)):
            with suppress(LocusMySQLError):
                side.run(operation)


def memu_unlinked(side: Stores) -> None:
    if side.made:
        side.run(_unlink(side))


def memu_cleared(side: Stores) -> None:
    side.run(ItemOperations(side.memu).clear_items())
    side.run(CategoryOperations(side.memu).clear_categories())
    side.run(remember(side, reinforce=True))
