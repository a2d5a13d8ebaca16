"""Only one module uses private attributes of Locus."""

from __future__ import annotations

import ast
from pathlib import Path

from locus_mysql.integrations.locus import transfer


def private_attributes(path: Path) -> set[str]:
    """Return the private attributes of objects other than ``self`` that a module uses."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }


def test_one_module_uses_private_attributes_of_locus() -> None:
    modules = {path.stem: private_attributes(path) for path in Path(transfer.__file__).parent.glob("*.py")}
    assert modules.pop("private_attributes")
    own = {"_operations", "_replace"}  # of this package's checkpointer, and of named tuples
    assert {name: found - own for name, found in modules.items() if found - own} == {}
