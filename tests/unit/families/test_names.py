"""Only the registry lists the families' names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from locus_mysql.families.registry import families

from ..sources import PACKAGE, of_sources, trees

pytestmark = of_sources

#: Modules that may name several families: the registry, the kinds of thread states with shared definitions, and the
#: families that other engines support.
LISTS = {
    "families/registry.py",
    "families/checkpoints/family.py",
    "families/checkpoints/statements/tables.py",
    "dialect/variants.py",
}

NAMES = {family.name for family in families()}


def names_in(tree: ast.Module) -> Iterator[str]:
    """Return the families that a module names in strings other than docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.value


def test_no_module_but_the_registry_names_several_families() -> None:
    named = {str(path.relative_to(PACKAGE)): set(names_in(tree)) for path, tree in trees().items()}
    assert {module: sorted(names) for module, names in named.items() if len(names) > 1 and module not in LISTS} == {}


def test_no_template_names_a_family() -> None:
    for path in PACKAGE.rglob("*.html"):
        text = path.read_text()
        assert [name for name in NAMES if f'family == "{name}"' in text or f'family != "{name}"' in text] == [], path


def test_a_module_outside_the_families_folders_compares_no_family_by_name() -> None:
    for path, tree in trees().items():
        compared = {
            constant.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Compare)
            for constant in node.comparators
            if isinstance(constant, ast.Constant) and constant.value in NAMES and "family" in ast.unparse(node.left)
        }
        assert not compared, path
