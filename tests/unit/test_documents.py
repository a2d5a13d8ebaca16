"""The documents agree with the package on options, methods, commands, errors and files."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from locus.memory.checkpointer import BaseCheckpointer
from pydantic import SecretStr

import locus_mysql
import locus_mysql.transcripts
from ci import options as written
from locus_mysql import errors
from locus_mysql.cli.main import COMMANDS, main
from locus_mysql.config import ENVIRONMENT, MySQLConfig
from locus_mysql.drivers.failures import GOODBYES
from locus_mysql.drivers.wire import session
from locus_mysql.engine.failures import ERROR_CLASSES, READ_ONLY
from locus_mysql.runtime.database import Stats

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")))
DESIGN = tuple(sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/design").glob("*.md")))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES, *DESIGN)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text: str) -> str:
    """Return a document with blank code blocks and all other characters in place."""
    blocks = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
    return blocks.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)


def section(title: str, document: str) -> str:
    """Return the text under a heading, up to the next one of the same or a higher level."""
    text = read(document)
    heading = re.search(rf"^(#+) {re.escape(title)}$", prose(text), re.MULTILINE)
    assert heading, f"{document} has no heading {title!r}"
    end = re.compile(rf"^#{{1,{len(heading[1])}}} ", re.MULTILINE).search(prose(text), heading.end())
    return text[heading.end() : end.start() if end else len(text)]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the first table in a text, without its heading."""
    found = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert found
    lines = found[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def code(cell: str) -> str:
    """Return the words of a cell in back quotes."""
    assert cell.startswith("`")
    assert cell.endswith("`")
    return cell[1:-1]


def options(title: str, document: str) -> dict[str, Any]:
    """Return names and defaults of a table of options."""
    table = rows(section(title, document))
    assert all(len(row) == 3 and row[2] for row in table)
    return {code(name): _default(code(default)) for name, default, _ in table}


def _default(text: str) -> Any:
    return ENVIRONMENT if text == "LOCUS_MYSQL_DSN" else ast.literal_eval(text)


def plain(value: Any) -> Any:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def described() -> dict[str, Any]:
    """Return names and defaults of the options on the page about the configuration."""
    usual = options("Options of MySQLConfig", "docs/configuration.md")
    advanced = options("Advanced options", "docs/configuration.md")
    assert not usual.keys() & advanced.keys()
    return {**usual, **advanced}


def test_the_tables_of_options_are_the_configuration() -> None:
    defaults = {name: plain(field.default) for name, field in MySQLConfig.model_fields.items()}
    assert described() == {"dsn": ENVIRONMENT, **defaults}


@pytest.mark.parametrize("title", ["Options of MySQLConfig", "Advanced options"])
def test_the_options_stand_in_the_order_of_the_configuration(title: str) -> None:
    listed = options(title, "docs/configuration.md")
    assert list(listed) == [name for name in ["dsn", *MySQLConfig.model_fields] if name in listed]


def test_generated_documents_of_options_are_up_to_date() -> None:
    assert read("docs/configuration.md") == written.page(), "run python -m ci.options"
    assert read("locus_mysql/keywords.py") == written.keywords_module(), "run python -m ci.options"


@pytest.mark.parametrize(
    ("name", "title", "page"),
    [
        ("MySQLCheckpointer", "Options of MySQLCheckpointer", "docs/checkpoints.md"),
        ("SyncMySQLCheckpointer", "Options of MySQLCheckpointer", "docs/checkpoints.md"),
        ("MemoryStore", "Options of MemoryStore", "docs/memories.md"),
        ("SyncMemoryStore", "Options of MemoryStore", "docs/memories.md"),
        ("WorkingMemory", "Options of WorkingMemory", "docs/working.md"),
        ("SyncWorkingMemory", "Options of WorkingMemory", "docs/working.md"),
    ],
)
def test_the_table_of_options_is_the_signature(name: str, title: str, page: str) -> None:
    parameters = inspect.signature(getattr(locus_mysql, name)).parameters.values()
    named = {item.name: item.default for item in parameters if item.kind is not item.VAR_KEYWORD}
    if "WorkingMemory" in name:
        assert named.pop("session_id") is inspect.Parameter.empty
    assert options(title, page) == named


#: Public names that the tables of methods leave out.
UNLISTED = {"config", "close", "database", "tenant_scope"}


@pytest.mark.parametrize("side", ["", "Sync"])
@pytest.mark.parametrize(
    ("name", "page", "unlisted"),
    [
        ("MemoryStore", "docs/memories.md", UNLISTED | {"embed_texts"}),
        ("TranscriptStore", "docs/agent-sdks.md", UNLISTED),
        ("WorkingMemory", "docs/working.md", {"close", "open", "session_id", "tenant"}),
    ],
)
def test_the_table_of_methods_is_the_class(side: str, name: str, page: str, unlisted: set[str]) -> None:
    table = rows(section("Methods", page))
    value = getattr(locus_mysql.transcripts if name == "TranscriptStore" else locus_mysql, side + name)
    assert {code(method.strip()) for _, cell in table for method in cell.split(",")} == public(value) - unlisted


def test_the_docstring_of_the_configuration_names_every_option() -> None:
    named = set(re.findall(r"^ +(\w+): ", MySQLConfig.__doc__ or "", re.MULTILINE))
    assert set(MySQLConfig.model_fields) - named == set()


def methods() -> list[set[str]]:
    """Return the documented methods, by group."""
    return [set(re.findall(r"`(\w+)`", named)) for _, named in rows(section("Methods", "docs/checkpoints.md"))]


def public(value: type) -> set[str]:
    return {name for name in dir(value) if not name.startswith("_")}


@pytest.mark.parametrize("name", ["MySQLCheckpointer", "SyncMySQLCheckpointer"])
def test_the_table_of_methods_is_the_checkpointer(name: str) -> None:
    ours = [one for one in locus_mysql.MySQLCheckpointer.__mro__ if one.__module__.startswith("locus_mysql")]
    own = {member for one in ours for member in vars(one)}
    inherited = public(BaseCheckpointer) - own
    assert set().union(*methods()) == public(getattr(locus_mysql, name)) - inherited


@pytest.mark.parametrize("name", ["CheckpointStore", "SyncCheckpointStore"])
def test_the_store_has_the_first_groups_of_methods(name: str) -> None:
    *groups, _ = methods()
    assert set().union(*groups) == public(getattr(locus_mysql, name)) - {"config"}


def test_the_table_of_commands_is_the_command_line() -> None:
    assert [code(name) for name, _ in rows(section("Commands", "docs/commands.md"))] == list(COMMANDS)


def test_the_table_of_errors_is_all_that_can_be_raised() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.LocusMySQLError)
    }
    groups = {"LocusMySQLError", "UsageError", "SetupError"}
    table = rows(section("Errors", "docs/troubleshooting.md"))
    assert {code(name) for name, *_ in table} == raised - groups
    order = [getattr(errors, code(name)) for name, *_ in table]
    assert [issubclass(error, errors.UsageError) for error in order] == [True] * 10 + [False] * (len(order) - 10)
    assert [issubclass(error, errors.SetupError) for error in order[10:23]] == [True] * 13
    assert not any(issubclass(error, errors.SetupError) for error in order[23:])


