"""Statements that a family's modules declare (`SQL`), each with every choice of its pieces."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from locus_mysql.dialect import Statement
from locus_mysql.dialect.dialect import Dialect
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.template import fill

#: Pieces that calls give, with their choices.
Choices = Mapping[str, Sequence[str]]

#: A row without fields: its values are those of the whole statement.
Row = namedtuple("Row", ())


def declared(package: str) -> Iterator[tuple[str, SQL]]:
    """Yield the statements of the modules of a package, each once, with their names."""
    found = importlib.import_module(package)
    modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(found.__path__, f"{package}.")]
    seen: set[int] = set()
    for name, value in [pair for module in modules for pair in vars(module).items()]:
        for statement in value if isinstance(value, tuple) else (value,):
            if isinstance(statement, SQL) and id(statement) not in seen:
                seen.add(id(statement))
                yield name, statement


def variations(text: str, shared: Mapping[str, str], choices: Choices, chosen: Mapping[str, str]) -> Iterator[Any]:
    """Yield every choice of the pieces that a text lacks."""
    texts, names = [text], set[str]()
    while texts:
        new = {*re.findall(r"\{([A-Za-z_]\w*)\}", texts.pop())} - names
        names |= new
        texts += [{**shared, **chosen}[name] for name in new if name in shared or name in chosen]
    missing = sorted(names - shared.keys() - chosen.keys())
    if not missing:
        yield {name: piece for name, piece in chosen.items() if name in names}
        return
    for piece in choices[missing[0]]:
        yield from variations(text, shared, choices, {**chosen, missing[0]: piece})


def made(dialect: Dialect, statement: SQL, choices: Choices) -> Iterator[Statement]:
    """Yield a statement with every choice of its pieces, and three elements for each list."""
    for pieces in variations(statement.text, dialect.pieces, choices, {}):
        text = fill(statement.text, {**dialect.pieces, **pieces})
        groups = re.findall(r"\[(\w+): ", text)
        lists = {name: ["text"] * 3 for name in re.findall(r"IN \(:(\w+)\)", text)}
        values: dict[str, Any] = dict.fromkeys(re.findall(r"(?<![\w:]):([a-z]\w*)", text), "text")
        yield statement(dialect, pieces=pieces, **{**values, **lists, **dict.fromkeys(groups, [Row()] * 3)})
