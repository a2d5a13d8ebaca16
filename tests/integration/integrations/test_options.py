"""No option without effect: each option of a store has one on each public class, or the class refuses it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.adk.events import Event
from locus.memory.delta import CheckpointMetadata, DeltaCheckpoint

import locus_mysql
from locus_mysql import Database, MySQLConfig
from locus_mysql.config import ConnectionOptions, StoreOptions
from locus_mysql.errors import ConfigError, EncryptionError, SchemaMismatch
from locus_mysql.options import MEMU, STORES, classes_that_use
from locus_mysql.runtime.stores import Store
from locus_mysql.transcripts import NewItem, TranscriptKey

from ...either_side import AnyStore
from ..conftest import MakeConfig
from ..encryption.conftest import MARKER, RunSQL, columns_with, keys  # noqa: F401 - a fixture
from .test_every_store import HAS_CREWAI, KINDS, save_record

Save = Callable[[Any, str, str], Awaitable[Any]]

#: Text that a compressed row does not hold as it is.
TEXT = f"{MARKER} " + "word " * 400

MODULES = [
    *("locus_mysql", "locus_mysql.memory", "locus_mysql.transcripts", "locus_mysql.working"),
    *(
        f"locus_mysql.integrations.{one.name}"
        for one in pkgutil.iter_modules(locus_mysql.integrations.__path__)
        if one.name != "crewai" or HAS_CREWAI
    ),
    "locus_mysql.integrations.locus.deltas",
]


def public_classes() -> Iterator[tuple[str, type]]:
    """Yield the public classes that take options of `MySQLConfig`, by name."""
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", ["MySQLDeltaStorage"] if module.__name__.endswith("deltas") else []):
            kind = getattr(module, name)
            if not inspect.isclass(kind) or issubclass(kind, Database | MySQLConfig | BaseException):
                continue
            options = [one for one in inspect.signature(kind).parameters.values() if one.kind is one.VAR_KEYWORD]
            if issubclass(kind, Store) or (options and "Keywords" in str(options[0].annotation)):
                yield name, kind


CLASSES = dict(public_classes())


def declared(name: str) -> str:
    """Return the name of a class in the declaration, which is the same for both of its sides."""
    return re.sub("^(Sync|Async)", "", name)


SAVES: Mapping[str, Save] = {
    "AdkMemoryService": lambda store, name, text: store.add_events_to_memory(
        app_name="a", user_id=name, events=[Event(author="user", invocation_id="1", message=text)]
    ),
    "AdkSessionService": KINDS["adk"].save,
    "CheckpointStore": lambda store, name, text: store.save(name, {"text": text}),
    "ClaudeSessionStore": KINDS["claude"].save,
    "CrewFlowPersistence": lambda store, name, text: store.save_state(name, "step", {"text": text}),
    "CrewMemoryStorage": save_record,
    "KeyValueStore": KINDS["key_value"].save,
    "MemoryStore": lambda store, name, text: store.put(("n",), name, {"text": text}),
    "MemuDatabase": KINDS["memu"].save,
    "MySQLBackend": lambda store, name, text: store.save(name, {"text": text}),
    "MySQLCheckpointSaver": lambda store, name, text: store.put(
        thread_id=name, checkpoint_id=str(len(text)), checkpoint_data={"text": text}
    ),
    "MySQLCheckpointer": KINDS["locus_checkpointer"].save,
    "MySQLDeltaStorage": lambda store, name, text: store.store.store(
        name, "c", DeltaCheckpoint(CheckpointMetadata("c", name, None, True, 1), text.encode(), is_delta=False)
    ),
    "MySQLMemory": KINDS["locus_memory"].save,
    "MySQLSaver": KINDS["langgraph_saver"].save,
    "MySQLStore": KINDS["langgraph_store"].save,
    "OpenAIBranchingSession": lambda store, name, text: store.add_items([{"role": "user", "content": text}]),
    "OpenAISession": lambda store, name, text: store.add_items([{"role": "user", "content": text}]),
    "PydanticConversationStore": KINDS["pydantic_ai"].save,
    "RecallDatabase": KINDS["memu_recall"].save,
    "StrandsMemoryStore": lambda store, name, text: store.add(f"{text} {name}"),
    "StrandsSessionRepository": KINDS["strands_sessions"].save,
    "StrandsStorage": KINDS["strands_storage"].save,
    "TranscriptStore": lambda store, name, text: store.append(TranscriptKey("k", "", name), [NewItem({"text": text})]),
    "WorkingMemory": lambda store, name, text: store.set(name, text),
}


LOADS: Mapping[str, Callable[[Any, str], Awaitable[Any]]] = {
    "CrewFlowPersistence": lambda store, name: store.load_state(name),
    "CheckpointStore": lambda store, name: store.load(name),
    "MySQLBackend": lambda store, name: store.load(name),
    "MySQLCheckpointSaver": lambda store, name: store.get(thread_id=name),
    "MySQLCheckpointer": KINDS["locus_checkpointer"].load,
    "MySQLDeltaStorage": lambda store, name: store.retrieve(name, "c"),
    "MySQLSaver": KINDS["langgraph_saver"].load,
    "StrandsStorage": KINDS["strands_storage"].load,
}

#: What a class takes besides options.
ARGUMENTS: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
    "OpenAIBranchingSession": (("s",), {}),
    "OpenAISession": (("s",), {}),
    "StrandsMemoryStore": ((), {"name": "n"}),
    "WorkingMemory": (("s",), {}),
}


def make(kind: str, *where: Any, **options: Any) -> Any:
    """Return a store of a public class."""
    arguments, keywords = ARGUMENTS.get(declared(kind), ((), {}))
    return CLASSES[kind](*arguments, *where, **keywords, **options)


class Probe:
    """What was stored in the test's schema."""

    def __init__(self, run_sql: RunSQL, database: str, found: Callable[..., list[str]]) -> None:
        self._run, self._database, self.columns_with = run_sql, database, found

    def tables(self) -> list[str]:
        rows = self._run("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", self._database)
        return [table for (table,) in rows]

    def count(self, column: str, condition: str) -> int:
        """Return the number of rows that a condition on a column selects, in all tables that have the column."""
        tables = self._run(
            "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND COLUMN_NAME = %s",
            *(self._database, column),
        )
        return sum(
            self._run(f"SELECT COUNT(*) FROM {self._database}.`{table}` WHERE {column} {condition}")[0][0]
            for (table,) in tables
        )

    def text_indexes(self) -> str:
        """Return the definitions of all full-text indexes."""
        made = [self._run(f"SHOW CREATE TABLE {self._database}.`{table}`")[0][1] for table in self.tables()]
        return "\n".join(line for text in made for line in text.splitlines() if "FULLTEXT" in line)


