"""Every Python example in README.md and in the docstrings of public classes runs as it stands."""

from __future__ import annotations

import ast
import asyncio
import gc
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from locus.agent import Agent
from locus.memory import registry
from locus.testing import ScriptedModel

import locus_mysql
from locus_mysql import MySQLConfig
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver

from .langgraph.graphs import chat

ROOT = Path(__file__).resolve().parents[2]

#: Stands in the examples for the reader's own server; `options` may follow.
EXAMPLE_DSN = re.compile(r"mysql://user:password@localhost/app(?:\?(?P<options>[^\"'\s]*))?")

BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A block of Python in a document."""

    place: str
    code: str
    #: What the reader has at this place: in README.md a model; in a docstring also the names about it.
    names: dict[str, Any]


def examples_of(place: str, text: str, names: dict[str, Any]) -> Iterator[Example]:
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Example(f"{place}:{line}", dedent(match["code"]), names)


def all_examples() -> list[Example]:
    examples = list(examples_of("README.md", (ROOT / "README.md").read_text(encoding="utf-8"), {}))
    public = {name: getattr(locus_mysql, name) for name in locus_mysql.__all__}
    for name, value in public.items():
        if getattr(value, "__module__", "").startswith("locus_mysql"):
            examples += examples_of(name, value.__doc__ or "", {**public, "Agent": Agent})
    for saver in (AsyncMySQLSaver, MySQLSaver):
        examples += examples_of(saver.__name__, saver.__doc__ or "", {saver.__name__: saver, "builder": chat()})
    return examples


EXAMPLES = all_examples()


@pytest.fixture
def dsn(server_dsn: str, database: str) -> str:
    """The DSN of an empty schema on the test server."""
    config = MySQLConfig(dsn=server_dsn)
    (endpoint,) = config.endpoints
    password = quote(config.password.get_secret_value(), safe="")
    place = f"mysql://{quote(config.user, safe='')}:{password}@"
    if endpoint.unix_socket:
        return f"{place}/{database}?unix_socket={quote(endpoint.unix_socket, safe='')}"
    return f"{place}{endpoint.host}:{endpoint.port}/{database}"


@pytest.fixture
def restored_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put back afterwards what an example registers with Locus."""
    monkeypatch.setattr(registry, "_CHECKPOINTERS", dict(registry._CHECKPOINTERS))


def at_server(code: str, dsn: str) -> str:
    """The code with the example DSN replaced by a real one."""

    def real(match: re.Match[str]) -> str:
        if not match["options"]:
            return dsn
        return f"{dsn}{'&' if '?' in dsn else '?'}{match['options']}"

    return EXAMPLE_DSN.sub(real, code)


def run(code: str, place: str, names: dict[str, Any]) -> None:
    """Run a block; one with ``await`` at its top level runs in an event loop, as in a notebook."""
    compiled = compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = types.FunctionType(compiled, {"__name__": "__main__", **names})()
    if asyncio.iscoroutine(result):
        asyncio.run(result)


@pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning")  # of connections left open by `run_sync`
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_an_example_runs_as_it_stands(
    example: Example,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    restored_registry: None,
) -> None:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn)
    model = ScriptedModel(["The invoice was sent on Monday."], repeat_last=True)
    run(at_server(example.code, dsn), example.place, {"model": model, **example.names})
    gc.collect()  # what an example leaves to the collector must not disturb another test


def sql_examples() -> Iterator[tuple[str, str]]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for match in re.finditer(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for statement in re.split(r";\n", match[1]):
            if statement.strip():
                yield f"README.md:{text.count(chr(10), 0, match.start(1)) + 1}", statement.strip()


@pytest.mark.parametrize(
    "statement",
    [statement for _, statement in sql_examples() if statement.startswith(("SELECT", "DELETE", "EXPLAIN"))],
    ids=lambda statement: statement.split("\n")[0][:40],
)
def test_a_query_for_administrators_runs(
    statement: str, dsn: str, database: str, run_sql: Callable[..., tuple[Any, ...]]
) -> None:
    with locus_mysql.SyncCheckpointStore(dsn=dsn) as store:
        store.save("support/42", {"messages": ["Hello"]})
    run_sql(f"USE {database}")
    run_sql(statement)


def grants(ddl_mode: str) -> list[str]:
    """The GRANT statements that README gives for a mode."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text[text.index(f"-- ddl_mode '{ddl_mode}'") :]
    return re.findall(r"^GRANT .*?(?=;$)", section[: section.index("\n\n")], re.MULTILINE)


@pytest.mark.parametrize("ddl_mode", ["create", "validate", "off"])
def test_the_grants_suffice(ddl_mode: str, dsn: str, database: str, run_sql: Callable[..., tuple[Any, ...]]) -> None:
    if ddl_mode != "create":
        with locus_mysql.SyncCheckpointStore(dsn=dsn) as administrator:
            administrator.health_check()
    user = f"u{database[-16:]}"
    run_sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'secret-of-{user}'")
    try:
        for grant in grants(ddl_mode):
            run_sql(grant.replace("app.", f"{database}.").replace("'agent'@'%'", f"'{user}'@'%'"))
        own = dsn.replace(dsn[len("mysql://") : dsn.index("@")], f"{user}:secret-of-{user}", 1)
        with locus_mysql.SyncCheckpointStore(dsn=own, ddl_mode=ddl_mode, ttl_s=60, keep_checkpoints=2) as store:
            use_every_operation(store)
    finally:
        run_sql(f"DROP USER '{user}'@'%'")


def use_every_operation(store: locus_mysql.SyncCheckpointStore) -> None:
    for length in range(100, 104):
        store.save("a", {"messages": ["a word or two"] * length}, f"c{length}", {"user": 1})
    store.save("a", {"messages": ["a word or two"] * 105}, "c103")
    assert store.load("a") == {"messages": ["a word or two"] * 105}
    assert store.search("word")
    assert store.query_by_metadata("user", 1)
    assert store.copy_thread("a", "b")
    assert store.list_with_metadata()
    assert store.history("a")
    assert store.search_data("messages", "a word or two")
    assert store.get_disk_usage()["rows"]
    assert store.health_check()["ok"]
    assert store.delete("a", "c103")
    assert store.vacuum(1) == 0
    assert store.list_threads(pattern="b*") == ["b"]
    assert store.count() == 2
    assert store.forget_tenant()
