"""The operations of memu-cli's repositories: recall files, segments (their parts that embeddings find) and resources.

memU has the same resources, with other methods.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, cast

from ...engine.operation import Batch, Operation
from ...errors import InvalidInput
from ...families.memories.vectors.matrix import Matrix
from ...runtime.arguments import check_limit, check_text
from . import statements
from .operations import RecordOperations, Where
from .records import RecallFile, RecallFileSegment, Resource, WorkspaceResource
from .searching import query_of
from .statements import Page, equals

#: The position of a recall file in a list: its track, name and id.
Position: TypeAlias = tuple[str, str, str]

#: The columns that make up a position.
ORDER = ("track", "name", "id")


class RecallFileOperations(RecordOperations[RecallFile]):
    """Operations on recall files. A scope has one file of each name in each track; ``N`` and ``n`` are two names."""

    role, noun, record = "recall_files", "Recall file", RecallFile
    view: ClassVar[str] = "recall_files"

    def list_recall_files_page(
        self, where: Where, *, after: Position | None, limit: int
    ) -> Operation[tuple[list[RecallFile], Position | None]]:
        """Return one page of the recall files that a filter selects, ordered by track, name and id. One round trip.

        Texts are ordered by code point.

        Args:
            where: See `RecordOperations.conditions`.
            after: The position that the page before returned; None for the first page.
            limit: The maximum number of files, at least 1.

        Returns:
            The files, and the position of the last one if more files follow, else None.

        Raises:
            InvalidInput: The filter has an unknown field, or ``after`` is not a position.
        """
        conditions = self.conditions(where)
        size = check_limit(limit, "limit", 1)
        if after is not None:
            if not isinstance(after, tuple | list) or len(after) != len(ORDER):
                raise InvalidInput("after must be a track, a name and an id, as the page before returned them.")
            after = cast(Position, tuple(check_text(value, name) for name, value in zip(ORDER, after, strict=True)))
        # One more than the page has, to learn whether more files follow.
        files = yield from self.find(conditions, Page(ORDER, after, size + 1))
        if len(files) <= size:
            return files, None
        last = files[size - 1]
        return files[:size], (last.track, last.name, last.id)

    def get_or_create_recall_file(
        self,
        *,
        name: str,
        description: str,
        embedding: list[float],
        user_data: dict[str, Any],
        track: str = "memory",
    ) -> Operation[RecallFile]:
        """Return the recall file of this name, track and scope; create it if there is none. One round trip.

        Concurrent calls of several processes create one file. An existing file gets the embedding or the description
        only if its own is empty; if it gets neither, it stays as it is, with its ``updated_at``.

        Args:
            name: The name, of at most 255 characters.
            description: A description of the content.
            embedding: The embedding of name and description.
            user_data: The file's scope. Fields that are missing are those of the user model's defaults.
            track: The track, such as ``memory`` or ``skill``, of at most 64 characters.

        Raises:
            InvalidInput: A text is too long, or the user model does not allow the scope.
        """
        texts = {"name": name, "track": track, "description": description}
        return (yield from self.complete(user_data, embedding, **texts, content=None))

    def update_recall_file(
        self,
        *,
        recall_file_id: str,
        name: str | None = None,
        description: str | None = None,
        embedding: list[float] | None = None,
        content: str | None = None,
    ) -> Operation[RecallFile]:
        """Change the given fields of a recall file, and its ``updated_at``. One round trip.

        Args:
            recall_file_id: The file's id.
            name: The new name, of at most 255 characters.
            description: A description of the content.
            embedding: The embedding of name and description.
            content: The content.

        Raises:
            NotFound: There is no such file; a KeyError too.
            InvalidInput: The scope has another file with this name in the track.
        """
        return (
            yield from self.change_unless_taken(
                check_text(recall_file_id, "recall_file_id"),
                f"The scope has another recall file named {name!r} in the same track",
                name=name,
                description=description,
                embedding=embedding,
                content=content,
            )
        )


class SegmentOperations(RecordOperations[RecallFileSegment]):
    """Operations on segments. As in memu-cli, deleting a file keeps its segments."""

    role, noun, record = "segments", "Segment", RecallFileSegment
    view: ClassVar[str] = "segments"
    is_listed = True

    def list_segments_for_file(self, recall_file_id: str) -> Operation[list[RecallFileSegment]]:
        """Return the segments of a recall file, oldest first."""
        return (yield from self.find(equals(recall_file_id=check_text(recall_file_id, "recall_file_id"))))

    def create_segment(
        self,
        *,
        recall_file_id: str,
        text: str,
        embedding: list[float] | None,
        user_data: dict[str, Any],
        track: str = "memory",
    ) -> Operation[RecallFileSegment]:
        """Store a segment. One round trip.

        Args:
            recall_file_id: The file's id, of at most 36 characters. The file need not exist.
            text: The text.
            embedding: The embedding of the text.
            user_data: The segment's scope.
            track: The file's track, of at most 64 characters.

        Raises:
            InvalidInput: A value is too long, or the user model does not allow the scope.
        """
        texts = {"recall_file_id": recall_file_id, "track": track, "text": text}
        return (yield from self.create(user_data, embedding, **texts))

    def delete_segment(self, segment_id: str) -> Operation[None]:
        """Delete a segment, if it exists. One round trip."""
        yield from self.delete("segment_id", segment_id)

    def delete_segments_for_file(self, recall_file_id: str) -> Operation[list[RecallFileSegment]]:
        """Delete the segments of a recall file; return them. Two round trips."""
        of_file = equals(recall_file_id=check_text(recall_file_id, "recall_file_id"))
        return list((yield from self.remove(of_file)).values())


class ResourceOperations(RecordOperations[Resource]):
    """Operations on memU's resources: the files and conversations that items come from."""

    role, noun, record = "resources", "Resource", Resource
    view: ClassVar[str] = "resources"

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
        texts = {"url": url, "modality": modality, "local_path": local_path, "caption": caption}
        return (yield from self.create(user_data, embedding, **texts, track=None))


class WorkspaceResourceOperations(RecordOperations[WorkspaceResource]):
    """Operations on memu-cli's resources: the files of a workspace."""

    role, noun, record = "resources", "Resource", WorkspaceResource
    view: ClassVar[str] = "resources"

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
        texts = {"url": url, "modality": "", "local_path": local_path, "caption": caption, "track": track}
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
            where: See `RecordOperations.conditions`.

        Raises:
            InvalidInput: The query is not an embedding, or the filter has an unknown field.
        """
        wanted = check_limit(top_k, "top_k", -(2**31))
        conditions = self.conditions(where)
        query = query_of(query_vec)
        if query is None or wanted < 1:
            return []
        dims = len(query.values)
        (found,) = yield Batch.of(self.records.make(statements.RESOURCE_EMBEDDINGS, conditions, dims=dims))
        matrix: Matrix[str] = Matrix(dims)
        matrix.fill((id, embedding) for id, embedding, _ in self.seals.fit_embeddings(found.rows))
        return matrix.best(query, wanted, undefined=0.0)