@pytest.fixture
def probe(run_sql: RunSQL, database: str, columns_with: Callable[..., list[str]]) -> Probe:  # noqa: F811
    """Return what looks at the rows."""
    return Probe(run_sql, database, columns_with)


Open = Callable[..., AnyStore]


@pytest.fixture
async def open_class(make_config: MakeConfig) -> AsyncIterator[Open]:
    """Yield ``open_class(name, **options)``: a store of a public class, with options as keywords."""
    opened: list[AnyStore] = []

    def open_one(name: str, **options: Any) -> AnyStore:
        config = make_config(driver="pymysql")
        server = {option: getattr(config, option) for option in config.model_fields_set}
        opened.append(AnyStore(make(name, **{**server, **options})))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


async def _tenant(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    await save(tenant="acme")
    assert probe.count("tenant", "= 'acme'")
    assert probe.count("tenant", "<> 'acme'") == 0


async def _table_prefix(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    await save(table_prefix="own_")
    assert probe.tables()
    assert [table for table in probe.tables() if not table.startswith("own_")] == []


async def _ttl_s(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    await save()
    assert probe.count("expires_at", "IS NOT NULL") == 0
    await save(ttl_s=3_600, key="expires")
    assert probe.count("expires_at", "IS NOT NULL")


async def _keep_checkpoints(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    for number in range(3):
        store = await save(keep_checkpoints=2, text=TEXT + "x" * number)
    if declared(name) == "CrewFlowPersistence":
        kept = await AnyStore(store.store._store).list_checkpoints("crewai/t")
    elif declared(name) == "MySQLSaver":
        kept = [one async for one in store.store.alist({"configurable": {"thread_id": "t"}})]
    else:
        kept = await store.list_checkpoints(thread_id="t")
    assert len(kept) == 2


async def _search(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    await save(search=False)
    assert probe.text_indexes() == ""


async def _search_parser(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    await save(search_parser="ngram")
    assert "ngram" in probe.text_indexes()


async def _compression(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    indexed = {"search": False} if declared(name) in classes_that_use("search") else {}
    await save(**indexed)
    compressed = probe.columns_with(TEXT)
    await save(compression="none", table_prefix="clear_", **indexed)
    assert compressed == []
    assert probe.columns_with("word word word")


async def _ddl_mode(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    for mode in ("validate", "off"):
        with pytest.raises(Exception, match=r"(?i)table") as raised:
            await save(ddl_mode=mode)
        errors = (raised.value, raised.value.__cause__)
        assert any(isinstance(error, SchemaMismatch) for error in errors), errors
    assert probe.tables() == []


async def _encryption(name: str, save: Callable[..., Awaitable[Any]], probe: Probe) -> None:
    if declared(name) in MEMU:
        with pytest.raises(EncryptionError, match="do not support encryption"):
            await save(encryption=keys())
        assert probe.columns_with() == []
        return
    await save(encryption=keys(), table_prefix="sealed_")
    assert probe.columns_with() == []
    plain = {"compression": "none"} if declared(name) in classes_that_use("compression") else {}
    await save(**plain)
    assert probe.columns_with()


#: How each option of a store shows its effect.
EFFECTS: Mapping[str, Callable[[str, Callable[..., Awaitable[Any]], Probe], Awaitable[None]]] = {
    "tenant": _tenant,
    "table_prefix": _table_prefix,
    "ttl_s": _ttl_s,
    "keep_checkpoints": _keep_checkpoints,
    "search": _search,
    "search_parser": _search_parser,
    "compression": _compression,
    "ddl_mode": _ddl_mode,
    "encryption": _encryption,
}

#: The test that shows the effect of each option of a connection, which the engine has for all stores alike.
SHOWN_BY: Mapping[str, str] = {
    "driver": "unit/drivers/test_registry.py::test_a_store_refuses_an_unknown_driver_before_its_first_call",
    "host": "integration/test_setup_errors.py::test_an_unknown_host_name_is_reported_with_the_name",
    "port": "integration/test_setup_errors.py::test_a_server_that_is_not_there_is_reported_at_once_with_its_address",
    "unix_socket": "integration/test_setup_errors.py::test_a_socket_that_is_not_there_is_reported_with_its_path",
    "embedded": "integration/engine/test_embedded.py::test_every_store_writes_and_reads",
    "hosts": "integration/engine/test_read_only_servers.py::"
    "test_of_several_servers_the_one_that_takes_writes_gets_the_save",
    "read_only": "integration/engine/test_read_only_servers.py::"
    "test_a_read_only_store_reads_a_replica_and_writes_nothing",
    "user": "integration/test_setup_errors.py::"
    "test_a_user_without_access_to_the_database_gets_an_error_that_explains_it",
    "password": "unit/engine/test_passwords.py::test_each_kind_of_function_gives_the_password",
    "database": "integration/test_setup_errors.py::"
    "test_a_missing_database_is_reported_with_the_statement_that_creates_it",
    "ssl_mode": "integration/drivers/test_security.py::test_tls_is_used_where_wanted",
    "ssl_ca": "integration/drivers/test_security.py::test_a_trusted_authority_is_accepted",
    "ssl_cert": "integration/drivers/test_security.py::test_a_user_who_needs_a_certificate_shows_it",
    "ssl_key": "integration/drivers/test_security.py::test_a_user_who_needs_a_certificate_shows_it",
    "cleartext_password": "integration/drivers/test_security.py::"
    "test_over_tls_only_a_server_that_is_known_or_allowed_gets_the_password_in_clear_text",
    "connect_timeout_s": "integration/drivers/test_failures.py::"
    "test_a_server_that_never_greets_ends_with_the_connect_timeout",
    "read_timeout_s": "integration/drivers/test_failures.py::"
    "test_an_answer_that_never_comes_ends_with_the_read_timeout",
    "write_timeout_s": "integration/drivers/test_hostile_server.py::"
    "test_a_server_that_reads_nothing_ends_with_the_write_timeout",
    "pool_size": "integration/test_contention_and_cancellation.py::test_many_tasks_share_a_small_pool",
    "pool_timeout_s": "integration/test_contention_and_cancellation.py::test_a_pool_that_stays_full_says_what_to_raise",
    "pool_idle_s": "unit/engine/test_pool.py::test_idle_connections_are_closed_and_checked_until_none_is_left",
    "pool_max_age_s": "unit/engine/test_pool.py::test_an_expired_connection_is_closed_before_another_is_opened",
    "retry_deadline_s": "integration/test_contention_and_cancellation.py::"
    "test_a_save_raises_an_error_at_the_retry_deadline",
    "select_timeout_s": "unit/drivers/wire/test_session.py::test_a_session_limits_its_reads",
    "slow_ms": "integration/test_logs.py::test_slow_calls",
    "pipeline": "integration/drivers/test_failures.py::test_without_pipeline_each_statement_is_a_round_trip",
}

VALUES: Mapping[str, Any] = {
    **{"tenant": "acme", "table_prefix": "own_", "ttl_s": 60, "keep_checkpoints": 2, "search": False},
    **{"search_parser": "ngram", "compression": "none", "ddl_mode": "off", "encryption": keys(), "cache_bytes": 0},
}

USED = [(name, option) for name in CLASSES for option in EFFECTS if declared(name) in classes_that_use(option)]
REFUSED = [
    (name, option)
    for name in CLASSES
    for option in MySQLConfig.model_fields
    if declared(name) not in classes_that_use(option)
]


def test_the_declaration_names_every_public_class() -> None:
    missing = set() if HAS_CREWAI else {"CrewFlowPersistence", "CrewMemoryStorage"}
    assert {declared(name) for name in CLASSES} | missing == {*STORES}
    assert {*SAVES, "MySQLStorage"} == {*STORES}  # that one is the storage of `WorkingMemory`
    assert EFFECTS.keys() == StoreOptions.model_fields.keys()


def test_every_class_can_be_closed() -> None:
    assert [name for name, kind in CLASSES.items() if not callable(getattr(kind, "close", None))] == []


@pytest.mark.parametrize(("name", "option"), REFUSED)
def test_an_option_without_effect_is_refused_with_the_classes_that_use_it(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn, value = "mysql://user:secret@localhost/app", VALUES[option]
    users = ", ".join(sorted(classes_that_use(option)))
    message = rf"^{option} has no effect on \w+; it is an option of {users}\."
    with pytest.raises(ConfigError, match=message):
        make(name, dsn, driver="pymysql", **{option: value})
    with pytest.raises(ConfigError, match=message):
        make(name, f"{dsn}?driver=pymysql&{option}={value}")
    with Database(dsn, driver="pymysql", **{option: value}) as database:
        make(name, database)  # a default for the stores that use it
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn)
    monkeypatch.setenv("LOCUS_MYSQL_DRIVER", "pymysql")
    make(name)
    monkeypatch.setenv(f"LOCUS_MYSQL_{option.upper()}", str(value))
    with pytest.raises(ConfigError, match=message):
        make(name)


@pytest.mark.parametrize(("name", "option"), [one for one in USED if one[0] != "MySQLStorage"])
async def test_an_option_has_an_effect(name: str, option: str, open_class: Open, probe: Probe) -> None:
    async def save(text: str = TEXT, key: str = "t", **options: Any) -> AnyStore:
        store = open_class(name, **options)
        await SAVES[declared(name)](store, key, text)
        return store

    await EFFECTS[option](name, save, probe)


@pytest.mark.parametrize("name", [name for name in CLASSES if declared(name) in classes_that_use("cache_bytes")])
async def test_cache_bytes_has_an_effect(name: str, open_class: Open) -> None:
    received: list[int] = []
    for cache_bytes in (33_554_432, 0):
        store = open_class(name, cache_bytes=cache_bytes)
        await SAVES[declared(name)](store, f"t{cache_bytes}", "".join(f"{number} " for number in range(20_000)))
        before = store.database.stats().received_bytes
        assert await LOADS[declared(name)](store, f"t{cache_bytes}") is not None
        received.append(store.database.stats().received_bytes - before)
    cached, uncached = received
    assert cached < uncached / 2


@pytest.mark.parametrize("option", sorted(ConnectionOptions.model_fields.keys() - {"cache_bytes"}))
def test_an_option_of_a_connection_has_an_effect_that_a_test_shows(option: str) -> None:
    path, _, test = SHOWN_BY[option].partition("::")
    assert f"def {test}(" in (Path(__file__).parents[2] / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*CLASSES])
def test_every_class_uses_the_options_of_a_connection(name: str) -> None:
    assert all(
        declared(name) in classes_that_use(one) for one in ConnectionOptions.model_fields if one != "cache_bytes"
    )
    store = make(name, "mysql://user:secret@localhost/app", driver="pymysql", pool_size=3, slow_ms=7)
    database = next(found for found in (database_of(store), database_of(getattr(store, "storage", None))) if found)
    assert (database.config.pool_size, database.config.slow_ms) == (3, 7)


def database_of(store: Any) -> Database | None:
    """Return the database that runs the calls of a store."""
    return getattr(store, "database", None) or getattr(getattr(store, "_items", None), "database", None)
