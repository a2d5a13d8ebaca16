"""What the models of requests and answers have in common: how strictly they are read, and the bounds of ids."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

#: Text that can be a key.
WITHOUT_NUL = r"^[^\u0000]*$"

ThreadId: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=512, pattern=WITHOUT_NUL, description="A thread; compared by code point.")
]
CheckpointId: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=128, pattern=WITHOUT_NUL, description="A checkpoint of the thread.")
]
SessionId: TypeAlias = Annotated[
    str,
    Field(min_length=1, max_length=512, pattern=WITHOUT_NUL, description="A session; compared by code point."),
]
VariableKey: TypeAlias = Annotated[
    str, Field(min_length=1, max_length=512, pattern=WITHOUT_NUL, description="A variable's key.")
]

#: How many entries an answer may have.
PAGE_LIMIT = 1_000

Limit: TypeAlias = Annotated[int, Field(ge=1, le=PAGE_LIMIT, description="At most this many.")]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=2**31, description="Leave out this many first.")]
Cursor: TypeAlias = Annotated[
    str | None, Field(max_length=4_096, description="What the page before gave, for the next one.")
]
NextCursor: TypeAlias = Annotated[
    str | None, Field(description="What to ask for the next page with; null if this is the last one.")
]
Json: TypeAlias = Annotated[Any, Field(description="Any JSON value.")]
Metadata: TypeAlias = Annotated[dict[str, Any], Field(description="JSON values by name, at most 65,536 bytes as JSON.")]
Damage: TypeAlias = Annotated[
    str | None, Field(description="What cannot be read of it; null if nothing is known to be damaged.")
]
Time: TypeAlias = Annotated[datetime, Field(description="By the database's clock, in UTC.")]


class Query(BaseModel):
    """Base of what stands behind the ``?`` of a URL: one value for each name, but for lists; nothing unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Body(BaseModel):
    """Base of JSON bodies: the types as they are named, nothing unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Answer(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(frozen=True)


class Gone(Answer):
    """That it was there, and is no more."""

    deleted: Literal[True] = True


class Deleted(Answer):
    """How much was deleted."""

    deleted: Annotated[int, Field(ge=0, description="How many there were.")]
