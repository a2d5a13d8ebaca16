"""The declaration of the tables of transcripts: `tables`."""

from __future__ import annotations

from functools import lru_cache

from ...records.tables import Owner, Part, Seal, Sealed, Tables
from .coding import header_row
from .statements.tables import encrypted_identity, table_names, transcript_schema


@lru_cache(maxsize=16)
def tables(table_prefix: str) -> Tables:
    """Return the tables with a prefix. A row of `transcripts` has a state, and a seal over tag and scope."""
    return Tables(
        transcript_schema(table_prefix),
        table_names(table_prefix),
        Owner(
            "transcripts",
            key=("kind", "collection", "name", "part"),
            sealed=(Sealed("state", "state"),),
            seal=Seal("seal", lambda sealing, row: header_row(sealing, row["tag"], row["scope"], row["state"]).seal),
            noun="transcript",
            version=("revision",),
            id="sid",
            size="size_bytes",
            stamp="revision",
            rows="items",
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
