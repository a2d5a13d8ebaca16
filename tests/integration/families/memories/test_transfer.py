"""Export and import of items are exact and resume after a kill; nothing of a damaged file is imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.cli.family_files import read_lines
from locus_mysql.cli.main import main
from locus_mysql.families.memories.lines import item_line, item_of_content
from locus_mysql.families.memories.moving import MovingOperations
from locus_mysql.families.memories.statements.dialect import Range
from locus_mysql.families.memories.transfer import ItemTarget
from locus_mysql.memory import Put
from locus_mysql.runtime.checksummed_jsonl import content_of

from ...cli.test_main import dsn_of
from ...conftest import MakeConfig
from ...drivers_under_test import ASYNC_DRIVERS
from ...killed_commands import killed
from ...proxy import WireProxy

pytestmark = [pytest.mark.kept_tables("memories"), pytest.mark.slow]

RunSql = Callable[..., tuple[Any, ...]]
DEADLINE_S = 120.0
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
    """Put items of all kinds, and return the number of items to export."""
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
        return store.count()


@pytest.mark.parametrize("driver", ASYNC_DRIVERS)
def test_imported_data_equal_the_exported_data(
    driver: str, config: MySQLConfig, tmp_path: Path, kept: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    count = fill(config)
    file, again = tmp_path / "memories.jsonl", tmp_path / "again.jsonl"
    assert main(["export", str(file), "--family", "memories", "--driver", driver]) == 0
    assert f"Exported {count} items." in capsys.readouterr().err
    assert file.stat().st_mode & 0o077 == 0
    assert len(file.read_bytes().splitlines()) == count + 2
    assert main(["import", str(file), "--driver", driver, "--prefix", "other_"]) == 0
    assert capsys.readouterr().out == f"Imported {count} items.\n"
    one, other = kept(), kept("other_")
    one["items"] = tuple(row for row in one["items"] if row[2] != b"expired")
    one["vectors"] = tuple(row for row in one["vectors"] if row[5] is not None)
    for name in ("vectors", "signs"):
        one[name] = tuple(row for row in one[name] if row[2] != b"expired")
    assert other == one
    assert main(["export", str(again), "--family", "memories", "--prefix", "other_"]) == 0
    assert again.read_bytes() == file.read_bytes()
    assert not list(tmp_path.glob("*.part"))


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


def test_an_import_skips_existing_items_and_leaves_other_rows_alone(
    config: MySQLConfig, tmp_path: Path, kept: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    count = fill(config)
    file = tmp_path / "memories.jsonl"
    assert main(["export", str(file), "--family", "memories"]) == 0
    before = kept()
    assert main(["import", str(file)]) == 0
    assert f"Imported 0 items, {count} already present." in capsys.readouterr().out
    assert kept() == before
    with SyncMemoryStore(config, dims=3) as store:
        store.put(("foo",), "key", "another", embedding=[1, 1, 1])
        store.delete(("foo", "bar"), "key")
        assert main(["import", str(file)]) == 1
        output = capsys.readouterr()
        assert output.out == (f"Imported 1 item, {count - 2} already present, 1 different in the target.\n")
        assert "Item 'key' in ('foo',) differs in the tables. --overwrite replaces it." in output.err
        assert store.get(("foo",), "key") == "another"
        assert store.get_embeddings(("foo",), "key") == [[1, 1, 1]]
        assert main(["import", str(file), "--overwrite"]) == 0
        item = store.get_item(("foo",), "key")
        assert item is not None
        assert (item.version, item.value["big"]) == (1, 2**300)
        found = store.search(("foo",), embedding=[1, 1, 1], exact=True, only_here=True)
        assert sorted(hit.item.key for hit in found) == sorted(["key", "Key", "🙂\n"])
    for name in ("items", "vectors", "signs"):
        assert {row for row in kept()[name] if row[2] != b"expired"} == {
            row for row in before[name] if row[2] != b"expired"
        }


def test_a_write_between_looking_and_writing_is_not_lost(
    config: MySQLConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncMemoryStore(config) as store:
        store.put(("u",), "k", "from the file")
        store.put(("u",), "l", "from the file")
        file = tmp_path / "memories.jsonl"
        assert main(["export", str(file), "--family", "memories"]) == 0
        store.clear_namespace(("u",))
        looked = MovingOperations._stored
        wrote: list[int] = []

        def reading_then_writing(self: MovingOperations, *arguments: Any) -> Any:
            found = yield from looked(self, *arguments)
            if not wrote:
                wrote.append(store.put(("u",), "k", "meanwhile"))
            return found

        monkeypatch.setattr(MovingOperations, "_stored", reading_then_writing)
        assert main(["import", str(file)]) == 1
        assert wrote == [1]
        assert "Imported 1 item, 1 different in the target" in capsys.readouterr().out
        assert (store.get(("u",), "k"), store.get(("u",), "l")) == ("meanwhile", "from the file")


@pytest.fixture
def many(config: MySQLConfig) -> int:
    with SyncMemoryStore(config, dims=2) as store:
        store.put_batch(
            [Put(("n", str(n % 3)), f"k{n}", {"n": n, "t": "tea"}, embedding=[n + 1, 2]) for n in range(710)]
        )
    return 710


@pytest.mark.slow
def test_a_killed_export_resumes_where_it_stopped(
    many: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, file = tmp_path / "whole.jsonl", tmp_path / "memories.jsonl"
    assert main(["export", str(whole), "--family", "memories"]) == 0
    for at in (1, 3, 4, 3):
        assert killed("write", at, "export", str(file), "--family", "memories", items=50)
        assert not file.exists()
    assert (tmp_path / "memories.jsonl.part").stat().st_size > 10_000
    assert main(["export", str(file), "--family", "memories"]) == 0
    assert f"Continuing {file}.part after " in capsys.readouterr().err
    assert file.read_bytes() == whole.read_bytes()
    assert main(["export", str(file), "--family", "memories"]) == 0  # replaces the complete file by a new export
    assert file.read_bytes() == whole.read_bytes()


def test_an_export_killed_before_its_file_was_renamed_is_completed_by_the_next_run(many: int, tmp_path: Path) -> None:
    whole, file = tmp_path / "whole.jsonl", tmp_path / "memories.jsonl"
    assert main(["export", str(whole), "--family", "memories"]) == 0
    (tmp_path / "memories.jsonl.part").write_bytes(whole.read_bytes())
    assert main(["export", str(file), "--family", "memories"]) == 0
    assert file.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_a_killed_import_resumes_when_it_is_run_again(
    many: int, config: MySQLConfig, tmp_path: Path, kept: Any
) -> None:
    file = tmp_path / "memories.jsonl"
    assert main(["export", str(file), "--family", "memories"]) == 0
    before = kept()
    for at in (30, 220, 400):
        assert killed("read", at, "import", str(file), "--prefix", "other_", items=50)
    there = len(kept("other_")["items"])
    assert 0 < there < many
    assert len(kept("other_")["vectors"]) == there
    assert main(["import", str(file), "--prefix", "other_"]) == 0
    assert kept("other_") == before


def test_a_file_of_another_export_and_one_being_written_are_left_alone(
    many: int, config: MySQLConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memories.jsonl"
    assert killed("write", 4, "export", str(file), "--family", "memories", items=50)
    part = tmp_path / "memories.jsonl.part"
    before = part.read_bytes()
    assert main(["export", str(file), "--family", "memories", "--tenant", "acme"]) == 1
    assert "was left by another export" in capsys.readouterr().err
    assert main(["export", str(file), "--family", "memories", "--namespace", "n"]) == 1
    assert part.read_bytes() == before
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from locus_mysql.transfer.part_file import PartFile\n"
            "with PartFile(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()",
            str(file),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert main(["export", str(file), "--family", "memories"]) == 1
        holder.communicate(timeout=DEADLINE_S)
    assert "is being written by another process" in capsys.readouterr().err
    assert part.read_bytes() == before
    assert main(["export", str(tmp_path / "none" / "memories.jsonl"), "--family", "memories"]) == 1
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("damage", ["flipped", "cut", "lost", "doubled end", "no end", "no JSON"])
def test_of_a_damaged_file_no_line_of_the_batch_is_imported(
    damage: str,
    many: int,
    config: MySQLConfig,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("locus_mysql.transfer.family_pages.MAX_RECORDS", 100)
    file = tmp_path / "memories.jsonl"
    assert main(["export", str(file), "--family", "memories"]) == 0
    lines = lines_of(file)
    number = 251
    if damage == "flipped":
        lines[number - 1] = lines[number - 1].replace(b"tea", b"tee")
    elif damage == "cut":
        lines = [*lines[: number - 1], lines[number - 1][:-20]]
    elif damage == "lost":
        del lines[number - 1]
        number = len(lines)
    elif damage == "doubled end":
        lines.append(lines[-1])
        number = len(lines)
    elif damage == "no end":
        del lines[-1]
        number = len(lines) + 1
    else:
        lines[number - 1] = b"{}}\n"
    file.write_bytes(b"".join(lines))
    assert main(["import", str(file), "--tenant", "acme"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"locus-mysql: Line {number}: ")
    with SyncMemoryStore(config.model_copy(update={"tenant": "acme"})) as store:
        assert store.count() == {"flipped": 200, "cut": 200, "no JSON": 200}.get(damage, 700)
    file.write_bytes(b"")
    assert main(["import", str(file)]) == 1
    assert "Line 1: The file ends without its last line" in capsys.readouterr().err
    assert main(["import", str(tmp_path)]) == 1
    assert "cannot be read: Is a directory" in capsys.readouterr().err


def test_the_standard_streams_can_be_joined_by_a_pipe(many: int, config: MySQLConfig, kept: Any) -> None:
    command = [sys.executable, "-m", "locus_mysql"]
    exported = subprocess.run(
        [*command, "export", "-", "--family", "memories"], capture_output=True, timeout=DEADLINE_S, check=True
    )
    assert b"Exported 710 items." in exported.stderr
    imported = subprocess.run(
        [*command, "import", "-", "--prefix", "other_"],
        input=exported.stdout,
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert imported.stdout == b"Imported 710 items.\n"
    assert kept("other_") == kept()


def test_an_item_that_cannot_be_read_is_named_and_left_out(
    many: int, tmp_path: Path, run_sql: RunSql, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_sql(f"UPDATE {database}.locus_memory_items SET value = '{{' WHERE item_key = 'k7'")
    file = tmp_path / "memories.jsonl"
    assert main(["export", str(file), "--family", "memories"]) == 1
    output = capsys.readouterr().err
    assert "Left out: Item 'k7' in ('n', '1') cannot be read" in output
    assert "Exported 709 items, 1 left out." in output
    assert main(["import", str(file), "--tenant", "acme"]) == 0


@pytest.mark.kept_tables  # a new schema without tables
def test_an_export_without_tables_reports_them_missing(
    config: MySQLConfig, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for file in (str(tmp_path / "memories.jsonl"), "-"):
        assert main(["export", file, "--family", "memories"]) == 1
        output = capsysbinary.readouterr()
        assert b"has no tables of family 'memories' with prefix 'locus_'" in output.err
        assert output.out == b""


async def test_items_that_need_more_than_a_packet_together_are_written_apart(own_config: MakeConfig) -> None:
    config = own_config(driver="pymysql")
    with SyncMemoryStore(config) as store:
        for n in range(6):
            store.put(("u",), f"k{n}", "x" * 150_000)
        procedures = store._operations
        kept = store._run_step(procedures.moving.page("default", Range(b""), None, 100))
    lines = [item_line(item) for item in kept]
    acme = config.model_copy(update={"tenant": "acme"})
    head, end = b'{"format":"locus-mysql memories 1"}\n', b'{"end":{"items":6}}\n'
    done = await read_lines(acme, lambda _: (ItemTarget(acme), "item"), [head, *lines, end])
    assert (done.copied, done.differing) == (6, 0)
    with SyncMemoryStore(acme) as store:
        assert store.count() == 6


async def test_an_import_whose_answers_are_lost_writes_once(
    many: int, make_config: MakeConfig, proxy: WireProxy, tmp_path: Path, kept: Any
) -> None:
    file = tmp_path / "memories.jsonl"
    assert main_in_thread("export", str(file), "--family", "memories") == 0
    config = make_config(
        driver="pymysql", host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", table_prefix="other_"
    )
    lines = lines_of(file)

    def losing() -> Any:
        for number, line in enumerate(lines):
            if number == 520:
                proxy.drop_after_send()
            yield line

    done = await read_lines(config, lambda _: (ItemTarget(config), "item"), losing())
    assert (done.copied, done.present, done.differing) == (many, 0, 0)
    assert kept("other_") == kept()


def main_in_thread(*arguments: str) -> int:
    """Run a command for a test that runs in an event loop."""
    done = subprocess.run([sys.executable, "-m", "locus_mysql", *arguments], capture_output=True, timeout=DEADLINE_S)
    return done.returncode


def test_items_without_a_full_text_index_are_exported_without_text(
    config: MySQLConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Any
) -> None:
    silent = config.model_copy(update={"search": False, "table_prefix": "silent_"})
    with SyncMemoryStore(silent) as store:
        store.put(("u",), "k", "green tea")
    file = tmp_path / "memories.jsonl"
    monkeypatch.setenv("LOCUS_MYSQL_SEARCH", "false")
    assert main(["export", str(file), "--family", "memories", "--prefix", "silent_"]) == 0
    monkeypatch.delenv("LOCUS_MYSQL_SEARCH")
    content = content_of(lines_of(file)[1], 2)
    assert isinstance(content, dict)
    item = item_of_content(content)
    assert item.row.text == "green tea"
    assert main(["import", str(file)]) == 0
    with SyncMemoryStore(config) as store:
        assert [hit.item.key for hit in store.search(query="tea")] == ["k"]
    monkeypatch.setenv("LOCUS_MYSQL_SEARCH", "false")
    assert main(["import", str(file), "--prefix", "silent_"]) == 0
    assert kept("silent_")["items"][0][7] is None
