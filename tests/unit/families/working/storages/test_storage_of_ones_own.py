"""A storage by a user of the package, with sessions in SQLite, tested by the package's contract checks."""

from __future__ import annotations

import asyncio
import pickle
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from locus_mysql.families.working import calls
from locus_mysql.families.working.session import carry_out
from locus_mysql.working import Storage, SyncWorkingMemory
from tests.storage_contract import CHECKS, Check

pytestmark = pytest.mark.slow


class SQLiteStorage:
    """Keeps each session in a row, which a call reads, changes and writes back in one transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._transaction() as do:
            do("CREATE TABLE sessions (tenant TEXT, id TEXT, session BLOB, PRIMARY KEY (tenant, id))")
            do("CREATE TABLE done (token BLOB PRIMARY KEY, at_us INT, reply BLOB)")

    def execute_blocking(self, call: calls.Call) -> calls.Reply:
        now_us = time.time_ns() // 1_000
        with self._transaction() as do:
            if call.writes and call.token:
                do("DELETE FROM done WHERE at_us < ?", now_us - calls.RECOGNISED_US)
                for (reply,) in do("SELECT reply FROM done WHERE token = ?", call.token):
                    return pickle.loads(reply)
            reply = self._carry_out(do, call, now_us)
            if call.writes and call.token:
                do("INSERT INTO done VALUES (?, ?, ?)", call.token, now_us, pickle.dumps(reply))
            return reply

    def _carry_out(self, do: Any, call: calls.Call, now_us: int) -> calls.Reply:
        found = do("SELECT session FROM sessions WHERE tenant = ? AND id = ?", *call.address)
        work = carry_out(pickle.loads(found[0][0]) if found else None, call, now_us)
        session = work.apply()
        if work.writes or call.renew:
            do("DELETE FROM sessions WHERE tenant = ? AND id = ?", *call.address)
            if session is not None:
                do("INSERT INTO sessions VALUES (?, ?, ?)", *call.address, pickle.dumps(session))
        return work.reply

    def sweep_blocking(self, limit: int = 1_000) -> int:
        now_us = time.time_ns() // 1_000
        with self._transaction() as do:
            rows = [(calls.Address(*row[:2]), pickle.loads(row[2])) for row in do("SELECT * FROM sessions")]
            gone = [address for address, session in rows if session.expired(now_us)][:limit]
            for address in gone:
                do("DELETE FROM sessions WHERE tenant = ? AND id = ?", *address)
            return len(gone)

    def forget_tenant_blocking(self, tenant: str) -> int:
        with self._transaction() as do:
            return len(do("DELETE FROM sessions WHERE tenant = ? RETURNING 1", tenant))

    async def execute(self, call: calls.Call) -> calls.Reply:
        return await asyncio.to_thread(self.execute_blocking, call)

    async def sweep(self, limit: int = 1_000) -> int:
        return await asyncio.to_thread(self.sweep_blocking, limit)

    async def forget_tenant(self, tenant: str) -> int:
        return await asyncio.to_thread(self.forget_tenant_blocking, tenant)

    def close(self) -> None: ...

    async def aclose(self) -> None: ...

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            yield lambda sql, *values: connection.execute(sql, values).fetchall()
            connection.execute("COMMIT")
        finally:
            connection.close()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return SQLiteStorage(tmp_path / "sessions")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_storage_keeps_the_contract(check: Check, storage: Storage) -> None:
    check.run_blocking(storage)


def test_a_session_outlives_its_process(storage: Storage, tmp_path: Path) -> None:
    SyncWorkingMemory("s", storage).set("city", "Bonn")
    again = SQLiteStorage.__new__(SQLiteStorage)
    again.path = tmp_path / "sessions"
    assert SyncWorkingMemory("s", again).get("city") == "Bonn"
