"""A process killed at any point of a write leaves items as they were before or as they are after the write."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.memory import Put

from ...conftest import MakeConfig
from ...engines import PROCESSLIST

RunSql = Callable[..., tuple[Any, ...]]
DEADLINE_S = 120.0

#: Runs requested calls in a child process, which is killed at its n-th packet: before, while, or after it is sent.
#: Reports how the child ended.
KILLER = """
import json, os, signal, sys
from locus_mysql import MySQLConfig, SyncMemoryStore
from locus_mysql.drivers.wire.blocking import SyncAdapter
from locus_mysql.memory import Put

options = json.loads(sys.stdin.readline())
call = SyncAdapter._call

def carry_out(action, label, pipeline, at, how):
    sent = 0
    def counted(self, command, deadline):
        nonlocal sent
        sent += 1
        if sent == at:
            if how != "before":
                wire = command.wire
                self._sock.sendall(wire[: len(wire) // 2] if how == "half" else wire)
            os.kill(os.getpid(), signal.SIGKILL)
        return call(self, command, deadline)
    config = MySQLConfig(**{**options, "pipeline": pipeline, "ddl_mode": "off", "retry_deadline_s": 0})
    with SyncMemoryStore(config, dims=2) as store:
        store.exists(("none",), "none")  # logs in
        SyncAdapter._call = counted
        here = ("n", label)
        if action == "put":
            store.put(here, "a", "new", embedding=[3, 4], text="coffee", if_version=1)
        elif action == "put_batch":
            store.put_batch([Put(here, "a", "new", embedding=[3, 4]), Put(here, "c", "c", embeddings=[[1, 0], [0, 1]])])
        elif action == "delete":
            store.delete(here, "a")
        else:
            store.clear_namespace(here)

for line in sys.stdin:
    child = os.fork()
    if not child:
        carry_out(*json.loads(line))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture
def killer(make_config: MakeConfig) -> Iterator[Callable[..., int]]:
    config: MySQLConfig = make_config(driver="pymysql")
    options = config.model_dump(mode="json", include=config.model_fields_set)
    options["password"] = config.password.get_secret_value()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdin is not None
    assert process.stdout is not None
    print(json.dumps(options), file=process.stdin)

    def kill(*assignment: Any) -> int:
        assert process.stdin is not None
        assert process.stdout is not None
        print(json.dumps(assignment), file=process.stdin)
        return int(process.stdout.readline())

    with process:
        yield kill
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0


STATEMENT_BY_STATEMENT, IN_ONE_PACKET = False, True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("action", "pipeline"),
    [
        pytest.param("put", STATEMENT_BY_STATEMENT, id="put, statement by statement"),
        pytest.param("clear", STATEMENT_BY_STATEMENT, id="clear, statement by statement"),
        pytest.param("put", IN_ONE_PACKET, id="put, in one packet"),
        pytest.param("put_batch", IN_ONE_PACKET, id="put_batch, in one packet"),
        pytest.param("delete", IN_ONE_PACKET, id="delete, in one packet"),
        pytest.param("clear", IN_ONE_PACKET, id="clear, in one packet"),
    ],
)
def test_a_killed_process_leaves_items_whole(
    action: str, pipeline: bool, make_config: MakeConfig, killer: Callable[..., int], run_sql: RunSql, database: str
) -> None:
    def stored(label: str) -> dict[str, Any]:
        path = f"n\0{label}\0".encode()
        tables = {
            "items": ("item_key, value, version, COALESCE(search_text, pending_text)", "path = %s"),
            "vectors": ("item_key, number, SUBSTR(embedding, 6)", "path = %s AND removed = 0"),
            "signs": ("item_key, number, sig", "owner = CONCAT('default', 0x00, %s)"),
        }
        return {
            name: run_sql(f"SELECT {columns} FROM {database}.locus_memory_{name} WHERE {where} ORDER BY 1, 2", path)
            for name, (columns, where) in tables.items()
        }

    def prepare(label: str) -> None:
        store.put_batch(
            [
                Put(("n", label), "a", "old", embeddings=[[1, 2], [2, 1]], text="green tea"),
                Put(("n", label), "b", "stays", embedding=[1, 1]),
            ]
        )

    def wait_for_rollback() -> None:
        """Wait until the server has noticed that the client is gone and has rolled back its transaction."""
        deadline = time.monotonic() + DEADLINE_S
        while run_sql(f"SELECT COUNT(*) FROM {PROCESSLIST} WHERE db = %s", database)[0][0] > mine:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    with SyncMemoryStore(make_config(driver="pymysql", pool_size=1), dims=2) as store:
        prepare("whole")
        mine = 1  # this store's own connection
        before = stored("whole")
        assert killer(action, "whole", pipeline, 0, "never") == 0
        wait_for_rollback()
        after = stored("whole")
        assert after != before
        outcomes: list[bool] = []
        for how in ("before", "half", "all"):
            at, code = 1, -9
            while code == -9:
                label = f"{how}-{at}"
                prepare(label)
                code = killer(action, label, pipeline, at, how)
                wait_for_rollback()
                found = stored(label)
                assert found in (before, after), (how, at)
                outcomes.append(found == after)
                at += 1
            assert code == 0
            assert outcomes[-1]
            assert at > (2 if pipeline else 6)
        assert not all(outcomes)
        assert [hit.item.key for hit in store.search(("n", "half-1"), embedding=[1, 2], exact=True, limit=9)] == [
            "a",
            "b",
        ]