def numbers(cell: str) -> frozenset[int]:
    """Return the numbers of a cell or a sentence, with those between the ends of a range."""
    ends = [(int(first), int(last or first)) for first, last in re.findall(r"(\d+)(?:\u2013(\d+))?", cell)]
    return frozenset(number for first, last in ends for number in range(first, last + 1))


def test_the_table_of_the_servers_errors_is_the_code() -> None:
    text = section("Errors of the server", "docs/troubleshooting.md")
    assert [(reason, numbers(cell), code(kind), repeated) for reason, cell, kind, repeated in rows(text)] == [
        (
            one.name,
            one.numbers,
            one.kind.__name__,
            "with several `hosts`" if one.numbers == READ_ONLY else "yes" if one.passes else "no",
        )
        for one in ERROR_CLASSES
    ]
    (goodbyes,) = re.findall(r"^- (.*) are the last words of a connection", text, re.MULTILINE)
    assert numbers(goodbyes) == GOODBYES


def test_the_extras_are_those_of_the_package() -> None:
    declared = read("pyproject.toml").split("[project.optional-dependencies]")[1].split("[project.scripts]")[0]
    extras = set(re.findall(r"^([\w-]+) = \[", declared, re.MULTILINE)) - {"drivers"}
    assert {code(name) for name, *_ in rows(section("Install", "docs/configuration.md"))} == extras


def granted(mode: str) -> str:
    """Return the statements under the comment that names a `ddl_mode`."""
    found = re.search(
        rf"^-- ddl_mode .*'{mode}'.*\n((?:GRANT .*\n)+)", section("Privileges", "docs/security.md"), re.MULTILINE
    )
    assert found, f"docs/security.md has no privileges for {mode!r}"
    return found[1]


@pytest.mark.parametrize(("mode", "arguments"), [("create", ["--create"]), ("validate", []), ("off", [])])
def test_the_privileges_are_those_that_the_command_prints(
    mode: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["grants", "--database", "app", "--family", "agents", *arguments]) == 0
    printed = capsys.readouterr().out.replace("`", "")
    assert granted(mode).splitlines() == printed.splitlines()


@pytest.mark.parametrize("mode", ["create", "validate", "off"])
def test_the_privileges_of_each_mode_are_given(mode: str) -> None:
    statements = granted(mode)
    assert re.search(
        r"^GRANT SELECT, INSERT, UPDATE, DELETE\b.* ON app\.\S+ TO 'agent'@'%';$", statements, re.MULTILINE
    )
    assert ("CREATE" in statements) == (mode == "create")


def links(document: str) -> list[str]:
    """Return the targets of links and images in a document, except those in code."""
    text = re.sub(r"`[^`\n]*`", "code", prose(read(document)))
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"^\[[^\]\n]+\]: (\S+)$", text, re.MULTILINE)


