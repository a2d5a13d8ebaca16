"""Deleted states leave the caches too, and a failure after a save does not fail the save."""

from __future__ import annotations

import gc
from datetime import timedelta
from types import FunctionType, ModuleType
from typing import Any

import pytest
from locus.core.messages import Message
from locus.core.state import AgentState

from locus_mysql import MySQLCheckpointer, SyncMySQLCheckpointer
from locus_mysql.errors import SchemaMismatch

from ...conftest import Opening
from .conftest import Make, RunSQL

SECRET = "a sentence that nobody else says"


def in_memory(owner: Any, text: str) -> list[str]:
    """Return the types of the objects reachable from ``owner`` that contain a text."""
    found, seen, open_ = [], set(), [owner]
    while open_:
        one = open_.pop()
        if id(one) in seen or isinstance(one, type | FunctionType | ModuleType):  # these refer to most other objects
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes) and text in (one if isinstance(one, str) else one.decode("latin-1")):
            found.append(type(one).__name__)
        open_ += gc.get_referents(one)
    return found


@pytest.mark.parametrize("how", ["thread", "checkpoint", "tenant", "vacuum"])
async def test_a_deleted_state_is_not_kept_in_memory(store: Any, how: str) -> None:
    held = store.store._operations
    await store.save("t", {"messages": [SECRET]}, "c")
    assert await store.load("t") == {"messages": [SECRET]}
    assert in_memory(held, SECRET)
    if how == "thread":
        await store.delete("t")
    elif how == "checkpoint":
        await store.delete("t", "c")
    elif how == "tenant":
        await store.forget_tenant()
    else:
        await store.vacuum(0)
    assert not in_memory(held, SECRET)


async def test_purged_messages_are_not_kept_in_memory(opening: Opening, side: str) -> None:
    checkpointer = opening(side, (MySQLCheckpointer, SyncMySQLCheckpointer), stamp_messages=True)
    held = checkpointer.store._operations
    old = Message(role="user", content=SECRET, metadata={"locus_at": "2001-01-01T00:00:00+00:00"})
    await checkpointer.save(AgentState(messages=(old, Message.user("now"))), "t")
    assert in_memory(held, SECRET)
    await checkpointer.purge_messages(timedelta(days=1), thread_id="t")
    assert not in_memory(held, SECRET)


async def test_a_column_that_somebody_added_is_an_error_at_once(make_store: Make, sql: RunSQL) -> None:
    store = make_store()
    await store.save("t", {"n": 1})
    sql("ALTER TABLE locus_store_checkpoints ADD COLUMN theirs INT NOT NULL DEFAULT 0")
    sql(
        "CREATE TRIGGER nulls BEFORE INSERT ON locus_store_checkpoints FOR EACH ROW"
        " SET NEW.created_at = NULL"  # fails with error 1048, as a NOT NULL column without a value may
    )
    for _ in range(2):  # with and without the thread in the cache
        with pytest.raises(SchemaMismatch, match="cannot be null"):
            await store.save("t", {"n": 2})
        assert await make_store().load("t") == {"n": 1}
        store = make_store()


async def test_a_save_whose_clean_up_fails_is_still_a_save(
    make_store: Make, sql: RunSQL, caplog: pytest.LogCaptureFixture
) -> None:
    many = make_store()
    for number in range(6):
        await many.save("t", {"n": number}, f"c{number}")
    few = make_store(keep_checkpoints=2)
    sql(
        "CREATE TRIGGER refuses BEFORE DELETE ON locus_store_checkpoints FOR EACH ROW"
        " IF OLD.seq = 3"  # neither the first nor the last of the rows that lose their ids
        "   THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today'; END IF"
    )
    saved = await few.save("t", {"n": 6}, "c6")
    assert saved == "c6"
    assert "housekeeping" in caplog.text
    assert await make_store().load("t") == {"n": 6}
    sql("DROP TRIGGER refuses")
    assert await few.vacuum(0) == 2  # rows that were left for the clean-up are removed too
