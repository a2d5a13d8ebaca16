"""Tables of another layout, or changed by hand: what calls, `health` and exports say, with nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Database, MySQLConfig, SyncCheckpointStore, SyncMemoryStore
from locus_mysql.engine.bootstrap import describe, ensure_schema
from locus_mysql.errors import CorruptCheckpoint, NewerLayout, OlderLayout, SchemaMismatch
from locus_mysql.families.registry import families, find_family

from ..commands import Run

RunSQL = Callable[..., tuple[Any, ...]]

CHECKPOINTS = "locus_store_checkpoints"


def tables(run_sql: RunSQL, config: MySQLConfig) -> set[str]:
    found = run_sql("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", config.database)
    return {name for (name,) in found}


@pytest.mark.parametrize("name", [family.name for family in families()])
def test_tables_are_as_declared_right_after_their_creation(config: MySQLConfig, name: str) -> None:
    schema = find_family(name).schema(config)
    with Database(config) as database:
        database.synchronous.run(ensure_schema(config, schema, "create"))
        found = database.synchronous.run(describe(schema))
        assert found.differences == ((), ())
        assert len(found.tables) == len(schema.tables)
        database.synchronous.run(ensure_schema(config, schema, "validate"))


def test_changes_by_hand_are_all_named_by_validate_and_health(config: MySQLConfig, run: Run, run_sql: RunSQL) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {"n": 1})
    run_sql(
        f"ALTER TABLE {config.database}.{CHECKPOINTS} DROP KEY parents, MODIFY checkpoint_id VARCHAR(100) NULL,"
        " ADD note INT NULL, ADD KEY mine (created_at)"
    )
    wrong = [
        "Column 'checkpoint_id' of table 'locus_store_checkpoints' has type varchar(100); it should be varchar(128).",
        "Table 'locus_store_checkpoints' has no index 'parents', on (tenant, thread_id, parent_seq).",
    ]
    validating = config.model_copy(update={"ddl_mode": "validate"})
    with SyncCheckpointStore(validating) as store, pytest.raises(SchemaMismatch) as caught:
        store.load("t")
    assert all(sentence in str(caught.value) for sentence in wrong)
    assert "note" not in str(caught.value)
    code, printed, _ = run("health", "--family", "dicts")
    assert code == 1
    assert [line.removeprefix("problem  ") for line in printed.splitlines() if line.startswith("problem")] == wrong
    assert "note     Table 'locus_store_checkpoints' also has a column 'note'" in printed
    assert "also has an index 'mine', on (created_at)" in printed
    assert "threads  1 of tenant" in printed
    with SyncCheckpointStore(config) as store:  # by default only the comments are checked
        assert store.load("t") == {"n": 1}


def test_health_names_a_missing_column_instead_of_failing(config: MySQLConfig, run: Run, run_sql: RunSQL) -> None:
    with SyncMemoryStore(config) as store:
        store.put(("a",), "k", {"n": 1})
    run_sql(f"ALTER TABLE {config.database}.locus_memory_items DROP KEY expiry, DROP COLUMN expires_at")
    code, printed, _ = run("health")
    assert code == 1
    assert "problem  Table 'locus_memory_items' has no column 'expires_at' (datetime(6))." in printed
    assert "problem  Table 'locus_memory_items' has no index 'expiry', on (expires_at)." in printed


@pytest.mark.parametrize(
    ("comment", "kind", "words"),
    [
        ("locus-mysql: dicts layout 0", OlderLayout, "locus_mysql migrate --family dicts"),
        ("locus-mysql: dicts layout 9", NewerLayout, "too old"),
    ],
)
def test_every_use_of_tables_of_another_version_says_what_to_do(
    config: MySQLConfig, run: Run, run_sql: RunSQL, comment: str, kind: type[SchemaMismatch], words: str
) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {"n": 1})
    run_sql(f"ALTER TABLE {config.database}.{CHECKPOINTS} COMMENT = '{comment}'")
    before = tables(run_sql, config)
    for mode in ("create", "validate"):
        with SyncCheckpointStore(config.model_copy(update={"ddl_mode": mode})) as store:
            with pytest.raises(kind, match=words):
                store.load("t")
            with pytest.raises(kind, match=words):
                store.save("t", {"n": 2})
    commands = (("health",), ("export", "--family", "dicts", "-"), ("threads",), ("vacuum", "--older-than-days", "1"))
    for command in commands:
        code, printed, errors = run(*command)
        assert code == 1
        assert words in printed + errors
    assert tables(run_sql, config) == before


def test_rows_of_another_version_are_not_called_damaged_where_tables_are_not_checked(
    config: MySQLConfig, run_sql: RunSQL
) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {"n": 1})
    run_sql(f"UPDATE {config.database}.{CHECKPOINTS} SET payload = CONCAT(payload, 'x')")
    with SyncCheckpointStore(config.model_copy(update={"ddl_mode": "off"})) as store:
        with pytest.raises(CorruptCheckpoint):
            store.load("t")
        run_sql(f"ALTER TABLE {config.database}.{CHECKPOINTS} COMMENT = 'locus-mysql: dicts layout 0'")
        with pytest.raises(OlderLayout):
            store.load("t")
        run_sql(f"ALTER TABLE {config.database}.{CHECKPOINTS} DROP COLUMN seal")
        with pytest.raises(OlderLayout):
            store.load("t")
