"""The inspection commands in a terminal: threads, show, history, diff, search, stats and rm."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import secrets
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from locus.core.messages import Message, ToolCall
from locus.core.state import AgentState
from pydantic import SecretStr

from locus_mysql import (
    SyncCheckpointStore,
    SyncMemoryStore,
    SyncMySQLCheckpointer,
    SyncMySQLCheckpointSaver,
)
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.langgraph import MySQLSaver

from ..commands import Run, dsn_of
from ..conftest import MakeConfig
from ..integrations.langgraph import graphs

RunSql = Callable[..., tuple[Any, ...]]

#: The families whose tables the tests of this module change.
pytestmark = pytest.mark.kept_tables("agents", "dicts", "graphs")

SECRET = SecretStr("secret")

ROOT = Path(__file__).resolve().parents[2]

#: A message with control sequences that would set the window title, colours, a link, and the text direction.
HOSTILE = "\x1b]0;owned\x07\x1b[31m[red]\x9b2J\x1b]8;;http://evil\x07here\x1b]8;;\x07 \u202egpj.exe"

CONVERSATION = (
    Message.system("You help customers."),
    Message.user("My order 17 has not arrived."),
    Message.assistant("Let me look.", tool_calls=[ToolCall(id="c1", name="lookup_order", arguments={"order": 17})]),
    Message(role="tool", content='{"status": "lost"}', tool_call_id="c1", name="lookup_order"),
    Message.assistant("It was lost. I have sent another one."),
)


@pytest.fixture(autouse=True)
def dsn(config: MySQLConfig, monkeypatch: pytest.MonkeyPatch) -> str:
    dsn = dsn_of(config)
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn)
    return dsn


@pytest.fixture
def checkpoints(config: MySQLConfig) -> list[str]:
    """Save thread ``support/42`` with one checkpoint per message, and return their ids."""
    return converse(config, "support/42", CONVERSATION)


def converse(config: MySQLConfig, thread_id: str, messages: tuple[Message, ...], **metadata: Any) -> list[str]:
    ids = []
    state = AgentState(agent_id="support")
    with SyncMySQLCheckpointer(config) as checkpointer:
        for message in messages:
            state = state.with_message(message)
            ids.append(checkpointer.save(state, thread_id, metadata=metadata or None))
    return ids


def age(run_sql: RunSql, config: MySQLConfig, ids: list[str]) -> None:
    """Set the times of a thread's checkpoints ten minutes apart; the last one is an hour old."""
    for index, checkpoint_id in enumerate(reversed(ids)):
        run_sql(
            f"UPDATE {config.database}.locus_checkpoints SET created_at = UTC_TIMESTAMP(6) - INTERVAL %s MINUTE "
            "WHERE checkpoint_id = %s",
            60 + 10 * index,
            checkpoint_id,
        )


def test_threads_of_every_family_are_listed_newest_first(config: MySQLConfig, checkpoints: list[str], run: Run) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("plain", {"a": 1}, metadata={"user": "ada"})
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id="graph", checkpoint_id="1", checkpoint_data={"x": "y" * 3_000})
    code, out, _ = run("threads")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["graph", "Graphs"],
        ["plain", "Plain"],
        ["support/42", "Agents"],
    ]
    code, out, _ = run("threads", "--json", "--metadata", "user=ada")
    assert [row["thread_id"] for row in json.loads(out)["threads"]] == ["plain"]
    code, out, _ = run("threads", "sup*", "--json", "--tenant", "default")
    (row,) = json.loads(out)["threads"]
    assert (row["checkpoints"], row["checkpoint_id"]) == (5, checkpoints[-1])
    assert datetime.fromisoformat(row["updated_at"]).utcoffset() == timedelta(0)
    assert run("threads", "--min-size", "1MB")[0] == 1
    assert run("threads", "--since", "1h", "--json")[0] == 0
    assert run("threads", "--until", "1h")[0] == 1
    assert run("threads", "--tenant", "nobody") == (1, "", "No thread matches.\n")


