"""The family of transcripts: `TRANSCRIPTS`."""

from __future__ import annotations

from collections.abc import Sequence

from ...config import MySQLConfig
from ...dialect import Schema
from ...dialect.resealing import SealedColumn
from ...records.tables import Tables
from ..family import Maintenance
from ..inspection.sources import ThreadChanges, ThreadSource
from .statements.tables import transcript_schema
from .tables import tables


class TranscriptFamily:
    """See `Family`."""

    name = "transcripts"
    title = "Transcripts"
    users = "TranscriptStore, and integrations for sessions, conversations, memory files and runs"
    holds_threads = True
    vacuumed_by_age = False
    on_request = False

    def schema(self, config: MySQLConfig) -> Schema:
        """See `Family.schema`."""
        return transcript_schema(config.table_prefix)

    def encrypted_columns(self, config: MySQLConfig) -> Sequence[SealedColumn]:
        """See `EncryptsColumns.encrypted_columns`."""
        return tables(config.table_prefix).encrypted_columns()

    def maintenance(self, config: MySQLConfig) -> Maintenance:
        """See `Family.maintenance`."""
        from .maintenance import TranscriptMaintenance

        return TranscriptMaintenance(config)

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
