"""Pydantic's serializers, made exact: NaN and infinities are kept, where pydantic would write null."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import SchemaSerializer

#: Keys of a schema whose values are objects of the model, not schemas.
_OPAQUE = frozenset({"cls", "config", "default", "metadata"})


@cache
def serializer_of(kind: Any) -> SchemaSerializer:
    """Return the serializer of a type, built from the type's own schema. It is cached.

    A model's own ``ser_json_inf_nan`` determines how NaN is written, and neither a caller nor an enclosing type can
    override it:
    https://docs.pydantic.dev/latest/api/config/#pydantic.config.ConfigDict.ser_json_inf_nan

    Args:
        kind: A model, or a type composed of models.
    """
    return SchemaSerializer(_exact(TypeAdapter(kind).core_schema), {"ser_json_inf_nan": "constants"})


def _exact(schema: Any) -> Any:
    """Return a schema whose models keep NaN and infinities."""
    if isinstance(schema, list | tuple):
        return type(schema)(map(_exact, schema))
    if not isinstance(schema, dict):
        return schema
    exact = {name: value if name in _OPAQUE else _exact(value) for name, value in schema.items()}
    if schema.get("type") == "model":
        exact["config"] = {**schema.get("config", {}), "ser_json_inf_nan": "constants"}
    return exact
