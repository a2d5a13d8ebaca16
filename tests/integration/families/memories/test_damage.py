"""Items damaged by SQL, column by column: a read returns the saved item, omits it, or raises an error that names it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import SyncMemoryStore
from locus_mysql.cli.main import main
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.memory import Put

from ...cli.test_main import dsn_of
from ...conftest import MakeConfig
from ...damaging import Damage, damages

pytestmark = [pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]

PLACES = ("tenant", "path", "item_key")


def _put(store: SyncMemoryStore) -> None:
    store.put_batch(
        [
            Put(("n",), "a", {"v": "apple", "n": 1}, {"m": 1}, embedding=[1.0, 2.0]),
            Put(("n",), "b", {"v": "berry", "n": 2}, {"m": 2}, embedding=[2.0, 1.0]),
            Put(("o", "ö"), "a", {"v": "äpfel ☕", "n": 3}, embedding=[1.0, -1.0]),
        ]
    )
    store.put(("n",), "b", {"v": "berry", "n": 2}, metadata={"m": 2}, embedding=[2.0, 1.0])


class Saved:
    """Compares the saved items with what a store returns.

    Args:
        store: The store with the items.
    """

    keys = ((("n",), "a"), (("n",), "b"), (("o", "ö"), "a"))

    def __init__(self, store: SyncMemoryStore) -> None:
        self.items = {key: store.get_item(*key) for key in self.keys}
        self.embeddings = {key: store.get_embeddings(*key) for key in self.keys}
        self.scores = {(hit.item.namespace, hit.item.key): hit.score for hit in self._nearest(store)}
        assert len(self.scores) == len(self.keys)

    def check(self, store: SyncMemoryStore, damage: Damage) -> int:
        """Compare all reads with the saved items, and return the number of refused reads and omitted items."""
        noticed = 0
        for key in self.keys:
            item = _attempt(lambda key=key: store.get_item(*key), key)
            assert item in ("refused", None) or _same(item, self.items[key]), (damage, item)
            embeddings = _attempt(lambda key=key: store.get_embeddings(*key), key)
            assert embeddings in ("refused", []) or embeddings == self.embeddings[key], damage
            noticed += (item == "refused") + (embeddings == "refused")
        for find in (self._nearest, self._words, self._all):
            hits = find(store)
            for hit in hits:
                key = (hit.item.namespace, hit.item.key)
                assert key in self.items, (damage, hit)
                assert _same(hit.item, self.items[key]), (damage, hit)
                assert find is not self._nearest or hit.score == self.scores[key], (damage, hit)
            noticed += len(self.keys) - len(hits)
        return noticed

    @staticmethod
    def _nearest(store: SyncMemoryStore) -> list[Any]:
        return store.search((), embedding=[1.0, 1.0], limit=10)

    @staticmethod
    def _words(store: SyncMemoryStore) -> list[Any]:
        return store.search((), query="apple berry äpfel", limit=10, way="word")

    @staticmethod
    def _all(store: SyncMemoryStore) -> list[Any]:
        return store.search((), limit=10)


def _attempt(read: Callable[[], Any], key: tuple[tuple[str, ...], str]) -> Any:
    try:
        return read()
    except CorruptCheckpoint as error:
        named = f"tem {key[1]!r} in {key[0]!r} cannot be read back" in str(error)  # "Embedding 0 of item …" too
        return "refused" if named else error


def _same(found: Any, saved: Any) -> bool:
    """Compare what the client wrote; the server assigns the version and the times."""
    wanted = (saved.namespace, saved.key, saved.value, saved.metadata)
    return bool((found.namespace, found.key, found.value, found.metadata) == wanted)


@pytest.fixture
def saved(make_config: MakeConfig) -> Any:
    """The items, and a store that reads them."""
    # Without a cache, in which embeddings that were repaired by hand would stay as they were.
    with SyncMemoryStore(make_config(driver="pymysql"), dims=2, vector_cache_bytes=0) as store:
        _put(store)
        yield Saved(store), store


@pytest.mark.kept_tables("memories")
@pytest.mark.parametrize("table", ["memory_items", "memory_vectors"])
def test_no_damage_to_a_column_gives_another_value(saved: Any, run_sql: RunSQL, database: str, table: str) -> None:
    known, store = saved
    noticed: dict[str, int] = {}
    for damage in damages(run_sql, database, f"locus_{table}"):
        noticed[damage.column] = noticed.get(damage.column, 0) + known.check(store, damage)
    assert known.check(store, Damage("", "", "none", 0)) == 0
    for column in {"value", "metadata", "seal", "embedding"} & noticed.keys():
        assert noticed[column] > 0, (column, "no damage was noticed")


@pytest.mark.kept_tables("memories")
@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("memory_items", ["value"]),
        ("memory_items", ["value", "metadata", "version", "seal"]),
        ("memory_vectors", ["embedding"]),
        ("memory_vectors", ["embedding", "model"]),
    ],
)
def test_contents_that_are_exchanged_are_noticed(
    saved: Any, run_sql: RunSQL, database: str, table: str, columns: list[str]
) -> None:
    known, store = saved
    name = f"{database}.locus_{table}"
    setting = ", ".join(f"{column} = %s" for column in columns)
    which = " AND ".join(f"{column} = %s" for column in PLACES)
    rows = run_sql(f"SELECT {', '.join([*PLACES, *columns])} FROM {name}")
    for one, other in itertools.permutations(rows, 2):
        run_sql(f"UPDATE {name} SET {setting} WHERE {which}", *other[3:], *one[:3])
        run_sql(f"UPDATE {name} SET {setting} WHERE {which}", *one[3:], *other[:3])
        assert known.check(store, Damage(table, str(columns), "exchanged", 0)) > 0
        for row in (one, other):
            run_sql(f"UPDATE {name} SET {setting} WHERE {which}", *row[3:], *row[:3])
    assert known.check(store, Damage("", "", "none", 0)) == 0


@pytest.mark.kept_tables("memories")
@pytest.mark.parametrize("moved", ["tenant = 'new'", "path = CONCAT('z', 0x00)", "item_key = CONCAT(item_key, 'x')"])
def test_items_that_were_moved_are_refused(
    saved: Any, run_sql: RunSQL, database: str, moved: str, make_config: MakeConfig
) -> None:
    for table in ("memory_items", "memory_vectors"):
        run_sql(f"UPDATE {database}.locus_{table} SET {moved} WHERE path = CONCAT('n', 0x00)")
    tenant = "new" if "tenant" in moved else "default"
    namespace = ("z",) if "path" in moved else ("n",)
    with SyncMemoryStore(make_config(driver="pymysql", tenant=tenant), dims=2) as reader:
        for key in ("a", "b"):
            key += "x" if "item_key" in moved else ""
            for read in (reader.get_item, reader.get_embeddings):
                with pytest.raises(CorruptCheckpoint, match=f"tem '{key}' in .*{namespace[0]}.* cannot be read back"):
                    read(namespace, key)
        assert reader.search(namespace) == []


@pytest.mark.kept_tables("memories")
def test_a_damaged_item_is_left_out_of_an_export_and_written_over(
    saved: Any,
    run_sql: RunSQL,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make_config: MakeConfig,
) -> None:
    _, store = saved
    file = tmp_path / "items.jsonl"
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(make_config()))
    run_sql(f"UPDATE {database}.locus_memory_items SET value = '{{\"v\": 5}}' WHERE item_key = 'b'")
    assert main(["export", str(file), "--family", "memories"]) == 1
    assert "Item 'b' in ('n',) cannot be read back" in capsys.readouterr().err
    assert "berry" not in file.read_text()
    assert '"v":5' not in file.read_text()
    store.put(("n",), "b", {"v": "berry", "n": 2}, metadata={"m": 2}, embedding=[2.0, 1.0])
    assert store.get(("n",), "b") == {"v": "berry", "n": 2}
