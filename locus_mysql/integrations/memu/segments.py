"""The operations of memu-cli's repository of segments, the parts of recall files that are found by embedding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dialect.memu.record_filters import equals
from ...engine.operation import Operation
from .operations import MemuStore, RecordOperations, id_of, text_of
from .records import RecallFileSegment


class SegmentOperations(RecordOperations[RecallFileSegment]):
    """Operations on segments. As in memu-cli, deleting a file keeps its segments.

    Args:
        store: The store.
    """

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store, "segments", RecallFileSegment)

    def list_segments(self, where: Mapping[str, Any] | None = None) -> Operation[list[RecallFileSegment]]:
        """Return the segments that a filter selects, oldest first.

        Args:
            where: ``field`` or ``field__in``, of the segment or its scope; None selects all.

        Raises:
            InvalidInput: The filter has an unknown field; a ValueError too.
        """
        return (yield from self.find(self.store.scope.condition(self.role, where)))

    def list_segments_for_file(self, recall_file_id: str) -> Operation[list[RecallFileSegment]]:
        """Return the segments of a recall file, oldest first.

        Args:
            recall_file_id: The file's id.
        """
        return (yield from self.find(equals("recall_file_id", id_of("recall_file_id", recall_file_id))))

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
        return (
            yield from self.create(
                self.store.scope.params(user_data),
                embedding,
                recall_file_id=text_of("recall_file_id", recall_file_id),
                track=text_of("track", track),
                text=text_of("text", text),
            )
        )

    def delete_segment(self, segment_id: str) -> Operation[None]:
        """Delete a segment, if it exists. One round trip.

        Args:
            segment_id: The segment's id.
        """
        yield from self.delete("segment_id", segment_id)

    def delete_segments_for_file(self, recall_file_id: str) -> Operation[list[RecallFileSegment]]:
        """Delete the segments of a recall file; returns them. Two round trips.

        Args:
            recall_file_id: The file's id.
        """
        file_id = id_of("recall_file_id", recall_file_id)
        return list((yield from self.remove(equals("recall_file_id", file_id))).values())

    def clear_segments(self, where: Mapping[str, Any] | None = None) -> Operation[list[RecallFileSegment]]:
        """Delete the segments that a filter selects; returns them. Two round trips.

        Args:
            where: See `list_segments`.
        """
        return list((yield from self.clear(where)).values())
