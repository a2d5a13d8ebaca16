"""The records that memU works with, and their forms for a user model."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sized
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ...families.memories.vectors.coding import decode_vector, encode_floats, finite_floats


class BaseRecord(BaseModel):
    """The fields of all records. Times are those of the server, in UTC."""

    id: str = Field(default_factory=lambda: str(uuid.uuid4()))
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = Field(default_factory=lambda: datetime.now(UTC))


class WorkspaceResource(BaseRecord):
    """A file of a workspace, as memu-cli stores it."""

    url: str
    local_path: str
    caption: str | None = None
    embedding: list[float] | None = None
    track: str | None = None


class Resource(WorkspaceResource):
    """A source of items: a file or a conversation. Its track is None, unless memu-cli stored it."""

    modality: str


class MemoryItem(BaseRecord):
    """A memory."""

    resource_id: str | None
    memory_type: str
    summary: str
    embedding: list[float] | None = None
    happened_at: datetime | None = None
    extra: dict[str, Any] = {}


class MemoryCategory(BaseRecord):
    """A category of items."""

    name: str
    description: str
    embedding: list[float] | None = None
    summary: str | None = None


class CategoryItem(BaseRecord):
    """A relation: an item belongs to a category."""

    item_id: str
    category_id: str


class RecallFile(BaseRecord):
    """A file of memu-cli's: what an agent remembers (track ``memory``), or a skill (``skill``)."""

    name: str
    track: str = "memory"
    description: str
    embedding: list[float] | None = None
    content: str | None = None


class RecallFileSegment(BaseRecord):
    """A part of a recall file that is found by its embedding."""

    recall_file_id: str
    track: str = "memory"
    text: str
    embedding: list[float] | None = None


class DefaultUserModel(BaseModel):
    """The default scope of records, as in memU."""

    user_id: str | None = None


class RecallUserModel(DefaultUserModel):
    """The default scope of records, as in memu-cli."""

    agent_id: str | None = None


R = TypeVar("R", bound=BaseRecord)

#: The kinds of records by the roles of their tables.
RECORDS: Mapping[str, type[BaseRecord]] = {
    "resources": Resource,
    "items": MemoryItem,
    "categories": MemoryCategory,
    "links": CategoryItem,
    "recall_files": RecallFile,
    "segments": RecallFileSegment,
}


def scoped(user_model: type[BaseModel], record: type[R]) -> type[R]:
    """Return a class of records with the fields of a user model."""
    kind: type[R] = _scoped(user_model, record)
    return kind


@lru_cache(maxsize=256)  # records of two databases are equal only if they are of one class
def _scoped(user_model: type[BaseModel], record: type[BaseRecord]) -> type[Any]:
    name = f"{user_model.__name__}{record.__name__}"
    return type(name, (user_model, record), {"model_config": ConfigDict(extra="allow"), "__module__": __name__})


def content_hash(summary: str, memory_type: str) -> str:
    """Return memU's hash of type and summary, which ignores case and white space."""
    text = f"{memory_type}:{' '.join(summary.lower().split())}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encode_embedding(embedding: Any, what: str = "The embedding") -> bytes | None:
    """Return an embedding as it is stored, as 32-bit floats, little-endian; None for none.

    Raises:
        InvalidInput: The embedding is not a list of up to 16,383 numbers, or contains NaN or an infinity.
    """
    if embedding is None:
        return None
    if isinstance(embedding, Sized) and len(embedding) == 0 and not isinstance(embedding, str | bytes):
        return b""  # other stores accept empty embeddings; no search finds them
    return encode_floats(finite_floats(embedding, None, what))


def decode_embedding(raw: bytes | None) -> list[float] | None:
    """Return the numbers of a stored embedding."""
    return None if raw is None else decode_vector(raw).tolist()
