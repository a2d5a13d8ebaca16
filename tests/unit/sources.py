"""`trees`: the syntax trees of the package, parsed once for all tests of its sources."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "locus_mysql"

#: Marks the tests of the sources, so that one process parses them.
of_sources = pytest.mark.xdist_group("sources")


@functools.cache
def trees() -> Mapping[Path, ast.Module]:
    """Return the syntax tree of each module of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
