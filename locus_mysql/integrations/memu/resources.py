"""The operations of memU's repository of resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.memu.record_filters import equals
from ...engine.operation import Operation
from .embeddings import decode_embedding, encode_embedding
from .operations import MemuStore, RecordOperations, text_of
from .records import Resource


class ResourceOperations(RecordOperations[Resource]):
    """Operations on resources: the files and conversations that items come from.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "resources", Resource)

    def list_resources(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, Resource]]:
        """Return the resources that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the resource or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def clear_resources(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, Resource]]:
        """Delete the resources that a filter selects, with their items; returns the resources.

        Args:
            where: See `list_resources`.
        """
        return (yield from self.clear(where))

    def create_resource(
        self,
        *,
        url: str,
        modality: str,
        local_path: str,
        caption: str | None,
        embedding: list[float] | None,
        user_data: dict[str, Any],
    ) -> Operation[Resource]:
        """Store a resource. One round trip.

        Args:
            url: The address of the resource, of at most 2,048 characters.
            modality: The kind of resource, such as ``conversation``, of at most 64 characters.
            local_path: The path of the local copy, of at most 1,024 characters.
            caption: A description of the content.
            embedding: The embedding of the caption.
            user_data: The resource's scope.

        Raises:
            InvalidInput: A text is too long, or the user model does not allow the scope.
        """
        raw = encode_embedding(embedding)
        values = self.new(
            self.store.scope.params(user_data),
            url=text_of("url", url),
            modality=text_of("modality", modality),
            local_path=text_of("local_path", local_path),
            caption=text_of("caption", caption, optional=True),
            embedding=raw,
        )
        read = self.store.sql.list(self.role, self.tenant, equals("id", values["id"]))
        rows = yield from self.store.write(self.store.sql.insert(self.role, values), read=read)
        return self.read(rows[0]) if rows else self.gone(values, embedding=decode_embedding(raw))
