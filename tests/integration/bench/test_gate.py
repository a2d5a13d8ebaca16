"""The benchmarks' gate fails on planted regressions and names the figures that became worse."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bench import check, fill
from bench.conversations import PLAIN
from bench.disk import administrator
from bench.gate import (
    copying,
    inspection,
    memories,
    reads,
    round_trips,
    storage,
    timing,
    wire,
    working,
)
from bench.gate.accepted import Group, judge, read_accepted
from bench.round_trips import AVERAGE, CALLS
from locus_mysql.dialect.server_roles import HEALTH
from locus_mysql.dialect.sql import SQL, Select
from locus_mysql.engine.operation import Batch
from locus_mysql.families.checkpoints import saving
from locus_mysql.families.checkpoints.records import NewCheckpoint
from locus_mysql.families.checkpoints.saving import Saving
from locus_mysql.families.inspection import owner_rows
from locus_mysql.families.memories import nearest
from locus_mysql.families.memories.cached_ranges import CachedRanges
from locus_mysql.families.working.statements import reading as of_sessions
from locus_mysql.integrations.locus import operations as locus
from locus_mysql.records import ledger
from locus_mysql.records.moving import Moving

Figures = Mapping[str, float]


def failures(group: str, figures: Callable[[], Figures], *, passes: int | None = None) -> set[str]:
    """Return the names of the measured figures that are worse than accepted.

    More passes only average out noise. Counted figures, unlike timed ones, show a planted regression in one pass.
    """
    accepted = read_accepted()[group]
    accepted = replace(accepted, passes=passes or accepted.passes)
    measured = check.measure(lambda _: dict(figures()), "", accepted)
    assert measured
    assert accepted.figures.keys() >= measured.keys()
    verdicts = judge(group, accepted, measured)
    return {verdict.name for verdict in verdicts if not verdict.ok and verdict.measured is not None}


def figures_of_round_trips(server_dsn: str) -> Figures:
    return round_trips.figures(server_dsn, {name: CALLS[name] for name in ("save", "save to a new thread", "load")})


@pytest.fixture
def figures_of_storage(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Figures]:
    monkeypatch.setattr(storage, "TURNS", {PLAIN: storage.TURNS[PLAIN]})
    return lambda: storage.figures(server_dsn)


@pytest.fixture
def figures_of_wire(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Figures]:
    monkeypatch.setattr(wire, "SIZES", (10, 100))
    return lambda: wire.figures(server_dsn)


@pytest.fixture
def figures_of_time(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Figures]:
    monkeypatch.setattr(timing, "SIZES", (10,))
    monkeypatch.setattr(timing, "ROUNDS", 30)
    return lambda: timing.figures(server_dsn)


def plant_a_round_trip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a health query before each save."""
    save = Saving.save

    def asking_first(self: Saving, *arguments: Any) -> Any:
        yield Batch.of(HEALTH)
        return (yield from save(self, *arguments))

    monkeypatch.setattr(Saving, "save", asking_first)


def plant_whole_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant saves that store the whole state instead of a delta."""
    encode_delta = saving.encode_delta
    monkeypatch.setattr(
        saving, "encode_delta", lambda state, hashed, lineage, **options: encode_delta(state, hashed, (), **options)
    )


def plant_a_quadratic_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant saves that add the text of the whole state to the full-text index."""
    made = locus.agent_checkpoint

    def agent_checkpoint(encode: Any, messages: Sequence[Any], *more: Any, **options: Any) -> NewCheckpoint:
        whole = " ".join(message.content or "" for message in messages)
        return replace(made(encode, messages, *more, **options), search_text=lambda delta: (whole, False))

    monkeypatch.setattr(locus, "agent_checkpoint", agent_checkpoint)


