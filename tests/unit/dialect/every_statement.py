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
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.template import Statements, fill
from locus_mysql.dialect.transcripts.dialect import TranscriptDialect
from locus_mysql.dialect.transcripts.moving import MovingStatements
from locus_mysql.dialect.words import WordSearch
from locus_mysql.dialect.working.statements import WorkingDialect
from locus_mysql.families.checkpoints import pages as checkpoint_pages
from locus_mysql.families.checkpoints.statements import (
    inspection as checkpoint_inspection,
)
from locus_mysql.families.checkpoints.statements import (
    loading as checkpoint_loading,
)
from locus_mysql.families.checkpoints.statements import (
    moving as checkpoint_moving,
)
from locus_mysql.families.checkpoints.statements import (
    queries as checkpoint_queries,
)
from locus_mysql.families.checkpoints.statements import (
    removing as checkpoint_removing,
)
from locus_mysql.families.checkpoints.statements import (
    saving as checkpoint_saving,
)
from locus_mysql.families.checkpoints.statements import (
    thread_pages,
)
from locus_mysql.families.checkpoints.statements.dialect import checkpoint_dialect

#: The dialect of each family.
DIALECTS: Mapping[str, Dialect] = {
    "checkpoints": checkpoint_dialect("p_"),
    "graphs": GraphDialect("p_"),
    "memories": MemoryDialect("p_"),
    "memu": MemuDialect("p_", [ScopeColumn("user_id", "VARCHAR(255)")]),
    "transcripts": TranscriptDialect("p_"),
    "working": WorkingDialect("p_"),
}

#: The packages of the families whose statements are declared as `SQL`.
PACKAGES: Mapping[str, str] = {
    "checkpoints": "locus_mysql.families.checkpoints",
}

_ALL, _SOME = (
    checkpoint_inspection.Which(),
    checkpoint_inspection.Which(before_seq=5, checkpoint_id="c", saved_by="2026-01-01"),
)
_WITHIN = thread_pages.ThreadRange(("2026-01-01", "t"), "2026-01-01", "2026-01-02")
_STEPS = (
    thread_pages.walk(_WITHIN, 5),
    thread_pages.beginning("t*", _WITHIN, 5),
    thread_pages.having("[1]", _WITHIN, 5),
    thread_pages.these(["t"]),
)
_SEARCHES = (
    WordSearch("tenant", ["tea"], "default", "c").pieces,
    WordSearch("tenant", ["tea", "green tea"], "default", "c").pieces,
    WordSearch("tenant", ["tea", "green tea"], "ngram", "c").pieces,
)

#: The texts of the pieces that calls give: by family, the statement's name (or "" for any) and the piece's name. A
#: statement is made with all first texts, all second ones, and so on.
PIECES: Mapping[str, Mapping[tuple[str, str], Sequence[str]]] = {
    "checkpoints": {
        ("INSERT_AFTER", "base_seq"): (checkpoint_saving.WITH_BASE["base_seq"], "t.last_seq"),
        ("", "base"): (checkpoint_saving.WITH_BASE["base"], ""),
        **{
            ("LOAD_ALL", name): (checkpoint_loading.OF_NEWEST[name], checkpoint_loading.OF_NAMED[name])
            for name in checkpoint_loading.OF_NAMED
        },
        ("", "rows"): (checkpoint_removing.ALL_HOLLOW["rows"], checkpoint_removing.HOLLOW_AND_ABOVE["rows"]),
        ("EXPIRED", "of_tenant"): ("", checkpoint_removing.OF_TENANT),
        ("FIND_BY_METADATA", "after"): ("", checkpoint_queries.AFTER_CHECKPOINT),
        ("LOAD_BY_METADATA", "after"): ("", checkpoint_queries.AFTER_CHECKPOINT),
        ("LOAD_NEWEST_OF_EACH", "after"): ("", checkpoint_queries.AFTER_THREAD),
        ("_PAGE_BY_METADATA", "ranges"): (checkpoint_pages._RANGE,),
        ("_PAGE_BY_METADATA", "after"): ("", checkpoint_pages._AFTER_PLACE),
        ("INDEX_PENDING", "locking"): ("", checkpoint_queries.SKIP_LOCKED["locking"]),
        **{("_SEARCH", name): tuple(one.get(name, "") for one in _SEARCHES) for name in _SEARCHES[1]},
        ("_SEARCH", "bound"): ("", " LIMIT 5"),
        ("_SEARCH", "waiting"): ("", checkpoint_queries._WAITING),
        ("ESTIMATE", "range"): (*checkpoint_pages.RANGES.values(), checkpoint_pages.BEGINNING),
        **{("", name): (_ALL.pieces[name], _SOME.pieces[name]) for name in _ALL.pieces},
        ("TAGGED_LATELY", "step"): (_STEPS[0].pieces["step"],),
        ("_THREADS", "step"): tuple(step.pieces["step"] for step in _STEPS),
        ("", "within"): ("", _WITHIN.condition),
        ("_THREADS", "fits"): ("", thread_pages._NEWEST_HAS + thread_pages._AT_LEAST),
        ("_THREADS", "counted"): ("step", "candidates", "candidates", "step"),
        ("_THREADS", "columns"): tuple(columns for columns, _ in thread_pages._DETAILS.values()),
        ("_THREADS", "joined"): tuple(joined for _, joined in thread_pages._DETAILS.values()),
        ("COPY_ROWS", "copied_payload"): (checkpoint_moving.SHIFTED["copied_payload"], "c.payload"),
    },
}

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
    ItemFilter: ItemFilter(" AND i.version > %s", (1,)),
    RecordFilter: RecordFilter(" AND r.user_id = %s", ("ann",)),
}