def test_a_list_is_read_page_by_page_with_its_cursor(config: MySQLConfig, run: Run) -> None:
    with SyncCheckpointStore(config) as store:
        for number in range(5):
            store.save(f"t{number}", {})
    code, out, _ = run("threads", "--family", "dicts", "-n", "3")
    assert code == 0
    hint = out.splitlines()[-1]
    assert hint.startswith("There are more: --family dicts --cursor ")
    code, out, _ = run("threads", "--cursor", hint.split()[-1], "--family", "dicts", "--json")
    assert [row["thread_id"] for row in json.loads(out)["threads"]] == ["t1", "t0"]
    assert run("threads", "--cursor", hint.split()[-1])[0] == 2
    for arguments in (["threads", "--family", "dicts"], ["history", "t0"]):
        code, out, err = run(*arguments, "--cursor", "nonsense")
        assert (code, out) == (2, "")
        assert err.startswith("locus-mysql: The cursor does not come")


def test_a_list_of_several_families_reports_that_there_are_more_threads(
    config: MySQLConfig, checkpoints: list[str], run: Run
) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("plain", {"a": 1})
    assert json.loads(run("threads", "-n", "2", "--json")[1])["more"] is False
    code, out, _ = run("threads", "-n", "1", "--json")
    found = json.loads(out)
    assert (code, len(found["threads"]), found["cursor"], found["more"]) == (0, 1, None, True)
    assert run("threads", "-n", "1")[1].splitlines()[-1].startswith("There are more: ")


