"""The declaration of the tables of transcripts: `tables`."""

from __future__ import annotations

from functools import lru_cache

from ...records.tables import Owner, Part, Row, Seal, Sealed, Tables, path_of_key
from ...runtime.sealing import Sealing
from .coding import header_row
from .statements.tables import encrypted_identity, table_names, transcript_schema

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
