"""The family of transcripts: `TRANSCRIPTS`, with the declaration of its tables."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ...config import MySQLConfig
from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables, path_of_key
from ...runtime.sealing import Sealing
from ..family import DeclaredFamily
from .coding import header_row
from .statements.tables import encrypted_identity, table_names, transcript_schema

if TYPE_CHECKING:
    from ..inspection.changes import OwnerChanges
    from ..inspection.owners import OwnerThreads

_KEY = ("kind", "collection", "name", "part")


def _seal(sealing: Sealing, row: Row) -> int:
    return header_row(sealing, row["tag"], row["scope"], row["state"]).seal


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix. A row of `transcripts` has a state, and a seal over tag and scope."""
    return Tables(
        transcript_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "transcripts",
            key=_KEY,
            sealed=(Sealed("state", "state"),),
            seals=(Seal("seal", _seal),),
            noun="transcript",
            version=("revision",),
            id="sid",
            size="size_bytes",
            rows="items",
            name=path_of_key(_KEY),
            written="TIMESTAMPADD(MICROSECOND, o.revision, '1970-01-01')",
            recent="revision",
            turns=_KEY[:3],
            totals=(("items", "{item}"), ("size_bytes", "{byte}")),
        ),
        (
            Part(
                "items",
                key=("sid", "seq"),
                sealed=(
                    Sealed(
                        "content",
                        "content",
                        row=("item_id",),
                        identity=lambda row: encrypted_identity(row["item_id"], row["seq"]),
                    ),
                ),
                noun="item",
            ),
        ),
    )


class TranscriptFamily(DeclaredFamily):
    """Transcripts of conversations, as frameworks' sessions keep them."""

    name = "transcripts"
    title = "Transcripts"
    users = "TranscriptStore, and integrations for sessions, conversations, memory files and runs"
    unit = "item"

    def declaration(self, config: MySQLConfig) -> Tables:
        """See `DeclaredFamily.declaration`."""
        return tables(config.table_prefix)

    def inspection(self, config: MySQLConfig) -> OwnerThreads:
        """Return the object that reads the tenant's threads for the inspector and the API."""
        from .inspection import TranscriptThreads

        return TranscriptThreads(config)

    def changes(self, config: MySQLConfig) -> OwnerChanges:
        """Return the object that copies and deletes threads for the inspector, the API and ``rm``; None without."""
        from .inspection import TranscriptChanges

        return TranscriptChanges(config)


TRANSCRIPTS = TranscriptFamily()
