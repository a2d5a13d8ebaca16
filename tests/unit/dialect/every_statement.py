"""Every statement of every family: each public method is called with arguments of the types that it declares."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Union

from locus_mysql.dialect import Schema, Statement
from locus_mysql.dialect.checkpoints.dialect import CheckpointDialect
from locus_mysql.dialect.checkpoints.thread_pages import Step, ThreadRange
from locus_mysql.dialect.dialect import Dialect
from locus_mysql.dialect.graphs.dialect import GraphDialect
from locus_mysql.dialect.memories.dialect import MemoryDialect
from locus_mysql.dialect.memories.filters import ItemFilter
from locus_mysql.dialect.memories.maintenance import MaintenanceStatements
from locus_mysql.dialect.memories.pieces import MemoryStatements
from locus_mysql.dialect.memu.dialect import MemuDialect
from locus_mysql.dialect.memu.record_filters import RecordFilter
from locus_mysql.dialect.memu.statements import MemuStatements
from locus_mysql.dialect.memu.tables import CORE, ScopeColumn
from locus_mysql.dialect.template import Statements
from locus_mysql.dialect.transcripts.dialect import TranscriptDialect
from locus_mysql.dialect.working.statements import WorkingDialect

#: The dialect of each folder in ``dialect``.
DIALECTS: Mapping[str, Dialect] = {
    "checkpoints": CheckpointDialect("p_"),
    "graphs": GraphDialect("p_"),
    "memories": MemoryDialect("p_"),
    "memu": MemuDialect("p_", [ScopeColumn("user_id", "VARCHAR(255)")]),
    "transcripts": TranscriptDialect("p_"),
    "working": WorkingDialect("p_"),
}

CHECKPOINTS = CheckpointDialect("p_").thread_pages

#: Arguments whose type allows more than the method does, by the class of statements and the parameter's name.
ARGUMENTS: Mapping[tuple[type, str], Any] = {
    (MaintenanceStatements, "kept"): "vectors",
    (MemuStatements, "role"): "items",
    (MemuStatements, "scope"): ["user_id"],
    (MemuStatements, "values"): dict.fromkeys(("locus_tenant", "user_id", *CORE["items"], *CORE["links"]), "text"),
}

#: Arguments whose type needs more than a sample of each field.
SAMPLES: Mapping[type, Any] = {
    Statement: Statement("SELECT 1 FROM `p_t` WHERE a = %s", ("a",)),
    Step: CHECKPOINTS.walk("x", ThreadRange(), 5),
    ItemFilter: ItemFilter(" AND i.version > %s", (1,)),
    RecordFilter: RecordFilter(" AND r.user_id = %s", ("ann",)),
}

#: Methods left out: a helper with a template as argument.
LEFT_OUT = {MemoryStatements.over_keys}


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
        name: ARGUMENTS.get((type(method.__self__), name)) or sample(declared[name], full=full)
        for name, one in inspect.signature(method).parameters.items()
        if one.kind is not inspect.Parameter.VAR_POSITIONAL
    }


def statements_of(owner: Statements | Schema) -> Iterator[tuple[str, Statement]]:
    """Yield the statements of each public method, called with and without optional arguments."""
    for name, method in inspect.getmembers(owner, inspect.ismethod):
        if name.startswith("_") or method.__func__ in LEFT_OUT:
            continue
        for full in (True, False):
            made = method(**arguments(method, full=full))
            for statement in made if isinstance(made, tuple) else (made,):
                if isinstance(statement, Statement):
                    yield f"{type(owner).__name__}.{name}", statement


def every_statement() -> Iterator[tuple[str, str, Statement]]:
    """Yield the family's folder, the name of the method and the statement."""
    for folder, dialect in DIALECTS.items():
        parts = [getattr(dialect, name) for name in dir(dialect) if not name.startswith("_")]
        for owner in parts:
            if isinstance(owner, Statements | Schema):
                yield from ((folder, *found) for found in statements_of(owner))
