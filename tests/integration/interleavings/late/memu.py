"""Writes of memU's tables whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from locus_mysql.engine.operation import Operation
from locus_mysql.errors import LocusMySQLError
from locus_mysql.integrations.memu.items import CategoryOperations, ItemOperations, RelationOperations
from locus_mysql.integrations.memu.operations import RecordOperations
from locus_mysql.integrations.memu.recall_files import (
    RecallFileOperations,
    ResourceOperations,
    SegmentOperations,
    WorkspaceResourceOperations,
)

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


def _clear(operations: RecordOperations[Any]) -> Operation[Any]:
    return operations.remove(operations.conditions(None))


MEMU: dict[str, Case] = {
    "create_resource": (None, lambda side: side.begin(_resource(side))),
    "create_item": (None, lambda side: side.begin(remember(side))),
    "create_item to be reinforced": (None, lambda side: side.begin(remember(side, reinforce=True))),
    "reinforce": (remembered, lambda side: side.begin(remember(side, reinforce=True))),
    "update_item": (remembered, lambda side: side.begin(_update(side))),
    "delete_item": (remembered, lambda side: side.begin(ItemOperations(side.memu).delete_item(side.made[0].id))),
    "clear_items": (remembered, lambda side: side.begin(_clear(ItemOperations(side.memu)))),
    "clear_categories": (remembered, lambda side: side.begin(_clear(CategoryOperations(side.memu)))),
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
    side.run(_clear(ItemOperations(side.memu)))
    side.run(_clear(CategoryOperations(side.memu)))
    side.run(remember(side, reinforce=True))


def recall_file(side: Stores, description: str = "") -> Operation[Any]:
    return RecallFileOperations(side.memu).get_or_create_recall_file(
        name="drinks", description=description, embedding=[], user_data=ADA
    )


def segment(side: Stores, text: str = "Ada likes tea") -> Operation[Any]:
    return SegmentOperations(side.memu).create_segment(recall_file_id="file", text=text, embedding=[1.0], user_data=ADA)


def workspace_resource(side: Stores) -> Operation[Any]:
    return WorkspaceResourceOperations(side.memu).create_resource(
        url="u", local_path="p", caption=None, embedding=[1.0], user_data=ADA, track="workspace"
    )


def recalled(side: Stores) -> None:
    side.made = side.run(recall_file(side)), side.run(segment(side)), side.run(workspace_resource(side))


def _describe(side: Stores, content: str = "tea") -> Operation[Any]:
    return RecallFileOperations(side.memu).update_recall_file(recall_file_id=side.made[0].id, content=content)


RECALL: dict[str, Case] = {
    "get_or_create_recall_file": (None, lambda side: side.begin(recall_file(side, "What she drinks"))),
    "get_or_create_recall_file that fills in": (recalled, lambda side: side.begin(recall_file(side, "Drinks"))),
    "update_recall_file": (recalled, lambda side: side.begin(_describe(side))),
    "clear_recall_files": (recalled, lambda side: side.begin(_clear(RecallFileOperations(side.memu)))),
    "create_segment": (None, lambda side: side.begin(segment(side))),
    "delete_segment": (
        recalled,
        lambda side: side.begin(SegmentOperations(side.memu).delete_segment(side.made[1].id)),
    ),
    "delete_segments_for_file": (
        recalled,
        lambda side: side.begin(SegmentOperations(side.memu).delete_segments_for_file("file")),
    ),
    "clear_segments": (recalled, lambda side: side.begin(_clear(SegmentOperations(side.memu)))),
    "create_resource of a workspace": (None, lambda side: side.begin(workspace_resource(side))),
    "delete_resource": (
        recalled,
        lambda side: side.begin(WorkspaceResourceOperations(side.memu).delete_resource(side.made[2].id)),
    ),
}


def recall_goes_on(side: Stores) -> None:
    side.run(recall_file(side, "What Ada drinks"))
    side.run(segment(side, "Ada likes coffee"))
    if side.made:
        with suppress(LocusMySQLError):
            side.run(_describe(side, "coffee"))


def recall_cleared(side: Stores) -> None:
    side.run(_clear(RecallFileOperations(side.memu)))
    side.run(_clear(SegmentOperations(side.memu)))
    side.run(_clear(WorkspaceResourceOperations(side.memu)))
    side.run(recall_file(side, "What Ada drinks"))


def memu_left(side: Stores) -> Any:
    items, categories = side.run(ItemOperations(side.memu).where()), CategoryOperations(side.memu)
    links = side.run(RelationOperations(side.memu).where())
    resources = side.run(ResourceOperations(side.memu).where())
    return (
        sorted((one.summary, one.extra.get("reinforcement_count")) for one in items.values()),
        [(one.name, one.description, one.summary) for one in side.run(categories.where()).values()],
        (len(links), len(resources)),
    )


def recall_left(side: Stores) -> Any:
    files = side.run(RecallFileOperations(side.memu).where())
    resources = side.run(WorkspaceResourceOperations(side.memu).where())
    return (
        [(one.name, one.description, one.content) for one in files.values()],
        [one.text for one in side.run(SegmentOperations(side.memu).where()).values()],
        [one.url for one in resources.values()],
    )


MEMU_MEANWHILE = (memu_goes_on, memu_unlinked, memu_cleared)
RECALL_MEANWHILE = (recall_goes_on, recall_cleared)
