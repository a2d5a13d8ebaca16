"""The operations of memU's repository of categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.statement import Param
from ...engine.operation import Operation
from .embeddings import encode_embedding
from .operations import MemuStore, RecordOperations, id_of, text_of
from .records import MemoryCategory


class CategoryOperations(RecordOperations[MemoryCategory]):
    """Operations on categories. A scope has one category of each name; ``N`` and ``n`` are two names.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "categories", MemoryCategory)

    def list_categories(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, MemoryCategory]]:
        """Return the categories that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the category or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def clear_categories(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, MemoryCategory]]:
        """Delete the categories that a filter selects, with their relations; returns the categories.

        Args:
            where: See `list_categories`.
        """
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
        return (
            yield from self.complete(
                user_data,
                embedding,
                name=text_of("name", name),
                description=text_of("description", description),
                summary=None,
            )
        )

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
        id = id_of("category_id", category_id)
        given: dict[str, Param] = {
            "name": text_of("name", name, optional=True),
            "description": text_of("description", description, optional=True),
            "embedding": encode_embedding(embedding),
            "summary": text_of("summary", summary, optional=True),
        }
        return (yield from self.change(id, f"The scope has another category named {name!r}", given))
