"""Rows that statements about memU's records return."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple


class MarkRow(NamedTuple):
    """The values by which an item with an embedding is ranked.

    Args:
        id: The item's id.
        mark: The mark of the embedding; None if another program wrote the row.
        embedding: The embedding, if it was requested.
        count_json: JSON text of ``extra.reinforcement_count``, if it was requested.
        reinforced_at_json: JSON text of ``extra.last_reinforced_at``, if it was requested.
    """

    id: str
    mark: int | None
    embedding: bytes | None
    count_json: str | None
    reinforced_at_json: str | None


class FingerprintRow(NamedTuple):
    """The number of embeddings, and the XOR and the sum of their marks."""

    total: int
    xor: Decimal | int
    sum: Decimal | int


class EmbeddingRow(NamedTuple):
    """The embedding of an item, with its mark."""

    id: str
    mark: int
    embedding: bytes


class AgeRow(NamedTuple):
    """The id of a record, and when it was created."""

    id: str
    created_at: datetime


class TotalRow(NamedTuple):
    """A number of records."""

    total: int


class IdRow(NamedTuple):
    """The id of a record."""

    id: str


class TimeRow(NamedTuple):
    """The server's time, in UTC."""

    now: datetime
