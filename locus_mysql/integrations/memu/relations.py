"""The operations of memU's repository of relations between items and categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.memu.conditions import Condition, equals
from ...engine.operation import Operation
from ...errors import NotFound
from .operations import MemuStore, RecordOperations, id_of
from .records import CategoryItem


class RelationOperations(RecordOperations[CategoryItem]):
    """Which items belong to which categories. A relation goes with its item, and with its category.

    Args:
        store: What is shared.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "links", CategoryItem)

    def list_relations(self, where: Mapping[str, Any] | None = None) -> Operation[list[CategoryItem]]:
        """The relations that a filter describes, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the relation or its scope; None values ask for nothing.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.find(self.store.scope.condition(self.role, where)))

    def link_item_category(self, item_id: str, cat_id: str, user_data: dict[str, Any]) -> Operation[CategoryItem]:
        """Have an item belong to a category; if it does already, the relation stays as it is. One round trip.

        Args:
            item_id: The item.
            cat_id: The category.
            user_data: The scope of the relation.

        Raises:
            NotFound: There is no such item or no such category; a KeyError too.
            InvalidInput: The user model does not allow the scope.
        """
        item, category = id_of("item_id", item_id), id_of("cat_id", cat_id)
        scope = self.store.scope.params(user_data)
        link = self.store.sql.link(self.new(scope, item_id=item, category_id=category), tuple(scope))
        both = Condition.all([equals("item_id", item), equals("category_id", category)])
        rows = yield from self.store.write(link, read=self.store.sql.list(self.role, self.tenant, both))
        if not rows:
            raise NotFound(f"Item with id {item_id} or category with id {cat_id} not found")
        return self.read(rows[0])

    def unlink_item_category(self, item_id: str, cat_id: str) -> Operation[None]:
        """Have an item no longer belong to a category; nothing happens if it does not. One round trip.

        Args:
            item_id: The item.
            cat_id: The category.
        """
        item, category = id_of("item_id", item_id), id_of("cat_id", cat_id)
        yield from self.store.write(self.store.sql.unlink(self.tenant, item, category))

    def get_item_categories(self, item_id: str) -> Operation[list[CategoryItem]]:
        """The relations of an item, oldest first.

        Args:
            item_id: The item.
        """
        return (yield from self.find(equals("item_id", id_of("item_id", item_id))))
