"""Base classes of the models of requests and answers, types of ids with their limits, and common answers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.responses import Response

from ..bodies import answer
from ..problems import not_found

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

#: Number of entries in an answer.
PAGE_LIMIT = 1_000

Limit: TypeAlias = Annotated[int, Field(ge=1, le=PAGE_LIMIT, description="The maximum number of entries.")]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=2**31, description="The number of entries to skip.")]
Cursor: TypeAlias = Annotated[
    str | None, Field(max_length=4_096, description="The cursor returned with the previous page.")
]
Pattern: TypeAlias = Annotated[
    str,
    Field(max_length=512, description="A glob: * stands for any text, ? for one character, all else for itself."),
]
NextCursor: TypeAlias = Annotated[
    str | None, Field(description="The cursor for the next page; null if this is the last page.")
]
Json: TypeAlias = Annotated[Any, Field(description="Any JSON value.")]
Metadata: TypeAlias = Annotated[dict[str, Any], Field(description="JSON values by name, at most 65,536 bytes as JSON.")]
Damage: TypeAlias = Annotated[
    str | None, Field(description="A message about the part that cannot be read; null if no damage is known.")
]
Time: TypeAlias = Annotated[datetime, Field(description="By the database's clock, in UTC.")]


class Body(BaseModel):
    """Base of JSON bodies: strict types; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Answer(BaseModel):
    """Base of answers."""

    model_config = ConfigDict(frozen=True)


def answer_with(name: str, description: str, **fields: Any) -> type[Answer]:
    """Return a model of answers with these fields, by their types; for the description of the API."""
    types: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    model = create_model(name, __base__=Answer, **types)
    model.__doc__ = description
    return model


def fields_of(model: type[Answer], record: object) -> dict[str, Any]:
    """Return the fields of an answer: of a record, the attributes or entries of the same names."""
    values = record if isinstance(record, Mapping) else {name: getattr(record, name) for name in model.model_fields}
    return {name: values[name] for name in model.model_fields}


class Gone(Answer):
    """Confirms that something existed and was deleted."""

    deleted: Literal[True] = True


def gone(existed: bool, what: str) -> Response:
    """Return the answer to a request that deletes something.

    Raises:
        Problem: It did not exist.
    """
    if not existed:
        raise not_found(what)
    return answer({"deleted": True})


Deleted = answer_with(
    "Deleted",
    "The number of deleted entries.",
    deleted=Annotated[int, Field(ge=0, description="The number of deleted entries.")],
)