#: Methods left out: a helper with a template as argument, and one whose arguments are the columns of a row.
LEFT_OUT = {MemoryStatements.over_keys, MovingStatements.create}


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


def declared(package: str) -> Iterator[tuple[str, SQL]]:
    """Yield each `SQL` of a package's modules, with the names of the module and of the constant."""
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        for name, one in vars(import_module(module.name)).items():
            if isinstance(one, SQL):
                yield f"{module.name.rpartition('.')[2]}.{name}", one


def samples_of(text: str) -> dict[str, Any]:
    """Return a value for each parameter that a text names: a list where it stands in parentheses of its own."""
    values: dict[str, Any] = {name: name for name in re.findall(r"(?<![\w:]):([a-z]\w*)", text)}
    for name in re.findall(r"IN \(:(\w+)\)", text):
        values[name] = [f"{name} 1", f"{name} 2"]
    for columns, name in re.findall(r"\(([^()]+)\) IN \(:(\w+)\)", text):
        values[name] = [(name,) * len(columns.split(","))] * 2
    for rows, names in re.findall(r"\[(\w+): ([^\[\]]*(?:\[\w*\][^\[\]]*)*)\]", text):
        fields = re.findall(r":([a-z]\w*)", names)
        values[rows] = [namedtuple("Sample", fields)(*fields)] * 2
    return values


def calls_of(family: str, name: str, one: SQL) -> Iterator[Statement]:
    """Yield the statements of an `SQL`, one for each text of its pieces."""
    dialect, given = DIALECTS[family], PIECES[family]
    texts: dict[str, Sequence[str]] = {}
    pending = [one.text]
    while pending:
        for piece in re.findall(r"\{([A-Za-z_]\w*)\}", pending.pop()):
            if piece not in dialect.pieces and piece not in texts:
                texts[piece] = given.get((name.rpartition(".")[2], piece)) or given["", piece]
                pending += texts[piece]
    for number in range(max(map(len, texts.values()), default=1)):
        pieces = {piece: some[min(number, len(some) - 1)] for piece, some in texts.items()}
        text = fill(one.text, {**dialect.pieces, **pieces})
        yield one(dialect, pieces=pieces, **samples_of(text))


def every_statement() -> Iterator[tuple[str, str, Statement]]:
    """Yield the family, the name of the statement or of its method, and the statement."""
    for family, package in PACKAGES.items():
        for name, one in dict(declared(package)).items():
            yield from ((family, name, statement) for statement in calls_of(family, name, one))
    for folder, dialect in DIALECTS.items():
        parts = [getattr(dialect, name) for name in dir(dialect) if not name.startswith("_")]
        for owner in parts:
            if isinstance(owner, Statements | Schema):
                yield from ((folder, *found) for found in statements_of(owner))