def test_more_than_a_page_is_listed_page_by_page(
    config: MySQLConfig, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_mysql.cli.inspection.command.PAGE", 2)
    with SyncCheckpointStore(config) as store:
        for number in range(5):
            store.save(f"t{number}", {})
            store.save("many", {"n": number})
    code, out, _ = run("threads", "t*", "--json", "-n", "4")
    assert (code, [row["thread_id"] for row in json.loads(out)["threads"]]) == (0, ["t4", "t3", "t2", "t1"])
    code, out, _ = run("history", "many", "--json", "-n", "4")
    assert (code, len(json.loads(out)["checkpoints"])) == (0, 4)
    for arguments in (["threads"], ["history", "many"]):
        assert run(*arguments, "-n", "0")[0] == 2


def test_a_conversation_is_readable_as_one(checkpoints: list[str], run: Run) -> None:
    code, out, _ = run("show", "support/42")
    assert code == 0
    assert f"checkpoint  {checkpoints[-1]} (the newest)\n" in out
    assert out.endswith(
        "system\n  You help customers.\n\n"
        "user\n  My order 17 has not arrived.\n\n"
        'assistant\n  Let me look.\n  → lookup_order  c1\n    {"order": 17}\n    ← {"status": "lost"}\n\n'
        "assistant\n  It was lost. I have sent another one.\n\n"
    )
    code, out, _ = run("show", "support/42", "--checkpoint", checkpoints[1][:8], "--json")
    assert code == 0
    assert [message["text"] for message in json.loads(out)["messages"]] == [
        "You help customers.",
        "My order 17 has not arrived.",
    ]
    out = run("show", "support/42", "--last", "1")[1]
    assert "(4 earlier messages)" in out
    assert "My order" not in out
    assert '"agent_id": "support"' in run("show", "support/42", "--state")[1]


def test_show_and_diff_at_a_time_show_the_state_of_that_time(
    config: MySQLConfig, checkpoints: list[str], run: Run, run_sql: RunSql
) -> None:
    age(run_sql, config, checkpoints)
    code, out, _ = run("show", "support/42", "--at", "80m", "--json")
    assert code == 0
    assert json.loads(out)["checkpoint"]["checkpoint_id"] == checkpoints[2]
    code, out, _ = run("diff", "support/42", "--since", "95m", "--at", "80m")
    assert code == 1
    assert out.splitlines()[0].startswith(f"--- {checkpoints[0]}")
    assert out.splitlines()[1].startswith(f"+++ {checkpoints[2]}")
    assert "(1 message is the same)" in out
    assert "+ user\n  My order 17 has not arrived.\n" in out
    assert "+ assistant\n  Let me look.\n  → lookup_order  c1\n" in out
    assert run("diff", "support/42", "--since", "30m", "--at", "20m")[:2] == (
        0,
        run("diff", "support/42", "--since", "30m")[1],
    )
    code, out, err = run("show", "support/42", "--at", "3d")
    assert (code, out) == (1, "")
    assert "has no checkpoint that was saved by" in err
    assert run("diff", "support/42", "--since", "3d")[0] == 2


def test_a_difference_is_shown_message_by_message_and_field_by_field(config: MySQLConfig, run: Run) -> None:
    with SyncCheckpointStore(config) as store:
        one = store.save("t", {"messages": [{"role": "user", "content": "hi there friend"}], "a": {"b": 1}, "c": 1})
        two = store.save("t", {"messages": [{"role": "user", "content": "hi there foe"}], "a": {"b": 2}, "d": [1]})
    code, out, _ = run("diff", "t")
    assert code == 1
    for line in (
        "- user\n  hi there friend\n",
        "+ user\n  hi there foe\n",
        "a.b  - 1  + 2\n",
        "c  - 1\n",
        "d  + [1]\n",
    ):
        assert line in out
    code, out, _ = run("diff", "t", one, two, "--json")
    assert code == 1
    assert {change["path"]: change["change"] for change in json.loads(out)["fields"]} == {
        "a.b": "changed",
        "c": "removed",
        "d": "added",
    }
    code, out, _ = run("diff", "t", two, two)
    assert code == 0
    assert "The two checkpoints have the same content." in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", "none"),
        ("diff", "support/42", "zzz"),
        ("diff", "support/42", "a", "--since", "1h"),
        ("diff", "support/42", "--at", "noon"),
        ("diff", "support/42", "--tz", "Mars/Base"),
        ("diff", "support/42", "--family", "dicts"),
        ("threads", "--min-size", "10XB"),
        ("threads", "--since", "yesterday"),
        ("threads", "--metadata", "user"),
        ("threads", "--cursor", "x"),
        ("show", "support/42", "--at", "25:99"),
        ("stats", "--tz", "Mars/Base"),
        ("show",),
        ("show", "t", "--at", "1h", "--checkpoint", "c"),
        ("threads", "--family", "memories"),
        ("search",),
    ],
)
def test_wrong_arguments_and_checkpoints_that_cannot_be_compared_exit_with_2(
    arguments: tuple[str, ...], checkpoints: list[str], run: Run
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(("locus-mysql: ", "usage: "))


def test_a_history_names_the_parent_of_each_checkpoint(config: MySQLConfig, run: Run) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        for number, parent in (("1", None), ("2", "1"), ("3", "1")):
            saver.put(
                thread_id="t",
                checkpoint_id=number,
                checkpoint_data={"n": number},
                parent_checkpoint_id=parent,
                metadata={"step": int(number)},
            )
    code, out, _ = run("history", "t")
    assert code == 0
    lines = [line.split() for line in out.splitlines() if line[:1].isdecimal()]
    assert [line[:2] for line in lines[:2]] == [["3", "1"], ["2", "1"]]
    assert lines[2][0] == "1"
    assert '{"step": 3}' in out
    code, out, _ = run("history", "t", "--json", "-n", "2")
    page = json.loads(out)
    assert [row["checkpoint_id"] for row in page["checkpoints"]] == ["3", "2"]
    code, out, _ = run("history", "t", "--json", "--cursor", page["cursor"])
    assert [row["checkpoint_id"] for row in json.loads(out)["checkpoints"]] == ["1"]
    assert run("history", "none")[0] == 1


def test_a_graph_is_shown_with_what_it_waits_for_and_its_subgraphs(config: MySQLConfig, run: Run) -> None:
    with MySQLSaver(config) as saver:
        graph = graphs.nested().compile(checkpointer=saver)
        graph.invoke({"messages": [("user", "Hi")]}, {"configurable": {"thread_id": "g"}})
    code, out, _ = run("history", "g")
    spaces = [line.split()[-1] for line in out.splitlines() if line.startswith("namespace ")]
    assert (code, len(spaces)) == (0, 2)
    innermost = max(spaces, key=len)
    code, out, _ = run("show", "g", "--namespace", innermost)
    assert code == 0
    assert "pending writes, not yet part of a checkpoint\n  __interrupt__" in out
    assert "What is your name?" in out
    assert run("diff", "g", "--namespace", innermost)[0] == 1
    assert run("show", "g", "--namespace", "none")[0] == 1


def test_words_are_found_in_the_messages_that_contain_them(config: MySQLConfig, run: Run) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id="t", checkpoint_id="1", checkpoint_data={"notes": f"The parcel {HOSTILE} is lost."})
    code, out, _ = run("search", "parcel", "--family", "graphs")
    assert code == 0
    assert out.startswith("t  Graphs  ")
    assert "The parcel" in out
    assert harmless_output(out)
    code, out, _ = run("search", "lost", "--family", "graphs", "--json")
    (hit,) = json.loads(out)["hits"]
    assert (hit["thread_id"], hit["checkpoint_id"]) == ("t", "1")
    assert run("search", "nowhere", "--family", "graphs") == (1, "", "No message contains these words.\n")


