"""The commands `memories` and `session`: list, show and delete."""

from __future__ import annotations

import json

import pytest

from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.working import SyncWorkingMemory

from ..commands import Run
from ..conftest import MakeConfig

pytestmark = pytest.mark.kept_tables("memories", "working")


@pytest.fixture
def config(make_config: MakeConfig) -> MySQLConfig:
    config = make_config(driver="pymysql")
    with SyncMemoryStore(config) as store:
        store.put(("users", "é"), "tea", {"text": "green \x1b[31mtea"}, metadata={"source": "chat"})
        store.put(("users", "é"), "cake", "plum")
        store.put(("team",), "k" * 300, 1)
    with SyncWorkingMemory("order/1", config) as memory:
        memory.set("n", 3)
        memory.append_scratchpad("a note")
    with SyncWorkingMemory("other", config) as memory:
        memory.set("n", 4)
    return config


def test_namespaces_and_items_are_listed(run: Run) -> None:
    code, output, _ = run("memories", "list")
    assert code == 0
    assert "users / é" in output
    assert "team" in output
    code, output, _ = run("memories", "list", "--namespace", "users", "é")
    assert code == 0
    assert "cake" in output
    assert "\x1b" not in output
    code, output, _ = run("memories", "list", "--namespace", "users", "é", "--json", "-n", "1")
    page = json.loads(output)
    assert [one["key"] for one in page["records"]] == ["cake"]
    code, output, _ = run("memories", "list", "--namespace", "users", "é", "--json", "--cursor", page["cursor"])
    assert [one["key"] for one in json.loads(output)["records"]] == ["tea"]
    assert run("memories", "list", "--tenant", "acme")[0] == 1


def test_an_item_is_shown_and_deleted(run: Run) -> None:
    where = ("tea", "--namespace", "users", "é")
    code, output, _ = run("memories", "show", *where)
    assert code == 0
    assert "green" in output
    assert '"source": "chat"' in output
    code, _, errors = run("memories", "delete", *where)
    assert code == 2
    assert "Give --yes" in errors
    code, _, errors = run("memories", "delete", *where, "--yes")
    assert code == 0
    assert "Deleted item tea in users / é." in errors
    code, _, errors = run("memories", "show", *where)
    assert code == 1
    assert "There is no item tea in users / é of tenant 'default'." in errors


def test_sessions_are_listed_shown_and_ended(run: Run, config: MySQLConfig) -> None:
    code, output, _ = run("session", "list", "order*", "--json")
    assert code == 0
    assert [one["session_id"] for one in json.loads(output)["records"]] == ["order/1"]
    code, output, _ = run("session", "show", "order/1")
    assert code == 0
    assert "a note" in output
    assert run("session", "delete", "order/1", "--yes")[0] == 0
    code, output, _ = run("session", "delete", "order/1", "--yes", "--json")
    assert code == 1
    with SyncWorkingMemory("order/1", config) as memory:
        assert memory.get_all() == {}
    with SyncWorkingMemory("other", config) as memory:
        assert memory.get("n") == 4
