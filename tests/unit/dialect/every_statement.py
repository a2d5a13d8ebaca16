"""Every statement of every family: each `SQL` of a family's modules is called with samples of its parameters."""

from __future__ import annotations

import pkgutil
import re
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from locus_mysql.dialect import Dialect, Statement
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.statement import fill
from locus_mysql.dialect.variants import OCEANBASE
from locus_mysql.integrations.memu.statements import memu_dialect

from ..integrations.memu.statements import SCOPE, memu_statements
from .pieces import checkpoints, graphs, memories, transcripts, working

#: The families whose statements are declared as `SQL`.
DECLARED = {
    "checkpoints": checkpoints,
    "graphs": graphs,
    "memories": memories,
    "transcripts": transcripts,
    "working": working,
}

#: The dialect of each family.
DIALECTS: Mapping[str, Dialect] = {
    **{family: one.DIALECT for family, one in DECLARED.items()},
    "memu": memu_dialect("p_", SCOPE),
}


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
    """Yield the family, the name of the statement, and the statement."""
    for family, of_family in DECLARED.items():
        for name, one in dict(declared(of_family.PACKAGE)).items():
            yield from ((family, name, statement) for statement in calls_of(family, name, one))
    for family, dialect in DIALECTS.items():
        schema = dialect.schema
        for statement in (schema.describe(), *schema.create(), *schema.check_privileges(), schema.drop()):
            yield family, "schema", statement
    yield from (("memu", *one) for one in memu_statements())
