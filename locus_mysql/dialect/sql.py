"""Statements that are declared once: `SQL`, and `Select` for one that returns rows.

    REVISION = Select("SELECT t.revision FROM {transcripts} t WHERE {KEY} AND t.part = :part", RevisionRow)
    statement = REVISION(dialect, key)

The text has placeholders of two kinds:

- ``{name}`` is a piece: the quoted name of a table, or a text that statements of the family share (`Dialect`). A call
  may add pieces, which are constants too.
- ``:name`` is a parameter. Its value is a field of a named tuple among the arguments, or a keyword argument. A list
  becomes ``%s, %s``, a list of tuples ``(%s, %s), (%s, %s)``; neither may be empty, as SQL has no empty lists.

``[rows: ROW(:id, :content, :now)]`` repeats its text for each element of the list ``rows``, with commas between them.
The elements are named tuples of one class; a name that is no field of theirs is a parameter of the whole statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple

from .schema import Schema
from .statement import (
    TEXT_LIMIT_CHARACTERS,
    TEXTS_LIMIT,
    Param,
    ParameterNames,
    Query,
    R,
    Shape,
    Statement,
    Text,
    fill,
    params_of,
    place_parameters,
    shape_of,
)
from .variants import OCEANBASE

#: Seconds for which a write that was carried out can be recognised by its token. No write is repeated for that long:
#: see ``retry_deadline_s``.
RETENTION_S = 900

# The number of rows that the statement before this one affected. A server that fails to send an answer, because the
# connection broke, carries out the rest of the packet; but after the first statement whose answer it fails to send,
# ROW_COUNT() is -1 instead of that number. So -1 undoes the batch, with error 3141; the client repeats it.
AFFECTED = "(ROW_COUNT() + JSON_LENGTH(IF(ROW_COUNT() >= 0, '[]', '')))"


class Texts:
    """The pieces of statements, and the texts that were made of them; see `SQL`.

    Args:
        pieces: The pieces: the quoted names of the tables by their roles, and texts that statements share.
    """

    def __init__(self, pieces: Mapping[str, str]) -> None:
        self.pieces = pieces
        #: The texts that `SQL` made.
        self.compiled: dict[Any, Compiled] = {}


class Dialect(Texts):
    """MySQL's SQL for one family of tables: what its statements (`SQL`) are filled with. It does no I/O.

    Args:
        schema: The tables.
        names: Their unquoted names by their roles.
        pieces: Texts that the family's statements share; a statement has them as ``{name}``.
    """

    def __init__(self, schema: Schema, names: Mapping[str, str], pieces: Mapping[str, str] | None = None) -> None:
        tables = {role: f"`{name}`" for role, name in names.items()}
        shared = {"FAMILY": schema.family, "RETENTION_S": str(RETENTION_S), "AFFECTED": AFFECTED}
        super().__init__({**shared, **(pieces or {}), **tables})
        self.schema = schema
        self.names = names


NO_PIECES: Mapping[str, str] = {}

#: The place of a list, or of rows.
_LIST = re.compile(r"\(:\w+\)|\[\w+: ")


class Compiled(NamedTuple):
    """A text with ``%s`` for its parameters.

    Args:
        text: The text.
        plan: The names of the parameters.
        single: Returns the parameters of a text in which none can be a list; None for other texts.
    """

    text: Text
    plan: ParameterNames
    single: Callable[[Mapping[str, Any]], tuple[Any, ...]] | None


class SQL:
    """A statement that returns no rows, or rows whose types it does not declare.

    Args:
        text: MySQL's text; see the module.
        oceanbase: OceanBase's text, if it is another; with the same parameters, in any order.
    """

    __slots__ = ("text",)

    def __init__(self, text: str, *, oceanbase: str | None = None) -> None:
        self.text = text.strip()
        if oceanbase is not None:
            OCEANBASE.instead_of(self.text, oceanbase.strip())

    def __call__(
        self, dialect: Texts, *sources: tuple[Any, ...], pieces: Mapping[str, str] = NO_PIECES, **values: Any
    ) -> Statement:
        """Return the statement with its parameters.

        Args:
            dialect: The family's, which names the tables.
            sources: Named tuples whose fields are parameters; they may have others.
            pieces: Further pieces: constants.
            values: Further parameters.
        """
        return Statement(*self._fill(dialect, sources, pieces, values))

    def _fill(
        self, dialect: Texts, sources: tuple[Any, ...], pieces: Mapping[str, str], values: Mapping[str, Any]
    ) -> tuple[Text, tuple[Param, ...], Mapping[str, Any]]:
        """Return the text, its parameters in their order, and all values by name."""
        given: dict[str, Any] = {}
        for source in sources:
            given.update(zip(source._fields, source, strict=False))
        given.update(values)
        key: object = (self, *pieces.items()) if pieces else self
        compiled = dialect.compiled.get(key)
        if compiled is not None and compiled.single is not None:
            return compiled.text, compiled.single(given), given
        shapes = tuple([shape_of(name, value) for name, value in given.items() if type(value) is list])
        if shapes:
            key = (key, shapes)
            compiled = dialect.compiled.get(key)
        if compiled is None:
            compiled = compile_text(self.text, dialect.pieces, pieces, shapes)
            if len(compiled.text) <= TEXT_LIMIT_CHARACTERS:
                if len(dialect.compiled) >= TEXTS_LIMIT:
                    dialect.compiled.clear()
                dialect.compiled[key] = compiled
        return compiled.text, params_of(compiled.plan, given), given


class Select(SQL, Generic[R]):
    """A statement that returns rows.

    Args:
        text: MySQL's text; see the module.
        row: The named tuple of a row; see `Query`.
        oceanbase: OceanBase's text, if it is another.
    """

    __slots__ = ("row",)

    def __init__(self, text: str, row: type[R], *, oceanbase: str | None = None) -> None:
        super().__init__(text, oceanbase=oceanbase)
        self.row = row

    def __call__(
        self, dialect: Texts, *sources: tuple[Any, ...], pieces: Mapping[str, str] = NO_PIECES, **values: Any
    ) -> Query[R]:
        """Return the query with its parameters; see `SQL`."""
        return Query(*self._fill(dialect, sources, pieces, values), row=self.row)


def compile_text(
    template: str, shared: Mapping[str, str], pieces: Mapping[str, str], shapes: tuple[Shape, ...]
) -> Compiled:
    """Return the text of a template with its parameters in their order.

    Args:
        template: The template.
        shared: The family's pieces.
        pieces: Those of the call.
        shapes: The parameters that are lists.
    """
    if pieces.keys() & shared.keys():
        raise ValueError("A piece of a call has the name of a shared one.")
    filled = fill(template, {**shared, **pieces}).strip()
    text, plan = place_parameters(filled, shapes)
    single = None if _LIST.search(filled) else _getter([name for name in plan if isinstance(name, str)])
    return Compiled(Text(text, template, shared, pieces, shapes), plan, single)


def _getter(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a function that returns the values of some names as a tuple."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple([values[name] for name in names])
