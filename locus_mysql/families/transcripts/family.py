"""The family of transcripts: `TRANSCRIPTS`."""

from __future__ import annotations

from ...config import MySQLConfig
from ...records.tables import Tables
from ..family import DeclaredFamily
from ..inspection.sources import ThreadChanges, ThreadSource
from .tables import tables


class TranscriptFamily(DeclaredFamily):
    """See `Family`."""

    name = "transcripts"
    title = "Transcripts"
    users = "TranscriptStore, and integrations for sessions, conversations, memory files and runs"
    holds_threads = True

    def tables(self, config: MySQLConfig) -> tuple[Tables, ...]:
        """See `Family.tables`."""
        return (tables(config.table_prefix),)

    def inspection(self, config: MySQLConfig) -> ThreadSource:
        """See `Family.inspection`."""
        from .inspection import TranscriptThreads

        return TranscriptThreads(config)

    def changes(self, config: MySQLConfig) -> ThreadChanges:
        """See `Family.changes`."""
        from .inspection import TranscriptChanges

        return TranscriptChanges(config)


TRANSCRIPTS = TranscriptFamily()
