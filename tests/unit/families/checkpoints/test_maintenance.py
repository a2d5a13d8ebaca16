"""Vacuum, forgetting a tenant, and the sampled housekeeping after a save; without a server."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.drivers.interface import Result
from locus_mysql.errors import InvalidInput
from locus_mysql.families.checkpoints import maintenance
from locus_mysql.families.checkpoints.thread_cache import Snapshot

from .named_statements import (
    BIG,
    KEY,
    PRUNES,
    REMOVES,
    Server,
    answer,
    names,
    new,
    operations,
    outdated,
    params,
    save_to,
)


def test_housekeeping_after_a_save_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "one_in", lambda one_in: one_in == turn)
    sent: dict[tuple[int, int | None, str], list[str]] = {}
    for turn in (0, maintenance.SAVES_PER_INDEXING, maintenance.SAVES_PER_CLEANING):
        for ttl_s in (None, 60):
            for text in ("", "words"):
                operation = operations(ttl_s=ttl_s).saving.save(*KEY, new(BIG, text=text))
                batch = next(operation)
                after: list[str] = []
                try:
                    while True:
                        rows = {"expired": Result(rows=(("owner", "gone"),)), "find": Result(rows=((1,),))}
                        batch = operation.send(answer(batch, **rows))
                        after.append(names(batch) + ("" if batch.atomic else " apart"))
                        if "expired" in after[-1]:
                            assert batch.statements[0].params == (None, maintenance.CLEANED_PER_SAVE)
                        if "lock_idle" in after[-1]:
                            assert params(batch, "lock_idle")[:2] == ("owner", "gone")
                            assert params(batch, "lock_idle")[3] >= 365_000 * 86_400_000_000
                        if "index" in after[-1]:
                            assert params(batch, "index_pending") == (maintenance.INDEXED_PER_SAVE, True)
                except StopIteration:
                    sent[turn, ttl_s, text] = after
    removes = "lock_idle guard record_all record_count delete_all drop find"
    assert {key: after for key, after in sent.items() if after} == {
        (maintenance.SAVES_PER_INDEXING, None, "words"): ["index_pending forget_old apart"],
        (maintenance.SAVES_PER_INDEXING, 60, "words"): ["index_pending forget_old apart"],
        (maintenance.SAVES_PER_CLEANING, 60, ""): ["expired", removes],
        (maintenance.SAVES_PER_CLEANING, 60, "words"): ["expired", removes],
    }


def test_a_vacuum_removes_idle_and_expired_threads_whole_and_prunes_the_others() -> None:
    server = Server(
        orphaned=[[("lost",)]],
        expired=[[("owner", "gone")]],
        threads_before=[[("idle", 1), ("kept", 0), ("raced", 0), ("saved", 1)]],
        find=[[(3,)], [(5,)]],
        clear_ids_before=[7],
        lock=[0, outdated()],
        lock_idle=[0, 0, outdated()],
    )
    ops = operations(ttl_s=60)
    for name in ("gone", "idle", "saved"):
        save_to(ops, name)
    assert server.run(ops.maintenance.vacuum("tenant", 2)) == 3 + 5 + 7
    idle = REMOVES.format("lock_idle")
    assert server.sent == [
        "orphaned",
        "restore_row",
        "forget_old",
        "expired",
        idle,
        "threads_before",
        idle,
        PRUNES,
        PRUNES,
        idle,
    ]
    day_us = 86_400_000_000
    assert server.params("orphaned") == [("tenant", maintenance.PAGE)]
    assert [(*key, ttl) for *key, _, ttl in server.params("restore_row")] == [("tenant", "lost", 60_000_000)]
    assert server.params("expired") == [("tenant", maintenance.PAGE)]
    assert server.params("threads_before") == [("tenant", 2 * day_us, "", maintenance.PAGE)]
    assert [(*key, age) for *key, _, age in server.params("lock_idle")] == [
        ("owner", "gone", maintenance._NEVER_US),
        ("tenant", "idle", 2 * day_us),
        ("tenant", "saved", 2 * day_us),
    ]
    assert server.params("clear_ids_before")[0] == ("tenant", "kept", 2 * day_us)
    assert all(len(token) == 16 for *_, token, _ in server.params("lock_idle"))
    assert all(len(token) == 16 for *_, token in server.params("lock"))
    assert all(len(token) == 16 for *_, token, _ in server.params("restore_row"))
    assert server.params("record_count")[0] == ("owner", "gone", server.params("lock_idle")[0][2])
    assert ops.context.cache.snapshot(("tenant", "idle"))[:5] == Snapshot()[:5]
    assert ops.context.cache.snapshot(("tenant", "saved"))[:5] == Snapshot()[:5]


def test_a_vacuum_continues_while_pages_are_full() -> None:
    threads = [(f"t{number:03}", 0) for number in range(maintenance.PAGE)]
    server = Server(
        orphaned=[[("x",)] * maintenance.PAGE, [("y",)]],
        expired=[[("tenant", "x")] * maintenance.PAGE, [("tenant", "x")]],
        threads_before=[threads, [("threads end", 0)]],
        find=[[(1,)]] * (maintenance.PAGE + 1),
        clear_ids_before=[1] * (maintenance.PAGE + 1),
    )
    assert server.run(operations().maintenance.vacuum("tenant")) == 2 * (maintenance.PAGE + 1)
    assert [after for _, _, after, _ in server.params("threads_before")] == ["", threads[-1][0]]
    assert {age for _, age, _, _ in server.params("threads_before")} == {30 * 86_400_000_000}
    assert len(server.params("restore_row")) == maintenance.PAGE + 1
    assert len(server.params("lock_idle")) == maintenance.PAGE + 1


def test_a_tenant_is_forgotten_thread_by_thread_until_there_is_none() -> None:
    server = Server(
        tenant_threads=[[("a",), ("b",)], [("c",)], []],
        find=[[(2,)], [], [(4,)]],
        lock_any=[0, "carried out", 0],
    )
    ops = operations()
    for name in "abc":
        save_to(ops, name)
    assert server.run(ops.maintenance.forget_tenant("tenant")) == 2 + 1 + 4  # the outcome of a recognised batch is 1
    removes = REMOVES.format("lock_any")
    page = ["orphaned", "tenant_threads"]
    assert server.sent == [*page, removes, removes, *page, removes, *page, "forget_old"]
    assert server.params("tenant_threads")[0] == ("tenant", maintenance.PAGE)
    tokens = [token for *_, token in server.params("lock_any")]
    assert [token for *_, token in server.params("record_count")] == tokens
    assert len(set(tokens)) == 3
    assert {len(token) for token in tokens} == {16}
    assert all(ops.context.cache.snapshot(("tenant", name))[:5] == Snapshot()[:5] for name in "abc")


@pytest.mark.parametrize("days", [True, "1", -1, 365_001, float("nan"), None])
def test_an_invalid_age_is_refused(days: Any) -> None:
    with pytest.raises(InvalidInput, match="older_than_days"):
        next(operations().maintenance.vacuum("tenant", days))
    for allowed in (0, 0.5, 365_000):
        next(operations().maintenance.vacuum("tenant", allowed))