def test_an_extra_round_trip_of_a_save_fails(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures("round trips", lambda: figures_of_round_trips(server_dsn)) == set()
    plant_a_round_trip(monkeypatch)
    assert failures("round trips", lambda: figures_of_round_trips(server_dsn), passes=1) == {
        f"{call}, thread {whose} the process"
        for call in ("save", "save to a new thread")
        for whose in ("known to", "new to")
    } | {AVERAGE}


@pytest.mark.slow
def test_whole_states_where_deltas_are_due_fail(
    figures_of_storage: Callable[[], Figures], figures_of_wire: Callable[[], Figures], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures("bytes stored", figures_of_storage) == set()
    assert failures("bytes on the wire", figures_of_wire) == set()
    plant_whole_states(monkeypatch)
    assert failures("bytes stored", figures_of_storage, passes=1) == {
        f"stored for each byte of whole states, {PLAIN}",
        f"stored for each byte of the final state, {PLAIN}",
        f"text to index for each byte said, {PLAIN}",  # a whole state is no continuation, so its whole text is indexed
    }
    assert failures("bytes on the wire", figures_of_wire, passes=1) >= {
        "sent by saves for each byte of a new message, n=10",
        "sent by saves for each byte of a new message, n=100",
    }


@pytest.mark.slow
def test_an_index_that_grows_with_the_square_of_the_conversation_fails(
    figures_of_storage: Callable[[], Figures], figures_of_wire: Callable[[], Figures], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failures("bytes stored", figures_of_storage) == set()
    assert failures("bytes on the wire", figures_of_wire) == set()
    plant_a_quadratic_index(monkeypatch)
    assert f"text to index for each byte said, {PLAIN}" in failures("bytes stored", figures_of_storage, passes=1)
    assert "sent by saves for each byte of a new message, n=100" in failures(
        "bytes on the wire", figures_of_wire, passes=1
    )


@pytest.mark.slow
def test_a_missing_index_fails(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "SIZES", (500,))
    assert failures("rows read", lambda: reads.figures(server_dsn)) == set()
    filled = fill.fill

    def fill_without_index(config: Any, dsn: str, *arguments: Any) -> None:
        filled(config, dsn, *arguments)
        with administrator(dsn) as cursor:
            cursor.execute(
                f"ALTER TABLE {config.table_prefix}store_checkpoints DROP INDEX metadata_pairs, "
                "ADD INDEX metadata_pairs (tenant)"  # pages name the index in their statements
            )

    monkeypatch.setattr(fill, "fill", fill_without_index)
    assert failures("rows read", lambda: reads.figures(server_dsn)) == {
        f"{query}, {size} checkpoints"
        for query in (
            "query_by_metadata",
            "query_by_metadata, none found",
        )
        for size in reads.SIZES
    }


@pytest.mark.slow
def test_searches_by_meaning_that_fetch_too_much_fail(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "SIZES", (600,))
    assert failures("memories", lambda: memories.figures(server_dsn)) == set()
    monkeypatch.setattr(CachedRanges, "get", lambda *_: None)
    monkeypatch.setattr(nearest, "CHANGES_AT_ONCE", 0)
    assert failures("memories", lambda: memories.figures(server_dsn), passes=1) >= {
        "rows read, search by meaning, warm, 600 items",
        "bytes, search by meaning, warm, 600 items",
        "rows read, search by meaning, after a change, 600 items",
    }


@pytest.mark.slow
def test_working_memory_that_reads_or_asks_too_much_fails(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "SIZES", (50,))
    assert failures("working", lambda: working.figures(server_dsn)) == set()

    everything = of_sessions.ONE.text.replace("e.name = :name", "CONCAT(e.name, '') = :name")
    monkeypatch.setattr(of_sessions, "ONE", Select(everything, of_sessions.EntryWithHead))
    monkeypatch.setattr(ledger, "in_passing", lambda housekeeping: ledger.logged(housekeeping()))
    assert failures("working", lambda: working.figures(server_dsn), passes=1) >= {
        "rows read, get, 50 variables",
        "round trips, set, 50 variables",
        "round trips, append_scratchpad, 50 variables",
    }


@pytest.mark.slow
def test_an_inspector_that_reads_too_much_fails(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "SIZES", (1_000,))
    assert failures("inspection", lambda: inspection.figures(server_dsn)) == set()
    without = owner_rows.OWNERS.text.replace("{INDEX}", " IGNORE INDEX (recent)")
    monkeypatch.setattr(owner_rows, "OWNERS", SQL(without))
    assert failures("inspection", lambda: inspection.figures(server_dsn), passes=1) >= {
        "page of threads, the first, 1000 threads",
        "page of threads, deep, 1000 threads",
    }


@pytest.mark.slow
def test_copying_that_asks_too_much_fails(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures("copying", lambda: copying.figures(server_dsn)) == set()
    monkeypatch.setattr(Moving, "max_rows", 5)
    assert failures("copying", lambda: copying.figures(server_dsn), passes=1) >= {
        "round trips, copied from files",
        "round trips, copied to another tenant",
    }


@pytest.mark.slow
def test_a_slow_save_fails(figures_of_time: Callable[[], Figures], monkeypatch: pytest.MonkeyPatch) -> None:
    assert failures("time", figures_of_time) == set()
    encode_agent = locus.encode_agent

    def encode_slowly(*arguments: Any) -> Any:
        time.sleep(0.02)
        return encode_agent(*arguments)

    monkeypatch.setattr(locus, "encode_agent", encode_slowly)
    assert failures("time", figures_of_time) == {
        "save against the floor, n=10",
        "save against the floor, no cache, n=10",
    }


def test_the_gate_prints_what_failed_and_exits_with_1(
    server_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "MEASUREMENTS", {"round trips": figures_of_round_trips})
    measured_here = figures_of_round_trips(server_dsn)
    monkeypatch.setattr(check, "read_accepted", lambda: {"round trips": Group("", 0.2, 1, measured_here)})
    assert check.main(["--dsn", server_dsn]) == 0
    assert "FAILED" not in capsys.readouterr().out.replace("0 FAILED", "")
    plant_a_round_trip(monkeypatch)
    assert check.main(["--dsn", server_dsn]) == 1
    first, last = capsys.readouterr().out.split("2 ok, 5 FAILED")
    failed = [line.split("|")[1].strip() for line in first.splitlines() if "FAILED" in line]
    assert failed[0] == "round trips: save, thread known to the process"
    again = [line.split("|")[1].strip() for line in last.splitlines() if "FAILED" in line]
    assert again == failed  # a log that keeps only its end shows what failed


def test_a_figure_that_nobody_accepted_fails() -> None:
    (verdict,) = judge("group", Group("", 0.1, 1, {}), {"new": 1})
    assert not verdict.ok


def test_an_accepted_figure_that_was_not_measured_fails() -> None:
    (verdict,) = judge("group", Group("", 0.1, 1, {"gone": 1}), {})
    assert not verdict.ok


def test_a_figure_that_is_over_once_is_measured_again() -> None:
    outcomes = iter([{"figure": 3.0}, {"figure": 1.0}])
    assert check.measure(lambda _: next(outcomes), "", Group("", 0.1, 2, {"figure": 1})) == {"figure": 1.0}


def test_a_figure_that_is_over_every_time_fails() -> None:
    group = Group("", 0.1, 3, {"figure": 1})
    outcomes = iter([{"figure": 3.0}, {"figure": 1.2}, {"figure": 2.0}])
    (verdict,) = judge("group", group, check.measure(lambda _: next(outcomes), "", group))
    assert (verdict.measured, verdict.ok) == (1.2, False)


def test_every_measured_group_is_accepted_with_a_reason() -> None:
    accepted = read_accepted()
    assert accepted.keys() == check.MEASUREMENTS.keys()
    assert all(len(group.why) > 40 and group.figures for group in accepted.values())
