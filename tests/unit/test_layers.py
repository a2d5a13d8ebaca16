"""Imports follow the layers in docs/design/architecture.md."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from .sources import of_sources, trees

pytestmark = of_sources

ROOT = Path(__file__).parents[2]

#: Modules outside of the layers, which every layer may import.
BESIDE = {
    *("background_loop", "config", "encryption", "errors", "extras", "keywords", "lru_cache", "options"),
    "signals",
    "wording",
}

#: The folders of families; none of these imports another one.
FAMILIES = {path.parent.name for path in (ROOT / "locus_mysql/families").glob("*/family.py")}

#: Client libraries and frameworks, and the layers that may import them.
FOREIGN = {
    **{library: {"drivers"} for library in ("pymysql", "aiomysql", "asyncmy", "mysql")},
    "cryptography": {"drivers", "runtime"},
    "redis": {"families"},
    "pylibseekdb": {"engine"},
    "rich": {"cli"},
    **{library: {"server"} for library in ("starlette", "uvicorn", "anyio", "jinja2", "markupsafe", "markdown_it")},
    **{
        framework: {"integrations"}
        for framework in (
            *("locus", "langgraph", "langchain_core", "claude_agent_sdk", "google", "agents"),
            *("pydantic_ai", "key_value", "crewai"),
        )
    },
}


def layers() -> list[str]:
    """Return the layers of docs/design/architecture.md, outermost first."""
    text = (ROOT / "docs/design/architecture.md").read_text()
    drawing = text.partition("## The layers")[2].partition("```text\n")[2].partition("```")[0]
    return re.findall(r"^(\w+)", drawing, re.MULTILINE)


@functools.cache
def imports() -> list[tuple[str, str]]:
    """Return pairs of a module and one that it imports anywhere, both by full name."""
    return list(read_imports())


def read_imports() -> Iterator[tuple[str, str]]:
    """Read `imports` from the files."""
    for path, tree in trees().items():
        module = path.relative_to(ROOT).with_suffix("").parts
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((".".join(module), name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                start = module[: len(module) - node.level] if node.level else ()
                named = ".".join([*start, *([node.module] if node.module else [])])
                if node.module and named != "locus_mysql":
                    yield ".".join(module), named
                else:
                    yield from ((".".join(module), f"{named}.{name.name}") for name in node.names)


def within() -> Iterator[tuple[str, str, str, str]]:
    """Return the imports from one layer into another: both modules, both layers."""
    for module, imported in imports():
        if module.count(".") < 2 or not imported.startswith("locus_mysql."):
            continue  # these modules only provide public names, or are used by all layers
        here, there = module.split(".")[1], imported.split(".")[1]
        if here != there and there not in {*BESIDE, "__version__"}:
            yield module, imported, here, there


def test_every_folder_of_the_package_is_a_layer() -> None:
    folders = {path.parent.name for path in (ROOT / "locus_mysql").glob("*/__init__.py")}
    assert folders == set(layers())


def test_a_layer_imports_only_those_below_it() -> None:
    order = layers()
    wrong = [(module, imported) for module, imported, here, there in within() if order.index(there) < order.index(here)]
    assert wrong == []


def imported_at_once(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """Yield the imports that run when a module is imported: none for types, and none in functions."""
    pending = [*tree.body]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            yield node
        elif isinstance(node, ast.Try) or (isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)):
            pending += [*node.body, *node.orelse]


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    paths = {path.relative_to(ROOT).with_suffix("").parts: tree for path, tree in trees().items()}
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, tree in paths.items():
        for node in imported_at_once(tree):
            start = (*(module[: len(module) - node.level] if node.level else ()), *(node.module or "").split("."))
            for name in node.names:
                named = tuple(part for part in (*start, name.name) if part)
                found = (
                    one for one in (named, named[:-1], (*named[:-1], "__init__")) if one in paths and one != module
                )
                graph.setdefault(module, set()).update([*found][:1])
    assert len(graph) > 200
    TopologicalSorter(graph).prepare()  # raises an error that names the circle


def family_of(module: str) -> str | None:
    """Return the family of a module."""
    package, layer, name, *_ = [*module.split("."), "", "", ""]
    return name if (package, layer) == ("locus_mysql", "families") and name in FAMILIES else None


def test_no_family_imports_another_one() -> None:
    wrong = [
        (module, imported)
        for module, imported in imports()
        if (here := family_of(module)) and (there := family_of(imported)) and here != there
    ]
    assert wrong == []


def test_modules_beside_the_layers_import_no_layer() -> None:
    beside = {f"locus_mysql.{name}" for name in BESIDE}
    wrong = [
        (module, imported)
        for module, imported in imports()
        if module in beside and imported.startswith("locus_mysql.") and imported not in beside
    ]
    assert wrong == []


def test_client_libraries_and_frameworks_are_imported_in_their_layers_only() -> None:
    foreign = [(module, imported.split(".")[0]) for module, imported in imports() if imported.split(".")[0] in FOREIGN]
    assert {library for _, library in foreign} == FOREIGN.keys()
    assert [(module, library) for module, library in foreign if module.split(".")[1] not in FOREIGN[library]] == []


def module_exists(folder: Path, name: str) -> bool:
    """Return whether a module or folder of this name exists in a folder of the package, or in one of those above it."""
    path = name.replace(".", "/")
    above = [folder, *(parent for parent in folder.parents if parent.is_relative_to(ROOT))]
    return any((parent / path).is_dir() or (parent / f"{path}.py").is_file() for parent in above)


def test_every_module_that_a_folders_docstring_names_exists() -> None:
    families = re.findall(r'^    "(\w+)": "', (ROOT / "locus_mysql/families/registry.py").read_text(), re.MULTILINE)
    missing = []
    for path in (ROOT / "locus_mysql").rglob("__init__.py"):
        tree = trees()[path]
        # what the module defines, imports, or imports when it is first used
        given = {getattr(node, field, None) for node in ast.walk(tree) for field in ("name", "value")}
        names = re.findall(r"(?<!`)`([a-z_][a-z_/.]*)`(?!`)", ast.get_docstring(tree) or "")
        missing += [
            f"{path.relative_to(ROOT)}: {name}"
            for name in names
            if not module_exists(path.parent, name) and name not in {*families, *given}
        ]
    assert missing == []
