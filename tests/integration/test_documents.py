"""Every Python example in README.md, in docs/ and in docstrings of public classes runs unchanged, a second time too."""

from __future__ import annotations

import ast
import asyncio
import gc
import logging
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from google.adk.events.event import Event
from locus.agent import Agent
from locus.core.messages import Message
from locus.core.state import AgentState
from locus.memory import registry
from locus.testing import ScriptedModel
from opentelemetry import metrics, trace
from opentelemetry.util._once import Once
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import Conversation
from pydantic_ai.models.test import TestModel
from strands.session.repository_session_manager import RepositorySessionManager

import locus_mysql
from locus_mysql import MySQLConfig
from locus_mysql.drivers.login import imported_once
from locus_mysql.embedded import stop_server
from locus_mysql.integrations.claude_agent_sdk import ClaudeSessionStore
from locus_mysql.integrations.google_adk import AdkMemoryService, AdkSessionService
from locus_mysql.integrations.langgraph import AsyncMySQLSaver, MySQLSaver
from locus_mysql.integrations.memu import MemuDatabase
from locus_mysql.integrations.openai_agents import OpenAISession
from locus_mysql.integrations.py_key_value import KeyValueStore
from locus_mysql.integrations.pydantic_ai import PydanticConversationStore
from locus_mysql.integrations.strands import StrandsMemoryStore, StrandsSessionRepository, StrandsStorage
from locus_mysql.memory import HashingEmbedder
from locus_mysql.runtime import spans

from .integrations.langgraph.graphs import chat

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

#: The placeholder in examples for the reader's own server; `options` may follow.
EXAMPLE_DSN = re.compile(r"mysql://user:password@localhost/app(?:\?(?P<options>[^\"'\s]*))?")

BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """A block of Python in a document."""

    location: str
    code: str
    #: Names that the example may use without an import: none in a document; in a docstring the public names, `Agent`
    #: and a model.
    names: dict[str, Any]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def location_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def examples_of(location: str, text: str, names: dict[str, Any]) -> Iterator[Example]:
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Example(f"{location}:{line}", dedent(match["code"]), names)


def all_examples() -> list[Example]:
    examples = [example for path in DOCUMENTS for example in examples_of(location_of(path), read(path), {})]
    public = {name: getattr(locus_mysql, name) for name in locus_mysql.__all__}
    for name, value in public.items():
        if getattr(value, "__module__", "").startswith("locus_mysql"):
            examples += examples_of(name, value.__doc__ or "", {**public, "Agent": Agent, "model": MODEL})
    names = {**public, "HashingEmbedder": HashingEmbedder}
    examples += examples_of("HashingEmbedder", HashingEmbedder.__doc__ or "", names)
    for saver in (AsyncMySQLSaver, MySQLSaver):
        examples += examples_of(saver.__name__, saver.__doc__ or "", {saver.__name__: saver, "builder": chat()})
    names = {"ClaudeSessionStore": ClaudeSessionStore, "ClaudeAgentOptions": ClaudeAgentOptions}
    examples += examples_of("ClaudeSessionStore", ClaudeSessionStore.__doc__ or "", names)
    examples += examples_of("OpenAISession", OpenAISession.__doc__ or "", {**public, "OpenAISession": OpenAISession})
    names = {"AdkSessionService": AdkSessionService, "AdkMemoryService": AdkMemoryService, "Event": Event}
    for service in (AdkSessionService, AdkMemoryService):
        examples += examples_of(service.__name__, service.__doc__ or "", names)
    names = {"PydanticConversationStore": PydanticConversationStore, "Conversation": Conversation}
    names["agent"] = PydanticAgent(TestModel())
    examples += examples_of("PydanticConversationStore", PydanticConversationStore.__doc__ or "", names)
    for strands_store in (StrandsStorage, StrandsSessionRepository, StrandsMemoryStore):
        names = {strands_store.__name__: strands_store, "RepositorySessionManager": RepositorySessionManager}
        examples += examples_of(strands_store.__name__, strands_store.__doc__ or "", names)
    examples += examples_of("KeyValueStore", KeyValueStore.__doc__ or "", {"KeyValueStore": KeyValueStore})
    examples += examples_of("MemuDatabase", MemuDatabase.__doc__ or "", {"MemuDatabase": MemuDatabase})
    return examples


MODEL = ScriptedModel(["The invoice was sent on Monday."], repeat_last=True)
EXAMPLES = all_examples()


@pytest.fixture
def dsn(server_dsn: str, database: str) -> str:
    """Return the DSN of an empty schema on the test server."""
    config = MySQLConfig(dsn=server_dsn)
    (endpoint,) = config.endpoints
    password = quote(config.password.get_secret_value(), safe="")
    origin = f"mysql://{quote(config.user, safe='')}:{password}@"
    if endpoint.unix_socket:
        return f"{origin}/{database}?unix_socket={quote(endpoint.unix_socket, safe='')}"
    return f"{origin}{endpoint.host}:{endpoint.port}/{database}"


@pytest.fixture
def restored_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore Locus' registry after an example that registers something."""
    monkeypatch.setattr(registry, "_CHECKPOINTERS", dict(registry._CHECKPOINTERS))