def anchors(document: str) -> set[str]:
    """Return the anchors that GitHub gives to headings; it numbers repeated ones."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(read(document)), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeated = sum(known == name or re.fullmatch(rf"{re.escape(name)}-\d+", known) is not None for known in found)
        found.add(f"{name}-{repeated}" if repeated else name)
    return found


def leads_somewhere(document: str, target: str) -> bool:
    path, _, anchor = target.partition("#")
    if "://" in target:
        return True
    linked = ((ROOT / document).parent / path).resolve() if path else ROOT / document
    if not linked.exists() or not linked.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(str(linked.relative_to(ROOT)))


def test_every_link_and_anchor_leads_somewhere() -> None:
    linked = [(document, target) for document in DOCUMENTS for target in links(document)]
    assert [one for one in linked if not leads_somewhere(*one)] == []


def test_the_documents_have_links_to_check() -> None:
    assert "docs/langgraph.md" in links("README.md")
    assert "checkpoints.md#one-changed-line" in links("docs/commands.md")
    assert "adding-a-driver" in anchors("CONTRIBUTING.md")


def test_every_page_is_listed_in_the_index() -> None:
    assert {Path(page).name for page in PAGES} - {*links("docs/README.md"), "README.md"} == set()


def test_the_pages_for_users_are_few_and_short() -> None:
    assert len(PAGES) <= 20
    assert [page for page in PAGES if len(read(page).splitlines()) > 280] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_begins_with_an_example(page: str) -> None:
    assert re.search(r"^```\w+$", "\n".join(read(page).splitlines()[:25]), re.MULTILINE)


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_an_entrance_is_short(document: str) -> None:
    assert len(read(document).splitlines()) <= 150


def test_a_page_of_design_is_short_and_listed() -> None:
    assert [page for page in DESIGN if len(read(page).splitlines()) > 210] == []
    assert {Path(page).name for page in DESIGN} - set(links("docs/design/README.md")) == {"README.md"}


def test_the_readme_quotes_the_demo_exactly() -> None:
    demo = read("examples/agents/demo.py")
    shown = section("See it", "README.md")
    checks = re.findall(r"^   ok +(.*)$", shown, re.MULTILINE)
    assert checks
    for text in checks:
        assert text.partition(":")[0] in demo, text


def found(pattern: str) -> set[tuple[Any, ...]]:
    """Return the matches of a pattern in all documents, each with its document."""
    return {
        (document, *match.groups())
        for document in DOCUMENTS
        for match in re.finditer(pattern, read(document), re.MULTILINE)
    }


def test_every_path_that_is_named_exists() -> None:
    folders = "locus_mysql|tests|ci|bench|dialect|drivers|engine|checkpoints|integrations"
    named = found(rf"`((?:{folders})/[\w./-]*)")
    assert named
    assert [one for one in named if not (ROOT / one[1]).exists() and not (ROOT / "locus_mysql" / one[1]).exists()] == []


def test_every_name_of_the_package_that_is_imported_exists() -> None:
    imported = found(r"^ *from (locus_mysql[\w.]*) import ([\w, ]+)$")
    assert imported
    missing = [
        (document, module, name)
        for document, module, names in imported
        for name in map(str.strip, names.split(","))
        if not hasattr(importlib.import_module(module), name)
    ]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in locus_mysql.__all__ if name != "__version__"])
def test_a_public_name_is_documented(name: str) -> None:
    value = getattr(locus_mysql, name)
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        undocumented = [
            method
            for method in vars(value)
            if not method.startswith("_") and not inspect.getdoc(getattr(value, method))
        ]
        assert not set(undocumented) - set(getattr(value, "model_fields", ()))


@pytest.mark.parametrize("name", ["CheckpointStore", "MySQLCheckpointer", "WorkingMemory"])
def test_the_main_classes_show_an_example(name: str) -> None:
    assert "```python" in (getattr(locus_mysql, name).__doc__ or "")


def test_the_changelog_has_this_version() -> None:
    assert f"## [{locus_mysql.__version__}]" in read("CHANGELOG.md")


def test_the_table_of_loggers_is_complete() -> None:
    table = [code(name) for name, _ in rows(section("Logs", "docs/troubleshooting.md"))]
    named = set()
    for path in (ROOT / "locus_mysql").rglob("*.py"):
        named |= set(re.findall(r"getLogger\(([^)]*)\)", path.read_text(encoding="utf-8")))
    assert {f'"{name}"' for name in table} == named


def test_the_table_of_numbers_lists_all_stats() -> None:
    table = [re.findall(r"`(\w+)`", names) for names, _ in rows(section("Numbers", "docs/troubleshooting.md"))]
    assert [name for names in table for name in names] == sorted(
        (field.name for field in fields(Stats)), key=[name for names in table for name in names].index
    )
    for field in fields(Stats):
        assert re.search(rf"^ +{field.name}: ", Stats.__doc__ or "", re.MULTILINE)


def test_the_table_of_settings_is_what_sessions_set() -> None:
    table = rows(section("Settings of each session", "docs/operations.md"))
    named = [name for cell, *_ in table for name in re.findall(r"`(\w+)`", cell)]
    assert named == [*session.SETTINGS, *session.SETTINGS_OF_MYSQL]
