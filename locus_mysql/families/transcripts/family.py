"""The family of transcripts: `TRANSCRIPTS`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...records.tables import Tables
from ..family import DeclaredFamily
from .tables import tables

if TYPE_CHECKING:
    from ..inspection.owners import OwnerChanges, OwnerThreads


class TranscriptFamily(DeclaredFamily):
    """See `Family`."""

    name = "transcripts"
    title = "Transcripts"
    users = "TranscriptStore, and integrations for sessions, conversations, memory files and runs"
    unit = "item"

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix)

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """See `Family.inspection`."""
        from .inspection import TranscriptThreads

        return TranscriptThreads(config)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """See `Family.changes`."""
        from .inspection import TranscriptChanges

        return TranscriptChanges(config)


TRANSCRIPTS = TranscriptFamily()