@pytest.mark.kept_tables
def test_words_are_searched_in_every_family(config: MySQLConfig, run: Run) -> None:
    converse(config, "a", (Message.user("My parcel is lost."),))
    with SyncCheckpointStore(config) as store:
        store.save("d", {"text": "another parcel"})
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id="v", checkpoint_id="1", checkpoint_data={"text": "a third parcel"})
    code, out, err = run("search", "parcel", "--json")
    assert (code, err) == (0, "")
    assert {hit["thread_id"] for hit in json.loads(out)["hits"]} == {"a", "d", "v"}
    assert len(json.loads(run("search", "parcel", "--json", "-n", "1")[1])["hits"]) == 1


@pytest.mark.kept_tables
def test_a_family_without_an_index_does_not_hide_the_others(make_config: MakeConfig, run: Run) -> None:
    with SyncCheckpointStore(make_config(table_prefix="x_", search=False)) as store:
        store.save("d", {"text": "another parcel"})
    with SyncMySQLCheckpointSaver(make_config(table_prefix="x_")) as saver:
        saver.put(thread_id="v", checkpoint_id="1", checkpoint_data={"text": "a third parcel"})
    code, out, err = run("search", "parcel", "--table-prefix", "x_", "--json")
    assert (code, [hit["thread_id"] for hit in json.loads(out)["hits"]]) == (0, ["v"])
    assert err.startswith("dicts: ")
    code, _, err = run("search", "parcel", "--table-prefix", "x_", "--family", "dicts")
    assert code == 2
    assert "no full-text index" in err


def test_statistics_show_the_largest_threads_and_their_growth(config: MySQLConfig, run: Run) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        for name, size in (("small", 10), ("large", 9_000)):
            saver.put(thread_id=name, checkpoint_id="1", checkpoint_data={"x": "y" * size})
    code, out, _ = run("stats", "--family", "graphs")
    assert code == 0
    assert out.startswith("Graphs\n  2 threads, 2 checkpoints, ")
    largest = out.partition("largest threads")[2].splitlines()[1:]
    assert [line.split()[0] for line in largest] == ["large", "small"]
    assert "/day" not in largest[0]  # younger than a day
    code, out, _ = run("stats", "--family", "graphs", "--json")
    (found,) = json.loads(out)["families"]
    assert (found["threads"], found["whole_bytes"]) == (2, None)


