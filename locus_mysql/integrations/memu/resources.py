"""The operations of memU's repository of resources, and of memu-cli's."""

from __future__ import annotations

from typing import Any, ClassVar

from ...engine.operation import Batch, Operation
from ...families.memories.arguments import check_count
from ...families.memories.vectors.matrix import Matrix
from . import statements
from .operations import RecordOperations, Where, text_of
from .records import Resource, WorkspaceResource
from .searching import query_of


class ResourceOperations(RecordOperations[Resource]):
    """Operations on memU's resources: the files and conversations that items come from."""

    role, noun, record = "resources", "Resource", Resource
    view: ClassVar[str] = "resources"

    def list_resources(self, where: Where = None) -> Operation[dict[str, Resource]]:
        """Return the resources that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the resource or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def clear_resources(self, where: Where = None) -> Operation[dict[str, Resource]]:
        """Delete the resources that a filter selects, with their items; return the resources."""
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
        given = {"url": url, "modality": modality, "local_path": local_path}
        texts = {field: text_of(field, text) for field, text in given.items()}
        texts["caption"] = text_of("caption", caption, optional=True)
        return (yield from self.create(user_data, embedding, **texts, track=None))


class WorkspaceResourceOperations(RecordOperations[WorkspaceResource]):
    """Operations on memu-cli's resources: the files of a workspace."""

    role, noun, record = "resources", "Resource", WorkspaceResource
    view: ClassVar[str] = "resources"

    def list_resources(self, where: Where = None) -> Operation[dict[str, WorkspaceResource]]:
        """Return the resources that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the resource or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def clear_resources(self, where: Where = None) -> Operation[dict[str, WorkspaceResource]]:
        """Delete the resources that a filter selects, with their items; return the resources."""
        return (yield from self.clear(where))

    def create_resource(
        self,
        *,
        url: str,
        local_path: str,
        caption: str | None,
        embedding: list[float] | None,
        user_data: dict[str, Any],
        track: str | None = None,
    ) -> Operation[WorkspaceResource]:
        """Store a resource. One round trip.

        Args:
            url: The address of the resource, of at most 2,048 characters.
            local_path: The path of the local copy, of at most 1,024 characters.
            caption: A description of the content.
            embedding: The embedding of the caption.
            user_data: The resource's scope.
            track: The track, such as ``workspace``, of at most 64 characters.

        Raises:
            InvalidInput: A text is too long, or the user model does not allow the scope.
        """
        texts = {"url": text_of("url", url), "modality": "", "local_path": text_of("local_path", local_path)}
        for field, text in (("caption", caption), ("track", track)):
            texts[field] = text_of(field, text, optional=True)
        return (yield from self.create(user_data, embedding, **texts))

    def delete_resource(self, resource_id: str) -> Operation[None]:
        """Delete a resource, if it exists. One round trip."""
        yield from self.delete("resource_id", resource_id)

    def vector_search_resources(
        self, query_vec: list[float], top_k: int, where: Where = None
    ) -> Operation[list[tuple[str, float]]]:
        """Return the ids of the resources nearest to a query, with their cosines, best first. One round trip.

        The search is exact. Only resources with an embedding of the query's width are compared.

        Args:
            query_vec: An embedding.
            top_k: The maximum number of resources to return; none for 0 or less.
            where: See `list_resources`.

        Raises:
            InvalidInput: The query is not an embedding, or the filter has an unknown field.
        """
        wanted = check_count(top_k, "top_k", -(2**31))
        conditions = self.conditions(where)
        query = query_of(query_vec)
        if query is None or wanted < 1:
            return []
        dims = len(query.values)
        (found,) = yield Batch.of(self.records.make(statements.RESOURCE_EMBEDDINGS, conditions, dims=dims))
        matrix: Matrix[str] = Matrix(dims)
        matrix.fill((id, embedding) for id, embedding, _ in self.seals.fit_embeddings(found.rows))
        return matrix.best(query, wanted, undefined=0.0)
