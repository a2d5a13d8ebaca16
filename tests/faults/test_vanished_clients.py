"""Clients that vanish silently in a transaction, as by a partition or a frozen container: their locks end soon."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.engine import execution, group_commit

from ..integration.conftest import ONE_OF_EACH, MakeConfig, OpenStore
from ..integration.proxy import WireProxy
from ..waiting import until

RunSQL = Callable[..., tuple[Any, ...]]

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)

#: A session of a schema that has locked a row, and waits for its client.
_WAITS_IN_TRANSACTION = (
    "SELECT 1 FROM performance_schema.data_locks JOIN performance_schema.threads USING (thread_id)"
    " WHERE processlist_db = %s AND processlist_command = 'Sleep' AND lock_type = 'RECORD'"
)

_LIMITS = (
    "SELECT variable_name, CAST(variable_value AS UNSIGNED) FROM performance_schema.variables_by_thread"
    " JOIN performance_schema.threads USING (thread_id) WHERE processlist_db = %s AND variable_name IN"
    " ('innodb_lock_wait_timeout', 'lock_wait_timeout', 'net_read_timeout', 'net_write_timeout', 'wait_timeout')"
)


def state_of(number: int) -> dict[str, Any]:
    return {"messages": [{"content": f"message {number}"}]}


async def _save_taken(store: Any) -> None:
    """Save under an id that is taken, in a thread, so that a blocking save leaves the test's event loop free."""
    method = store.store.save
    if asyncio.iscoroutinefunction(method):
        await method("t", state_of(2), "taken")
    else:
        await asyncio.to_thread(method, "t", state_of(2), "taken")


@one_of_each
@pytest.mark.parametrize("pipeline", [True, False], ids=["one packet", "a packet for each statement"])
async def test_locks_end_soon_after_their_client_vanished(
    open_store: OpenStore,
    proxy: WireProxy,
    run_sql: RunSQL,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    side: str,
    pipeline: bool,
) -> None:
    """Its save was refused, or has sent only some of its statements."""
    begin = Statement(group_commit.BEGIN.sql.replace(str(group_commit.IDLE_IN_TRANSACTION_S), "1"))
    monkeypatch.setattr(execution, "BEGIN", begin)
    monkeypatch.setattr(group_commit, "_PREFIX", (*group_commit._PREFIX[:-1], begin))
    other = open_store(side, read_timeout_s=10, retry_deadline_s=10)
    gone = open_store(
        side, host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED", pipeline=pipeline, retry_deadline_s=0
    )
    await other.save("t", state_of(1), "taken")
    assert await gone.exists("t")
    proxy.swallow_answer(1 if pipeline else 2)
    saving = asyncio.create_task(_save_taken(gone))
    await until(lambda: run_sql(_WAITS_IN_TRANSACTION, database), "the client's transaction waits for it")
    proxy.black_hole()
    await other.save("t", state_of(3))
    assert await other.load("t") == state_of(3)
    proxy.resume()
    proxy.drop_all()
    await asyncio.gather(saving, return_exceptions=True)


@one_of_each
async def test_no_wait_of_a_session_is_longer_than_a_minute_whatever_the_server_allows(
    open_store: OpenStore, own_config: MakeConfig, own_sql: RunSQL, side: str
) -> None:
    def limits() -> dict[str, int]:
        return dict(own_sql(_LIMITS, config.database))

    names = ("innodb_lock_wait_timeout", "lock_wait_timeout", "net_read_timeout", "net_write_timeout")
    before = {name: own_sql(f"SELECT @@GLOBAL.{name}")[0][0] for name in names}
    config = own_config()
    try:
        for name in names:
            own_sql(f"SET GLOBAL {name} = 1000000")
        await open_store(side, config=config).save("t", state_of(1))
        of_session = limits()
        assert max(of_session[name] for name in names) <= 60
        assert of_session["wait_timeout"] == own_sql("SELECT @@GLOBAL.wait_timeout")[0][0]  # it may be idle in a pool
    finally:
        for name, value in before.items():
            own_sql(f"SET GLOBAL {name} = {value}")
