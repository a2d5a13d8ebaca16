"""Type hints of the public classes, for type checkers and at run time."""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest

import locus_mysql
from locus_mysql.config import (
    ConnectionKeywords,
    ConnectionOptions,
    Keywords,
    MySQLConfig,
    PasswordFunction,
    StoreKeywords,
    StoreOptions,
)

CLASSES = sorted(name for name in locus_mysql.__all__ if isinstance(getattr(locus_mysql, name), type))


@pytest.mark.parametrize("name", CLASSES)
def test_type_hints_of_every_public_method_resolve(name: str) -> None:
    kind = getattr(locus_mysql, name)
    own = [value for attribute, value in vars(kind).items() if not attribute.startswith("_")]
    for method in [kind.__init__, *filter(callable, own)]:
        if isinstance(method, types.FunctionType):
            assert "Operation" not in str(get_type_hints(method)), method


def test_a_method_can_be_a_tool_of_an_agent() -> None:
    from locus.tools import tool

    checkpointer = locus_mysql.MySQLCheckpointer("mysql://user:password@localhost/app")
    made = tool(checkpointer.load)
    assert made.parameters["properties"]["thread_id"] == {"type": "string"}
    assert made.parameters["required"] == ["thread_id"]


@pytest.mark.parametrize(
    ("keywords", "options"),
    [(ConnectionKeywords, ConnectionOptions), (StoreKeywords, StoreOptions), (Keywords, MySQLConfig)],
)
def test_keywords_are_those_of_the_model_with_its_types(keywords: Any, options: Any) -> None:
    hints = get_type_hints(keywords)
    if keywords is not StoreKeywords:
        assert "dsn" in hints
    hints.pop("dsn", None)
    accepted = get_type_hints(options, include_extras=True)
    assert hints.keys() == options.model_fields.keys()
    for name, hint in hints.items():
        # A function is passed unchanged, and stored in an object whose text never shows its result.
        expected = alternatives(accepted[name]) - {PasswordFunction}
        assert expected <= alternatives(hint), name


def alternatives(hint: Any) -> set[Any]:
    """Return the types of a union, or the only one, without pydantic's constraints."""
    if get_origin(hint) is Annotated:
        return alternatives(get_args(hint)[0])
    if get_origin(hint) in {Union, types.UnionType}:
        return {kind for one in get_args(hint) for kind in alternatives(one)}
    return {hint}