def reset_telemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an example set up OpenTelemetry, which accepts settings only once in a process."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    anew = imported_once(lambda: spans.Instruments(trace.get_tracer_provider(), metrics.get_meter_provider()))
    monkeypatch.setattr(spans, "_instruments", anew)


@pytest.fixture
def restored_telemetry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the settings of OpenTelemetry and of loggers after an example."""
    reset_telemetry(monkeypatch)
    loggers = [logging.getLogger(name) for name in (None, "locus_mysql", "locus_mysql.connections")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def at_server(code: str, dsn: str) -> str:
    """Return the code with the example DSN replaced by a real one."""

    def real(match: re.Match[str]) -> str:
        if not match["options"]:
            return dsn
        return f"{dsn}{'&' if '?' in dsn else '?'}{match['options']}"

    return EXAMPLE_DSN.sub(real, code)


def run(code: str, location: str, names: dict[str, Any]) -> None:
    """Run a block. A block with ``await`` at its top level runs in an event loop, as in a notebook."""
    compiled = compile(code, location, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = types.FunctionType(compiled, {"__name__": "__main__", **names})()
    if asyncio.iscoroutine(result):
        asyncio.run(result)


@pytest.mark.filterwarnings("ignore:loop is closed:ResourceWarning")  # of connections left open by `run_sync`
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.location)
def test_an_example_of_the_documents_runs_twice(
    example: Example,
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    restored_registry: None,
    restored_telemetry: None,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)  # some examples create a folder
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn)
    for _ in range(2):
        reset_telemetry(monkeypatch)
        run(at_server(example.code, dsn), example.location, example.names)
    gc.collect()  # objects that an example did not close are collected now, not during another test
    for folder in tmp_path.iterdir():
        stop_server(folder)


def sql_examples() -> Iterator[str]:
    """Yield the statements in the SQL blocks of all documents."""
    for path in DOCUMENTS:
        for block in re.findall(r"^```sql\n(.*?)^```$", read(path), re.MULTILINE | re.DOTALL):
            for statement in re.split(r";\n", block):
                if statement.strip():
                    yield statement.strip()


@pytest.mark.parametrize(
    "statement",
    [statement for statement in sql_examples() if statement.startswith(("SELECT", "DELETE", "EXPLAIN"))],
    ids=lambda statement: statement.split("\n")[0][:40],
)
def test_a_query_for_administrators_runs(
    statement: str, dsn: str, database: str, run_sql: Callable[..., tuple[Any, ...]]
) -> None:
    with locus_mysql.SyncMySQLCheckpointer(dsn=dsn) as checkpointer:
        checkpointer.save(talk(1), "support/42")
    run_sql(f"USE {database}")
    run_sql(statement)


def grants(ddl_mode: str) -> list[str]:
    """Return the GRANT statements that the documents list for a mode."""
    text = read(ROOT / "docs" / "security.md")
    section = re.search(rf"^-- ddl_mode .*'{ddl_mode}'.*\n((?:GRANT .*;\n)+)", text, re.MULTILINE)
    assert section
    return section[1].removesuffix(";\n").split(";\n")


@pytest.mark.parametrize("ddl_mode", ["create", "validate", "off"])
def test_the_grants_suffice(ddl_mode: str, dsn: str, database: str, run_sql: Callable[..., tuple[Any, ...]]) -> None:
    if ddl_mode != "create":
        with locus_mysql.SyncMySQLCheckpointer(dsn=dsn) as administrator:
            assert administrator.health_check()
    user = f"u{database[-16:]}"
    run_sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'secret-of-{user}'")
    try:
        for grant in grants(ddl_mode):
            run_sql(grant.replace("app.", f"{database}.").replace("'agent'@'%'", f"'{user}'@'%'"))
        own = dsn.replace(dsn[len("mysql://") : dsn.index("@")], f"{user}:secret-of-{user}", 1)
        options = {"ddl_mode": ddl_mode, "ttl_s": 60, "keep_checkpoints": 2}
        with locus_mysql.SyncMySQLCheckpointer(dsn=own, **options) as checkpointer:
            use_every_operation(checkpointer)
    finally:
        run_sql(f"DROP USER '{user}'@'%'")


def talk(length: int) -> AgentState:
    return AgentState(messages=tuple(Message.user("a word or two") for _ in range(length)))


def use_every_operation(checkpointer: locus_mysql.SyncMySQLCheckpointer) -> None:
    for length in range(100, 104):
        checkpointer.save(talk(length), "a", f"c{length}", {"user": 1})
    newest = talk(105)
    checkpointer.save(newest, "a", "c103")
    assert checkpointer.load("a") == newest
    assert checkpointer.search("word")
    assert checkpointer.query_by_metadata("user", 1)
    assert checkpointer.copy_thread("a", "b")
    assert checkpointer.list_with_metadata()
    assert checkpointer.history("a")
    assert checkpointer.search_data("iteration", 0)
    assert checkpointer.get_disk_usage()
    assert checkpointer.health_check()
    assert checkpointer.delete("a", "c103")
    assert checkpointer.vacuum(1) == 0
    assert checkpointer.list_threads(pattern="b*") == ["b"]
    assert checkpointer.count() == 2
    assert checkpointer.forget_tenant()
