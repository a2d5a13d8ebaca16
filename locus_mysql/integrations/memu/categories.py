"""The operations of memU's repositories of categories, and of relations between items and categories."""

from __future__ import annotations

from typing import Any, ClassVar

from ...engine.operation import Operation
from ...errors import NotFound
from ...runtime.arguments import check_text
from . import statements
from .operations import RecordOperations, Where, text_of
from .records import CategoryItem, MemoryCategory, encode_embedding
from .statements import equals


class CategoryOperations(RecordOperations[MemoryCategory]):
    """Operations on categories. A scope has one category of each name; ``N`` and ``n`` are two names."""

    role, noun, record = "categories", "Category", MemoryCategory
    view: ClassVar[str] = "categories"

    def list_categories(self, where: Where = None) -> Operation[dict[str, MemoryCategory]]:
        """Return the categories that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the category or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def clear_categories(self, where: Where = None) -> Operation[dict[str, MemoryCategory]]:
        """Delete the categories that a filter selects, with their relations; return the categories."""
        return (yield from self.clear(where))

    def get_or_create_category(
        self, *, name: str, description: str, embedding: list[float], user_data: dict[str, Any]
    ) -> Operation[MemoryCategory]:
        """Return the category of this name and scope; create it if there is none. One round trip.

        Concurrent calls of several processes create one category. An existing category gets the embedding or the
        description only if it has none.

        Args:
            name: The name, of at most 255 characters.
            description: A description of the items that belong to the category.
            embedding: The embedding of name and description.
            user_data: The category's scope.

        Raises:
            InvalidInput: The name is too long, or the user model does not allow the scope.
        """
        texts = {"name": text_of("name", name), "description": text_of("description", description)}
        return (yield from self.complete(user_data, embedding, **texts, summary=None))

    def update_category(
        self,
        *,
        category_id: str,
        name: str | None = None,
        description: str | None = None,
        embedding: list[float] | None = None,
        summary: str | None = None,
    ) -> Operation[MemoryCategory]:
        """Change the given fields of a category. One round trip.

        Args:
            category_id: The category's id.
            name: The new name, of at most 255 characters.
            description: A description of the items that belong to the category.
            embedding: The embedding of name and description.
            summary: A summary of the category's items.

        Raises:
            NotFound: There is no such category; a KeyError too.
            InvalidInput: The scope has another category with this name.
        """
        return (
            yield from self.change_unless_taken(
                check_text(category_id, "category_id"),
                f"The scope has another category named {name!r}",
                name=text_of("name", name, optional=True),
                description=text_of("description", description, optional=True),
                embedding=encode_embedding(embedding),
                summary=text_of("summary", summary, optional=True),
            )
        )


class RelationOperations(RecordOperations[CategoryItem]):
    """Operations on relations: which items belong to which categories.

    Deleting an item or a category deletes its relations.
    """

    role, noun, record = "links", "Relation", CategoryItem
    view: ClassVar[str] = "relations"
    is_listed = True

    def list_relations(self, where: Where = None) -> Operation[list[CategoryItem]]:
        """Return the relations that a filter selects, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the relation or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.find(self.conditions(where)))

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
        both = {"item_id": check_text(item_id, "item_id"), "category_id": check_text(cat_id, "cat_id")}
        columns = self.new(self.store.scope.params(user_data), **both)
        link = self.records.insert(columns, declared=statements.LINK)
        rows = yield from self.store.write(link, read=self.records.make(statements.LIST, equals(**both)))
        if not rows:
            raise NotFound(f"Item with id {item_id} or category with id {cat_id} not found")
        return self.read(rows[0])

    def unlink_item_category(self, item_id: str, cat_id: str) -> Operation[None]:
        """Remove an item from a category, if it belongs to it. One round trip."""
        item, category = check_text(item_id, "item_id"), check_text(cat_id, "cat_id")
        yield from self.store.write(self.records.make(statements.UNLINK, item_id=item, category_id=category))

    def get_item_categories(self, item_id: str) -> Operation[list[CategoryItem]]:
        """Return the relations of an item, oldest first."""
        return (yield from self.find(equals(item_id=check_text(item_id, "item_id"))))
