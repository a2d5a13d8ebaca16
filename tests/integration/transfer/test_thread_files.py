"""Export and import of threads as lines of JSON: exact, streamed, resumable after kills, and safe against damage."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message

from locus_mysql import SyncCheckpointStore, SyncMySQLCheckpointer
from locus_mysql.cli.main import main
from locus_mysql.config import MySQLConfig

from ..conftest import MakeConfig
from ..killed_commands import killed
from .conftest import conversation, kept

DEADLINE_S = 240.0


ODD = {
    "big": 2**300,
    "floats": [0.1, 1e300, -0.0, 5e-324, float("inf"), float("nan")],
    "\ud800": "half \udfff",
    "z": 1,
    "a": {"y": [], "x": {}},
    "crc32": "00000000",
    "text": '\n\x00\x1e☃ \\ " </script>',
}


def lines_of(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines(keepends=True)


def bare(file: Path) -> list[dict[str, Any]]:
    """Return the content of the lines, without fields that may differ between two exports of the same thread."""
    contents: list[dict[str, Any]] = [json.loads(line) for line in lines_of(file)]
    for content in contents:
        for name in ("seq", "crc32", "tenant"):
            content.pop(name, None)
    return contents


@pytest.fixture
def filled(config: MySQLConfig) -> MySQLConfig:
    """Store two threads of agents, one of them with a branch, and one of dicts."""
    with SyncMySQLCheckpointer(config) as checkpointer:
        for thread in ("a", "b/ü:*"):
            for index, state in enumerate(conversation(5)):
                checkpointer.save(state, thread, f"cp-{index}", {"place": index})
        earlier = checkpointer.load("a", "cp-1")
        assert earlier is not None
        checkpointer.save(earlier.with_message(Message.user("another way")), "a", "branch")
        checkpointer.delete("a", "cp-3")
    with SyncCheckpointStore(config) as store:
        for index in range(4):
            store.save("odd", {**ODD, "n": index}, f"d-{index}", {"k": "\ud801", "n": 1.0})
    return config


@pytest.mark.kept_tables("agents", "dicts")
@pytest.mark.parametrize("family", ["agents", "dicts"])
def test_exported_and_imported_threads_are_identical(
    filled: MySQLConfig, make_config: MakeConfig, tmp_path: Path, family: str
) -> None:
    file, again = tmp_path / "threads.jsonl", tmp_path / "again.jsonl"
    assert main(["export", str(file), "--family", family]) == 0
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    assert main(["export", str(again), "--family", family, "--tenant", "acme"]) == 0
    assert list(map(repr, bare(again))) == list(map(repr, bare(file)))
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    assert main(["export", str(tmp_path / "third.jsonl"), "--family", family, "--tenant", "acme"]) == 0
    assert lines_of(tmp_path / "third.jsonl") == lines_of(again)
    if family == "agents":
        for thread in ("a", "b/ü:*"):
            assert asyncio.run(kept(make_config(tenant="acme"), thread)) == asyncio.run(kept(filled, thread))
        assert [(one, parent) for one, parent, *_ in asyncio.run(kept(filled, "a"))] == [
            ("cp-0", None),
            ("cp-1", "cp-0"),
            ("cp-2", "cp-1"),
            ("cp-4", "cp-2"),
            ("branch", "cp-1"),
        ]
        with SyncMySQLCheckpointer(make_config(tenant="acme")) as checkpointer:
            assert {hit["thread_id"] for hit in checkpointer.search("Question", 20)} == {"a", "b/ü:*"}


@pytest.mark.kept_tables("agents", "dicts")
def test_some_threads_and_times_only(filled: MySQLConfig, tmp_path: Path) -> None:
    file = tmp_path / "threads.jsonl"

    def exported(*arguments: str) -> list[tuple[str, str]]:
        assert main(["export", str(file), *arguments]) == 0
        return [(line["thread"], line["checkpoint"]) for line in bare(file)[1:-1]]

    assert {thread for thread, _ in exported("--thread", "a", "--thread", "none")} == {"a"}
    assert {thread for thread, _ in exported("--pattern", "b*")} == {"b/ü:*"}
    assert exported("--pattern", "?") == exported("--thread", "a")
    every = exported()
    assert len(every) == 10
    middle = bare(file)[7]["created_at"]
    since = exported("--since", middle)
    assert since == [one for line, one in zip(bare_all(filled, tmp_path), every, strict=True) if line >= middle]
    assert 0 < len(since) < 10
    assert exported("--since", "2999-01-01") == []
    assert exported("--tenant", "nobody") == []


@pytest.mark.kept_tables("agents", "dicts")
def test_an_export_includes_a_save_that_waited_for_another_writer(
    filled: MySQLConfig, tmp_path: Path, run_sql: Any
) -> None:
    file = tmp_path / "threads.jsonl"
    assert main(["export", str(file), "--family", "dicts"]) == 0
    last = bare(file)[-2]
    # A save writes its two rows in two statements; if the second one waits, their times differ.
    run_sql(f"UPDATE {filled.database}.locus_store_threads SET updated_at = updated_at - INTERVAL 40 SECOND")
    assert main(["export", str(file), "--family", "dicts", "--since", last["created_at"]]) == 0
    assert [line["checkpoint"] for line in bare(file)[1:-1]] == [last["checkpoint"]]


@pytest.mark.kept_tables  # a new schema without tables
def test_an_export_without_tables_writes_nothing(
    config: MySQLConfig, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for arguments in (["-"], ["-", "--thread", "t"], [str(tmp_path / "threads.jsonl")]):
        assert main(["export", *arguments]) == 1
        output = capsysbinary.readouterr()
        assert b"has no tables with prefix 'locus_'" in output.err
        assert output.out == b""
    assert not (tmp_path / "threads.jsonl").exists()


@pytest.mark.slow
@pytest.mark.kept_tables("dicts")
def test_an_export_of_other_threads_does_not_go_on_with_this_one(
    config: MySQLConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SyncCheckpointStore(config) as store:
        for index in range(250):
            store.save("b", {"n": index}, f"c-{index:03}")
        store.save("a", {"n": 0}, "c")
    file = tmp_path / "threads.jsonl"
    export = ["export", str(file), "--family", "dicts"]
    assert killed("write", 3, *export, "--thread", "b", items=20)
    for others in ([], ["--thread", "a"], ["--pattern", "b*"], ["--thread", "b", "--since", "2000-01-01"]):
        capsys.readouterr()
        assert main([*export, *others]) == 1
        assert "was left by another export" in capsys.readouterr().err
    assert main([*export, "--thread", "b"]) == 0
    assert "Continuing" in capsys.readouterr().err
    assert {line["thread"] for line in bare(file)[1:-1]} == {"b"}
    assert len(bare(file)) == 252


def bare_all(config: MySQLConfig, tmp_path: Path) -> list[str]:
    file = tmp_path / "all.jsonl"
    assert main(["export", str(file)]) == 0
    return [line["created_at"] for line in bare(file)[1:-1]]


@pytest.mark.kept_tables("agents", "dicts")
def test_a_file_of_what_came_since_is_added_behind_what_came_before(
    config: MySQLConfig, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    with SyncCheckpointStore(config) as store, SyncCheckpointStore(make_config(tenant="acme")) as acme:
        for index in range(6):
            store.save("t", {"n": index, "log": list(range(index))}, f"c-{index}")
            if index == 2:
                assert main(["export", str(first), "--family", "dicts"]) == 0
                now = datetime.now(UTC).isoformat()
        assert main(["export", str(second), "--family", "dicts", "--since", now]) == 0
        assert [line["checkpoint"] for line in bare(second)[1:-1]] == ["c-3", "c-4", "c-5"]
        assert main(["import", str(first), "--tenant", "acme"]) == 0
        assert main(["import", str(second), "--tenant", "acme"]) == 0
        assert acme.history("t") == store.history("t")
        # In reverse order, the older checkpoints would become the newest.
        acme.delete("t")
        assert main(["import", str(second), "--tenant", "acme"]) == 0
        capsys.readouterr()
        assert main(["import", str(first), "--tenant", "acme"]) == 1
        output = capsys.readouterr()
        assert "'c-0' of thread 't' was left out: the thread has newer checkpoints" in output.err
        assert "3 left out" in output.out
        assert acme.list_checkpoints("t") == ["c-5", "c-4", "c-3"]
        assert acme.load("t") == store.load("t")


@pytest.mark.kept_tables("agents", "dicts")
def test_an_import_leaves_checkpoints_with_other_content_unchanged(
    filled: MySQLConfig, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "threads.jsonl"
    assert main(["export", str(file), "--family", "dicts"]) == 0
    with SyncCheckpointStore(make_config(tenant="acme")) as store:
        store.save("odd", {"mine": 1}, "d-1")
        assert main(["import", str(file), "--tenant", "acme"]) == 1
        assert store.list_checkpoints("odd") == ["d-1"]
    assert "'d-1' of thread 'odd' was left out: it differs in the tables" in capsys.readouterr().err


@pytest.mark.kept_tables("dicts")
@pytest.mark.parametrize("other", [({"n": True}, {"m": 1}), ({"n": 1.0}, {"m": 1}), ({"n": 1}, {"m": True})])
def test_an_import_tells_values_apart_that_python_takes_for_equal(
    config: MySQLConfig, make_config: MakeConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str], other: Any
) -> None:
    file = tmp_path / "threads.jsonl"
    with SyncCheckpointStore(config) as store, SyncCheckpointStore(make_config(tenant="acme")) as acme:
        store.save("t", {"n": 1}, "c", metadata={"m": 1})
        acme.save("t", other[0], "c", metadata=other[1])
        assert main(["export", str(file), "--family", "dicts"]) == 0
        assert main(["import", str(file), "--tenant", "acme"]) == 1
        assert "'c' of thread 't' was left out: it differs in the tables" in capsys.readouterr().err


@pytest.mark.kept_tables("agents", "dicts")
def test_lines_written_by_hand(config: MySQLConfig, tmp_path: Path) -> None:
    file = tmp_path / "hand.jsonl"
    file.write_text(
        '{"format": "locus-mysql threads 1", "family": "dicts"}\n'
        '{"thread": "t", "checkpoint": "1", "state": {"n": 1}}\n'
        '{"thread": "t", "checkpoint": "2", "state": {"n": 2}, "metadata": {"k": 1}}\n'
        '{"thread": "t", "checkpoint": "3", "state": {"n": NaN}, "parent": "1"}\n'
        '{"end": {"items": 3}}\n'
    )
    assert main(["import", str(file)]) == 0
    assert main(["import", str(file)]) == 0
    with SyncCheckpointStore(config) as store:
        history = [(one["checkpoint_id"], one["parent_id"], one["metadata"]) for one in store.history("t")]
        assert history == [("3", "1", {}), ("2", "1", {"k": 1}), ("1", None, {})]


HEAD = '{"format":"locus-mysql threads 1","family":"dicts"}\n'
LINE = '{"thread":"t","checkpoint":"c","state":{"n":1}}\n'


@pytest.mark.kept_tables("agents", "dicts")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + LINE, "was cut off"),
        (HEAD + LINE[:20], "Line 2"),
        (HEAD + "not JSON\n", "Line 2: It is damaged"),
        (HEAD + "[" * 100_000 + "]" * 100_000 + "\n", "Line 2: It is damaged"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":' + '{"a":' * 300 + "1" + "}" * 300 + "}\n", "Line 2"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{"n":1e999}}\n', "Line 2: It is damaged"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{"n":' + "9" * 5_000 + "}}\n", "Line 2: It is damaged"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":[1]}\n', "must be a dict"),
        (HEAD + '{"thread":"","checkpoint":"c","state":{}}\n', "is empty"),
        (HEAD + '{"thread":"t","checkpoint":"' + "c" * 129 + '","state":{}}\n', "129 characters"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{},"more":1}\n', "has no field 'more'"),
        (HEAD + '{"thread":"t","checkpoint":"c"}\n', "lacks the field 'state'"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{},"created_at":"today"}\n', "created_at must be a time"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{},"metadata":[]}\n', "Metadata must be a dict"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{},"parent":7}\n', "Line 2"),
        (HEAD + '{"thread":"t","checkpoint":"c","state":{},"provisional":1}\n', "true or false"),
        (HEAD + LINE + '{"end":{"items":2}}\n', "had 2 checkpoints when it was written, and has 1"),
        (HEAD + LINE + '{"end":{"items":1}}\n' + LINE, "continues after its last line"),
        ('{"format":"locus-mysql nothing 1"}\n', "cannot import"),
        ("", "Line 1"),
        ("\n", "Line 1"),
        (HEAD + LINE.replace("}}\n", '},"crc32":"00000000"}\n'), "checksum"),
    ],
)
def test_damage_in_a_file_is_reported_with_its_line_and_imports_nothing(
    config: MySQLConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    file = tmp_path / "damaged.jsonl"
    file.write_text(text)
    assert main(["import", str(file)]) == 1
    output = capsys.readouterr().err
    assert words in output
    assert "Traceback" not in output
    with SyncCheckpointStore(config) as store:
        assert store.list_threads() == []


@pytest.mark.slow
@pytest.mark.kept_tables("dicts")
def test_through_a_pipe(config: MySQLConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with SyncCheckpointStore(config) as store:
        for index in range(30):
            store.save(f"t{index % 3}", {"n": index, "text": "x" * 1000}, f"c-{index:02}")
    exported = subprocess.run(
        [sys.executable, "-m", "locus_mysql", "export", "-", "--family", "dicts"],
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    taken = subprocess.run(
        [sys.executable, "-m", "locus_mysql", "import", "-", "--tenant", "acme"],
        input=exported.stdout,
        capture_output=True,
        timeout=DEADLINE_S,
    )
    assert (taken.returncode, taken.stdout) == (0, b"Imported 30 checkpoints.\n")


@pytest.mark.kept_tables("dicts")
def test_a_damaged_row_is_left_out_of_an_export_and_reported(
    config: MySQLConfig, tmp_path: Path, run_sql: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "threads.jsonl"
    with SyncCheckpointStore(config) as store:
        for index in range(4):
            store.save("t", {"n": index}, f"c-{index}")
    run_sql(f"UPDATE {config.database}.locus_store_checkpoints SET payload = 'damage' WHERE checkpoint_id = 'c-1'")
    assert main(["export", str(file), "--family", "dicts"]) == 1
    assert "'c-1'" in capsys.readouterr().err
    assert [line["checkpoint"] for line in bare(file)[1:-1]] == ["c-0", "c-2", "c-3"]


@pytest.mark.slow
@pytest.mark.kept_tables("dicts")
def test_a_killed_export_and_a_killed_import_resume(config: MySQLConfig, tmp_path: Path) -> None:
    with SyncCheckpointStore(config) as store:
        for thread in ("a", "b", "c"):
            for index in range(120):
                store.save(thread, {"n": index, "log": [f"said {n}" for n in range(index)]}, f"c-{index:03}")
    whole, file, back = tmp_path / "whole.jsonl", tmp_path / "threads.jsonl", tmp_path / "back.jsonl"
    assert main(["export", str(whole), "--family", "dicts"]) == 0
    for at in (1, 3, 2):
        assert killed("write", at, "export", str(file), "--family", "dicts", items=20)
        assert not file.exists()
    assert main(["export", str(file), "--family", "dicts"]) == 0
    assert file.read_bytes() == whole.read_bytes()
    for at in (30, 212):
        assert killed("read", at, "import", str(file), "--tenant", "acme", items=20)
    assert main(["import", str(file), "--tenant", "acme"]) == 0
    assert main(["export", str(back), "--family", "dicts", "--tenant", "acme"]) == 0
    assert bare(back) == bare(whole)


#: Runs a command where Locus is not installed.
WITHOUT_LOCUS = """
import sys
sys.modules["locus"] = None
from locus_mysql.cli.main import main
code = main(sys.argv[1:])
assert not any(name.startswith("locus.") for name in sys.modules)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.kept_tables("agents", "dicts")
def test_threads_of_agents_move_where_locus_is_not_installed(
    filled: MySQLConfig, make_config: MakeConfig, tmp_path: Path
) -> None:
    file = tmp_path / "threads.jsonl"
    for arguments in (["export", str(file)], ["import", str(file), "--tenant", "acme"]):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_LOCUS, *arguments], capture_output=True, timeout=DEADLINE_S
        )
        assert done.returncode == 0, done.stderr
    with SyncMySQLCheckpointer(filled) as source, SyncMySQLCheckpointer(make_config(tenant="acme")) as target:
        for thread in ("a", "b/ü:*"):
            assert target.list_checkpoints(thread) == source.list_checkpoints(thread)
            assert target.load(thread) == source.load(thread)
        assert {hit["checkpoint_id"] for hit in target.search("another", 5)} == {"branch"}
    refused = subprocess.run(
        [sys.executable, "-c", WITHOUT_LOCUS, "copy", "--from", "memory", "--to", "mysql"],
        capture_output=True,
        timeout=DEADLINE_S,
        text=True,
    )
    assert refused.returncode == 1
    assert "pip install 'locus-mysql[locus]'" in refused.stderr
