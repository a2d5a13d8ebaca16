"""Every statement of every family: each `SQL` of a family's modules is called with samples of its parameters.

In families whose statements are methods, each public method is called with arguments of the types that it declares.
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
import types
import typing
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any, Literal, Union

from locus_mysql.dialect import Schema, Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.thread_pages import Step, ThreadRange
from locus_mysql.dialect.dialect import Dialect
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.template import Statements, fill
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.integrations.memu.statements import memu_dialect

from ..integrations.memu.statements import SCOPE, memu_statements
from .pieces import graphs, memories, transcripts, working

#: The families whose statements are declared as `SQL`.
DECLARED = {"graphs": graphs, "memories": memories, "transcripts": transcripts, "working": working}

#: The dialect of each family.
DIALECTS: Mapping[str, Dialect] = {
    **{family: one.DIALECT for family, one in DECLARED.items()},
    "checkpoints": CheckpointDialect("p_"),
    "memu": memu_dialect("p_", SCOPE),
}

CHECKPOINTS = CheckpointDialect("p_").thread_pages

#: Arguments whose type needs more than a sample of each field.
SAMPLES: Mapping[type, Any] = {
    Statement: Statement("SELECT 1 FROM `p_t` WHERE a = %s", ("a",)),
    Step: CHECKPOINTS.walk("x", ThreadRange(), 5),
}


def sample(declared: Any, *, full: bool) -> Any:
    """Return a value of a declared type.

    Args:
        declared: The type.
        full: Whether optional values are given, and conditions are true.
    """
    origin, inner = typing.get_origin(declared), typing.get_args(declared)
    if declared in SAMPLES:
        return SAMPLES[declared]
    if origin in (Union, types.UnionType):
        return sample(inner[0], full=full) if full or type(None) not in inner else None
    if origin is Literal:
        return inner[0 if full else -1]
    if origin is tuple and inner[-1:] != (...,):
        return tuple(sample(one, full=full) for one in inner)
    if origin in (tuple, Sequence, Iterable):
        return (sample(inner[0], full=full),) * (3 if full else 1)
    if origin is Callable:  # it returns the row to store
        return lambda row: row
    if origin is Mapping:
        return {sample(inner[0], full=full): sample(inner[1], full=full)}
    if dataclasses.is_dataclass(declared) or hasattr(declared, "_fields"):
        fields = {name: one for name, one in typing.get_type_hints(declared).items() if not name.startswith("_")}
        return declared(**{name: sample(one, full=full) for name, one in fields.items()})
    moment = datetime(2026, 1, 1)
    values = {str: "2026-01-01", bytes: b"sixteen bytes ab", int: 5, float: 0.5, bool: full, datetime: moment}
    return "text" if declared is Any else values[declared]


def arguments(method: Any, *, full: bool) -> dict[str, Any]:
    """Return an argument for each parameter of a method."""
    declared = typing.get_type_hints(method)
    return {
        name: sample(declared[name], full=full)
        for name, one in inspect.signature(method).parameters.items()
        if one.kind is not inspect.Parameter.VAR_POSITIONAL
    }


def statements_of(owner: Statements | Schema) -> Iterator[tuple[str, Statement]]:
    """Yield the statements of each public method, called with and without optional arguments."""
    for name, method in inspect.getmembers(owner, inspect.ismethod):
        if name.startswith("_"):
            continue
        for full in (True, False):
            made = method(**arguments(method, full=full))
            for statement in made if isinstance(made, tuple) else (made,):
                if isinstance(statement, Statement):
                    yield f"{type(owner).__name__}.{name}", statement


def declared(package: str) -> Iterator[tuple[str, SQL]]:
    """Yield each `SQL` of a package's modules, with the names of the module and of the constant."""
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        for name, value in vars(import_module(module.name)).items():
            for number, one in enumerate(value if isinstance(value, tuple) else (value,)):
                if isinstance(one, SQL):
                    yield f"{module.name.rpartition('.')[2]}.{name}{number or ''}", one


def samples_of(text: str) -> dict[str, Any]:
    """Return a value for each parameter that a text names: a list where it stands in parentheses of its own."""
    values: dict[str, Any] = {name: name for name in re.findall(r"(?<![\w:]):([a-z]\w*)", text)}
    for name in re.findall(r"IN \(:(\w+)\)", text):
        values[name] = [f"{name} 1", f"{name} 2"]
    for columns, name in re.findall(r"\(([^()]+)\) IN \(:(\w+)\)", text):
        values[name] = [(name,) * len(columns.split(","))] * 2
    for rows, names in re.findall(r"\[(\w+): ([^\[\]]*(?:\[\w*\][^\[\]]*)*)\]", text):
        fields = dict.fromkeys(re.findall(r":([a-z]\w*)", names))
        values[rows] = [namedtuple("Sample", fields)(*fields)] * 2
    return values


def calls_of(family: str, name: str, one: SQL) -> Iterator[Statement]:
    """Yield the statements of an `SQL`, one for each text of its pieces.

    ``PIECES`` of a family has these texts by the statement's name, or "" for any, and the piece's name. A statement is
    made with all first texts, all second ones, and so on.
    """
    dialect, given = DIALECTS[family], DECLARED[family].PIECES
    texts: dict[str, Sequence[str]] = {}
    waiting = [one.text, OCEANBASE.replacements.get(one.text, "")]
    while waiting:  # a piece may have placeholders, too
        for piece in {*re.findall(r"\{([A-Za-z_]\w*)\}", waiting.pop())} - {*texts}:
            if piece in dialect.pieces:
                texts[piece] = (dialect.pieces[piece],)
            else:
                texts[piece] = given.get((name.rpartition(".")[2], piece)) or given["", piece]
            waiting += texts[piece]
    texts = {piece: some for piece, some in texts.items() if piece not in dialect.pieces}
    for number in range(max(map(len, texts.values()), default=1)):
        pieces = {piece: some[min(number, len(some) - 1)] for piece, some in texts.items()}
        text = fill(one.text, {**dialect.pieces, **pieces})
        yield one(dialect, pieces=pieces, **samples_of(text))


def every_statement() -> Iterator[tuple[str, str, Statement]]:
    """Yield the family, the name of the statement or of its method, and the statement."""
    for family, of_family in DECLARED.items():
        for name, one in dict(declared(of_family.PACKAGE)).items():
            yield from ((family, name, statement) for statement in calls_of(family, name, one))
    for folder, dialect in DIALECTS.items():
        parts = [getattr(dialect, name) for name in dir(dialect) if not name.startswith("_")]
        for owner in parts:
            if isinstance(owner, Statements | Schema):
                yield from ((folder, *found) for found in statements_of(owner))
    yield from (("memu", *one) for one in memu_statements())
