"""The operations of memu-cli's repository of recall files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from ...dialect.memu.record_filters import page_after
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput
from ...families.memories.arguments import check_count
from .embeddings import encode_embedding
from .operations import MemuStore, RecordOperations, id_of, text_of
from .records import RecallFile

#: The position of a recall file in a list: its track, name and id.
Position: TypeAlias = tuple[str, str, str]

#: The columns that make up a position.
ORDER = ("track", "name", "id")


class RecallFileOperations(RecordOperations[RecallFile]):
    """Operations on recall files. A scope has one file of each name in each track; ``N`` and ``n`` are two names.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "recall_files", RecallFile)

    def list_recall_files(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, RecallFile]]:
        """Return the recall files that a filter selects, by id, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the file or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.where(where))

    def list_recall_files_page(
        self, where: Mapping[str, Any] | None, *, after: Position | None, limit: int
    ) -> Operation[tuple[list[RecallFile], Position | None]]:
        """Return one page of the recall files that a filter selects, ordered by track, name and id. One round trip.

        Texts are ordered by code point.

        Args:
            where: See `list_recall_files`.
            after: The position that the page before returned; None for the first page.
            limit: The maximum number of files, at least 1.

        Returns:
            The files, and the position of the last one if more files follow, else None.

        Raises:
            InvalidInput: The filter has an unknown field, or ``after`` is not a position.
        """
        condition = self.store.scope.condition(self.role, where)
        size = check_count(limit, "limit", 1)
        if after is not None:
            if not isinstance(after, tuple | list) or len(after) != len(ORDER):
                raise InvalidInput("after must be a track, a name and an id, as the page before returned them.")
            after = cast(Position, tuple(id_of(name, value) for name, value in zip(ORDER, after, strict=True)))
        # One more than the page has, to learn whether more files follow.
        page = page_after(condition, ORDER, after, size + 1)
        (found,) = yield Batch.of(self.store.sql.list(self.role, self.tenant, page))
        files = [self.read(row) for row in found.rows]
        if len(files) <= size:
            return files, None
        last = files[size - 1]
        return files[:size], (last.track, last.name, last.id)

    def clear_recall_files(self, where: Mapping[str, Any] | None = None) -> Operation[dict[str, RecallFile]]:
        """Delete the recall files that a filter selects; returns them. Their segments stay.

        Args:
            where: See `list_recall_files`.
        """
        return (yield from self.clear(where))

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
        return (
            yield from self.complete(
                user_data,
                embedding,
                name=text_of("name", name),
                track=text_of("track", track),
                description=text_of("description", description),
                content=None,
            )
        )

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
        id = id_of("recall_file_id", recall_file_id)
        taken = f"The scope has another recall file named {name!r} in the same track"
        given = {
            "name": text_of("name", name, optional=True),
            "description": text_of("description", description, optional=True),
            "embedding": encode_embedding(embedding),
            "content": text_of("content", content, optional=True),
        }
        return (yield from self.change(id, taken, given))
