"""The operations of memU's repository of relations between items and categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.memu.record_filters import RecordFilter, equals
from ...engine.operation import Operation
from ...errors import NotFound
from .operations import MemuStore, RecordOperations, id_of
from .records import CategoryItem


class RelationOperations(RecordOperations[CategoryItem]):
    """Operations on relations: which items belong to which categories.

    Deleting an item or a category deletes its relations.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "links", CategoryItem)

    def list_relations(self, where: Mapping[str, Any] | None = None) -> Operation[list[CategoryItem]]:
        """Return the relations that a filter selects, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the relation or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.find(self.store.scope.condition(self.role, where)))

    def link_item_category(self, item_id: str, cat_id: str, user_data: dict[str, Any]) -> Operation[CategoryItem]:
        """Add an item to a category; an existing relation stays as it is. One round trip.

        Args:
            item_id: The item's id.
            cat_id: The category's id.
            user_data: The relation's scope.

        Raises:
            NotFound: There is no such item or no such category; a KeyError too.
            InvalidInput: The user model does not allow the scope.
        """
        item, category = id_of("item_id", item_id), id_of("cat_id", cat_id)
        scope = self.store.scope.params(user_data)
        link = self.store.sql.link(self.new(scope, item_id=item, category_id=category), tuple(scope))
        both = RecordFilter.all([equals("item_id", item), equals("category_id", category)])
        rows = yield from self.store.write(link, read=self.store.sql.list(self.role, self.tenant, both))
        if not rows:
            raise NotFound(f"Item with id {item_id} or category with id {cat_id} not found")
        return self.read(rows[0])

    def unlink_item_category(self, item_id: str, cat_id: str) -> Operation[None]:
        """Remove an item from a category, if it belongs to it. One round trip.

        Args:
            item_id: The item's id.
            cat_id: The category's id.
        """
        item, category = id_of("item_id", item_id), id_of("cat_id", cat_id)
        yield from self.store.write(self.store.sql.unlink(self.tenant, item, category))

    def get_item_categories(self, item_id: str) -> Operation[list[CategoryItem]]:
        """Return the relations of an item, oldest first.

        Args:
            item_id: The item's id.
        """
        return (yield from self.find(equals("item_id", id_of("item_id", item_id))))