def test_stats_counts_what_families_without_threads_hold(config: MySQLConfig, run: Run) -> None:
    with SyncMemoryStore(config) as store:
        store.put(("notes",), "a", 1)
        store.put(("notes",), "b", 2)
    assert run("stats", "--family", "memories")[:2] == (0, "Long-term memory\n  2 items\n")
    assert run("stats")[1].endswith("\n\nLong-term memory\n  2 items\n")
    assert json.loads(run("stats", "--json")[1])["stored"] == {"memories": {"items": 2}}


def harmless_output(out: str) -> bool:
    """Return whether a text contains no control characters that a terminal would act on."""
    return not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)


def test_hostile_texts_ids_and_metadata_are_shown_harmlessly(config: MySQLConfig, run: Run) -> None:
    ids = converse(config, f"t{HOSTILE}", (Message.user("one"), Message.user(HOSTILE)), note=HOSTILE)
    with SyncCheckpointStore(config) as store:
        store.save("fields", {HOSTILE: 1, "b": HOSTILE})
        store.save("fields", {HOSTILE: 2, "b": f"{HOSTILE}!"})
        store.save("ids", {}, f"c1{HOSTILE}")
        store.save("ids", {}, f"c2{HOSTILE}")
    for arguments in (
        ("threads",),
        ("threads", "--json"),
        ("show", f"t{HOSTILE}", "--state"),
        ("show", f"t{HOSTILE}", "--json"),
        ("history", f"t{HOSTILE}"),
        ("diff", f"t{HOSTILE}"),
        ("diff", f"t{HOSTILE}", *ids, "--json"),
        ("diff", "fields"),
        ("show", f"{HOSTILE}none"),
        ("show", f"t{HOSTILE}", "--checkpoint", HOSTILE),
        ("show", f"t{HOSTILE}", "--at", HOSTILE),
        ("show", "ids", "--checkpoint", "c"),
        ("rm", "ids", "--checkpoint", "c1", "--yes"),
        ("rm", f"t{HOSTILE}"),
        ("rm", f"t{HOSTILE}", "--yes"),
    ):
        _, out, err = run(*arguments)
        assert harmless_output(out), arguments
        assert harmless_output(err), arguments
        assert out or err


def test_an_id_of_several_families_has_to_be_chosen(config: MySQLConfig, checkpoints: list[str], run: Run) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("support/42", {"a": 1})
    code, _, err = run("show", "support/42")
    assert code == 1
    assert "in agents and dicts. Choose one with --family." in err
    code, out, _ = run("show", "support/42", "--family", "dicts")
    assert code == 0
    assert '"a": 1' in out


def test_times_are_shown_and_parsed_in_the_requested_time_zone(checkpoints: list[str], run: Run) -> None:
    utc = json.loads(run("threads", "--json")[1])["threads"][0]["updated_at"]
    here = datetime.fromisoformat(utc) + timedelta(hours=5, minutes=45)
    code, out, _ = run("threads", "--tz", "Asia/Kathmandu")
    assert code == 0
    assert here.strftime("%Y-%m-%d %H:%M:%S") in out
    at = here.strftime("%Y-%m-%d %H:%M:%S.%f")
    assert run("show", "support/42", "--at", at, "--tz", "Asia/Kathmandu")[0] == 0
    before = (here - timedelta(hours=1)).strftime("%Y-%m-%d %H:%M:%S")
    assert run("show", "support/42", "--at", before, "--tz", "Asia/Kathmandu")[0] == 1


