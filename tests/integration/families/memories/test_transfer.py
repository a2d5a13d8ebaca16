"""What moving promises of items beyond `tests/integration/records/test_moving.py`: caches, signs, words, packets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.cli.main import main

from ...commands import dsn_of
from ...conftest import MakeConfig

pytestmark = [pytest.mark.kept_tables("memories"), pytest.mark.slow]

RunSql = Callable[..., tuple[Any, ...]]
TABLES = {
    "items": "tenant, path, item_key, value, metadata, version, ttl_us, COALESCE(search_text, pending_text), "
    "created_at, updated_at, expires_at",
    "vectors": "tenant, path, item_key, number, model, embedding",
    "signs": "'', owner, item_key, number, expires, sig",
}


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(make_config()))
    return make_config(driver="pymysql")


@pytest.fixture
def kept(run_sql: RunSql, database: str) -> Callable[[str], dict[str, Any]]:
    """Return a function that reads all rows under a table prefix, except those that notify caches of changes."""

    def rows(prefix: str = "locus_") -> dict[str, Any]:
        return {
            name: run_sql(f"SELECT {columns} FROM {database}.{prefix}memory_{name} ORDER BY 1, 2, 3, 4")
            for name, columns in TABLES.items()
        }

    return rows


def embed(texts: list[str]) -> list[list[float]]:
    return [[len(text), text.count("a") - 0.3, 1e-30] for text in texts]


def fill(config: MySQLConfig) -> int:
    """Put items of all kinds, and return the number of items and embeddings to export."""
    with SyncMemoryStore(config, dims=3, embed=embed, fields=["facts[*]", "$"]) as store:
        for namespace in (("foo",), ("foobar",), ("Foo",), ("foo", "bar"), ("f_o", "%", "é", "🙂", "\u2028", '"')):
            store.put(namespace, "key", {"facts": ["green tea", "a cat"], "big": 2**300, "π": [1e-7, None, True, ""]})
            store.put(namespace, "Key", "black tea", metadata={"source": "é", "n": -0.0})
            store.put(namespace, "key ", 1.0, ttl_s=100_000)
            store.put(namespace, "🙂\n", "", text="words of its own", embeddings=[[1, 2, 3], [3, 2, 1]])
        store.put(("foo",), "Key", "black tea again", metadata={"source": "é"})
        store.put(("foo",), "gone", 1)
        store.delete(("foo",), "gone")
        store.put(("foo",), "expired", 1, ttl_s=0.000001)
        store.put(("foo",), "silent", "not searched", text="")
        return store.count() + sum(
            len(store.get_embeddings(hit.item.namespace, hit.item.key)) for hit in store.search(limit=100)
        )


def test_imported_items_are_found_and_can_be_written_again(config: MySQLConfig, tmp_path: Path) -> None:
    fill(config)
    file = tmp_path / "memories.jsonl"
    assert main(["export", str(file), "--family", "memories", "--namespace", "foo"]) == 0
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    asked: list[list[str]] = []

    def output(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return embed(texts)

    acme = config.model_copy(update={"tenant": "acme"})
    with SyncMemoryStore(acme, dims=3, embed=output, fields=["facts[*]", "$"]) as store:
        assert store.list_namespaces() == [("foo",), ("foo", "bar")]
        assert [hit.item.key for hit in store.search(("foo",), query="black tea again", way="word", limit=1)] == ["Key"]
        assert [hit.item.key for hit in store.search(embedding=[3, 2, 1], limit=1)] == ["🙂\n"]
        assert not store.search(query="silent", way="word")
        value = store.get(("foo",), "key")
        store.put(("foo",), "key", value)
        assert asked == []  # the import copied the digests, so nothing is embedded again
        item = store.get_item(("foo",), "Key")
        assert item is not None
        assert item.version == 2
        assert store.put(("foo",), "Key", "x", index=False, if_version=2) == 3
        assert store.get_item(("foo",), "key ", refresh=True) is not None


def test_items_that_need_more_than_a_packet_together_are_written_apart(
    own_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = own_config(driver="pymysql")
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config))
    with SyncMemoryStore(config) as store:
        for n in range(6):
            store.put(("u",), f"k{n}", "x" * 150_000)
    file = str(tmp_path / "memories.jsonl")
    assert main(["export", file, "--family", "memories"]) == 0
    assert main(["import", file, "--tenant", "acme"]) == 0
    assert capsys.readouterr().out == "Imported 6 rows.\n"
    with SyncMemoryStore(config.model_copy(update={"tenant": "acme"})) as store:
        assert store.count() == 6


def test_words_of_items_without_a_full_text_index_are_found_after_an_import(
    config: MySQLConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Any
) -> None:
    silent = config.model_copy(update={"search": False, "table_prefix": "silent_"})
    with SyncMemoryStore(silent) as store:
        store.put(("u",), "k", "green tea")
    file = tmp_path / "memories.jsonl"
    monkeypatch.setenv("LOCUS_MYSQL_SEARCH", "false")
    assert main(["export", str(file), "--family", "memories", "--table-prefix", "silent_"]) == 0
    monkeypatch.delenv("LOCUS_MYSQL_SEARCH")
    assert main(["import", str(file)]) == 0
    with SyncMemoryStore(config) as store:
        assert [hit.item.key for hit in store.search(query="tea")] == ["k"]
    monkeypatch.setenv("LOCUS_MYSQL_SEARCH", "false")
    assert main(["import", str(file), "--table-prefix", "silent_"]) == 0
    assert kept("silent_")["items"][0][7] is None
