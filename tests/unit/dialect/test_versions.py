"""Outside of executable comments, no text of the package uses what MySQL 8.0.19, the oldest supported, lacks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import locus_mysql
from locus_mysql.config import MySQLConfig
from locus_mysql.families.registry import families

PACKAGE = Path(locus_mysql.__file__).parent

#: What later versions brought, by the version.
NEWER = {
    "8.0.20": r"/\*\+[^*]*\b(?:NO_)?(?:INDEX|JOIN_INDEX|GROUP_INDEX|ORDER_INDEX)\s*\(",
    "8.0.21": r"\bJSON_VALUE\s*\(|\bsubquery_to_derived\b|\bENGINE_ATTRIBUTE\b",
    "8.0.22": r"\bhypergraph_optimizer\b|\bderived_condition_pushdown\b|\bAT TIME ZONE\b|\bAS YEAR\)",
    "8.0.23": r"\bINVISIBLE\b",  # of columns; indexes had it before
    "8.0.30": r"\bsql_generate_invisible_primary_key\b",
    "8.0.31": r"\bINTERSECT\b|\bEXCEPT\b",
    "8.0.32": r"\bexplain_format\b",
    "9.0": r"\bVECTOR\s*\(|\b(?:STRING_TO|TO|FROM|VECTOR_TO)_(?:VECTOR|STRING)\s*\(",
}

#: An executable comment, which servers of the version and later ones execute.
EXECUTABLE = re.compile(r"/\*!(\d{5})\s.*?\*/", re.DOTALL)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a module, without docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented)
            and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def newer_in(text: str) -> dict[str, str]:
    """Return what a text uses that needs a version after 8.0.19, by that version."""
    plain = EXECUTABLE.sub("", text)
    return {version: found[0] for version, pattern in NEWER.items() if (found := re.search(pattern, plain))}


def test_no_statement_needs_a_version_after_the_oldest_supported_one() -> None:
    found = [
        (str(path.relative_to(PACKAGE)), line, needed)
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in texts(path)
        if (needed := newer_in(text))
    ]
    assert found == []


def test_an_executable_comment_names_the_version_that_brought_its_content() -> None:
    comments = [
        (match[1], match[0]) for path in PACKAGE.rglob("*.py") for _, text in texts(path)
        for match in EXECUTABLE.finditer(text)
    ]  # fmt: skip
    assert comments
    for number, comment in comments:
        needed = [version for version, pattern in NEWER.items() if re.search(pattern, comment)]
        assert needed
        assert int(number) >= max(map(_number, needed))


def _number(version: str) -> int:
    """Return a version as an executable comment names it: 80022 for 8.0.22."""
    major, minor, patch = (*map(int, version.split(".")), 0)[:3]
    return major * 10_000 + minor * 100 + patch


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("SELECT JSON_VALUE(metadata, '$.a') FROM t", "8.0.21"),
        ("SELECT a FROM t EXCEPT SELECT b FROM u", "8.0.31"),
        ("SELECT /*+ NO_SEMIJOIN() INDEX(t a) */ a FROM t", "8.0.20"),
        ("SET optimizer_switch = 'hypergraph_optimizer=off'", "8.0.22"),
        ("SET optimizer_switch = CONCAT('' /*!80022 , 'hypergraph_optimizer=off' */)", None),
        ("SELECT a FROM t FORCE INDEX (b)", None),
    ],
)
def test_newer_features_are_found(text: str, needed: str | None) -> None:
    assert list(newer_in(text)) == ([] if needed is None else [needed])


def test_every_table_has_a_primary_key_as_servers_may_require() -> None:
    tables = [table for family in families() for table in family.schema(MySQLConfig()).tables]
    assert len(tables) > 20
    assert [table.name for table in tables if "PRIMARY KEY (" not in table.definition] == []