def test_rm_deletes_nothing_without_confirmation(
    config: MySQLConfig, checkpoints: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run("rm", "support/42")
    assert (code, out) == (2, "")
    assert "Give --yes." in err
    code, out, err = run("rm", "support/42", "--checkpoint", checkpoints[1][:6], "--yes")
    assert code == 1
    assert "give its full id" in err
    code, _, err = run("rm", "support/42", "--checkpoint", checkpoints[1], "--yes")
    assert (code, err.startswith(f"Deleted checkpoint {checkpoints[1]}")) == (0, True)
    with SyncMySQLCheckpointer(config) as checkpointer:
        assert checkpointer.list_checkpoints("support/42") == [checkpoints[index] for index in (4, 3, 2, 0)]
        assert len(checkpointer.load("support/42").messages) == 5
        code, out, _ = run("rm", "support/42", "--yes", "--json")
        assert (code, json.loads(out)["deleted"]) == (0, True)
        assert checkpointer.load("support/42") is None
    assert run("rm", "support/42", "--yes")[0] == 1


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("\n", 1), ("", 1)])
def test_on_a_terminal_somebody_is_asked(answer: str, code: int, config: MySQLConfig) -> None:
    with SyncCheckpointStore(config) as store:
        store.save("t", {})
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "locus_mysql", "rm", "t"], cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        while b"[y/N] " not in shown:
            shown += os.read(ours, 1_000)
        assert b"Delete thread t of Plain states (1 checkpoint, " in shown
        os.write(ours, answer.encode() or b"\x04")  # Ctrl-D
        with contextlib.suppress(OSError):  # raised on Linux when the other end is closed
            while os.read(ours, 1_000):
                pass
        assert process.wait(120) == code
        os.close(ours)
        assert store.exists("t") is (code != 0)


def test_without_rich_the_command_names_the_extra_to_install_and_json_works(
    checkpoints: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locus_mysql.cli.inspection.screen.find_spec", lambda name: None)
    for arguments in (["threads"], ["show", "support/42"], ["stats"], ["search", "x"], ["history", "support/42"]):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        assert "pip install 'locus-mysql[cli]'" in err
    assert run("diff", "support/42")[0] == 2
    monkeypatch.setitem(sys.modules, "rich", None)
    for arguments in (["threads"], ["show", "support/42"], ["history", "support/42"]):
        code, out, _ = run(*arguments, "--json")
        assert code == 0
        assert json.loads(out)
    assert run("rm", "support/42", "--yes")[0] == 0


def test_damage_is_reported_and_a_damaged_state_is_a_failure(
    config: MySQLConfig, checkpoints: list[str], run: Run, run_sql: RunSql
) -> None:
    run_sql(f"UPDATE {config.database}.locus_checkpoints SET payload = 'nothing of ours'")
    code, out, _ = run("show", "support/42")
    assert code == 1
    assert "damaged: " in out
    assert run("threads")[0] == 0
    assert run("history", "support/42")[0] == 0
    assert run("diff", "support/42")[0] == 2


@pytest.mark.kept_tables
def test_an_account_that_may_only_read_can_look_at_all_but_delete_nothing(
    config: MySQLConfig, checkpoints: list[str], run: Run, run_sql: RunSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncMySQLCheckpointSaver(config) as saver:
        saver.put(thread_id="v", checkpoint_id="1", checkpoint_data={"text": "a parcel"})
    name = f"reader_{secrets.token_hex(6)}"
    run_sql(f"CREATE USER {name} IDENTIFIED BY 'secret'")
    try:
        run_sql(f"GRANT SELECT ON {config.database}.* TO {name}")
        monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(config.model_copy(update={"user": name, "password": SECRET})))
        for arguments in (
            ["threads"],
            ["show", "support/42"],
            ["show", "v", "--at", "0s"],
            ["history", "support/42"],
            ["search", "arrived"],
            ["search", "parcel", "--family", "graphs"],
            ["stats"],
        ):
            code, out, err = run(*arguments)
            assert (code, err) == (0, ""), arguments
            assert out
        assert run("diff", "support/42")[0] == 1
        for thread_id in ("support/42", "v"):
            code, _, err = run("rm", thread_id, "--yes")
            assert code == 1
            assert "privilege" in err.lower()
        assert len(run("history", "support/42")[1].splitlines()) == 6
    finally:
        run_sql(f"DROP USER {name}")
