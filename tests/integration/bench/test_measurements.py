"""Each benchmark, run at a small size, returns plausible figures and all fields of its table and the report."""

from __future__ import annotations

import json

import pytest

from bench import (
    copying,
    engines,
    fill,
    frameworks,
    graphs,
    growth,
    inspection,
    memories,
    memory,
    round_trips,
    scale,
    server,
    working,
)
from bench.conversations import COMPACTED, ITERATIONS, PLAIN
from bench.embeddings import Missing
from ci.private_servers import ServerMissing


@pytest.fixture(autouse=True)
def few_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce the number of conversations that the benchmarks save before they copy them on the server."""
    monkeypatch.setattr(fill, "CONVERSATIONS", 10)


@pytest.mark.slow
def test_growth_is_measured_from_real_bytes(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "QUICK_TURNS", 5)
    result = growth.measure(server_dsn, quick=True)
    assert result.keys() == {PLAIN, ITERATIONS, COMPACTED}
    for kind in result:
        one = growth.Growth(**result[kind])
        assert one.turns == [1, 2, 5]
        assert one.stored_bytes == sorted(set(one.stored_bytes))
        assert all(stored < rows for stored, rows in zip(one.stored_bytes, one.row_bytes, strict=True))
        assert one.stored_bytes[-1] < one.builtin_bytes[-1]
        assert all(sent < wire for sent, wire in zip(one.sent_bytes_per_turn, one.wire_bytes_per_turn, strict=True))
        assert one.sent_bytes_per_turn[-1] < one.builtin_sent_bytes_per_turn[-1]
        assert all(size >= 16_384 for size in one.file_bytes)
    assert len(growth.table(result).splitlines()) > 3 * len(one.turns)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_scale_is_measured_at_each_size(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "QUICK_SIZES", (200, 400))
    monkeypatch.setattr(scale, "ROUNDS", 3)
    monkeypatch.setattr(scale, "VACUUM_ROUNDS", 1)
    monkeypatch.setattr(scale, "VACUUMED_THREADS", 5)
    before = scale.enlarged(server_dsn)
    result = scale.measure(server_dsn, quick=True)
    assert result["operations"].keys() == {*scale.OPERATIONS, scale.VACUUM}
    assert all(medians.keys() == {"200", "400"} for medians in result["operations"].values())
    assert all(ms > 0 for medians in result["operations"].values() for ms in medians.values())
    assert scale.enlarged(server_dsn) == before
    assert "query_by_metadata" in scale.table(result)


@pytest.mark.slow
def test_memory_is_measured_in_fresh_processes(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "QUICK_THREADS", 150)
    monkeypatch.setattr(memory, "MESSAGES", (10,))
    monkeypatch.setattr(memory, "WAYS", (memory.SERVED,))
    result = memory.measure(server_dsn, quick=True)
    (one,) = result["known"]
    assert 200 < one["bytes_per_thread"] < 20_000
    assert any(line.startswith(("checkpoints/", "coding/")) for line in one["held_by"])
    assert "10 messages, loaded and saved" in memory.table(result)


@pytest.mark.slow
def test_round_trips_are_counted_for_all_contestants_with_the_operation(
    server_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_trips, "AVERAGED_SAVES", 40)
    calls = {name: round_trips.CALLS[name] for name in ("save", "search")}
    result = round_trips.measure(server_dsn, calls=calls)
    assert result[round_trips.KNOWN] == result[round_trips.UNKNOWN] == {"save": 1, "search": 1}
    assert result[round_trips.BUILT_IN]["save"] > 5
    assert result[round_trips.BUILT_IN]["search"] is None
    assert 1 <= result[round_trips.AVERAGE] < 2
    assert "not available" in round_trips.table(result)


@pytest.mark.slow
def test_savers_of_graphs_are_measured_beside_each_other(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "QUICK_ROUNDS", 2)
    monkeypatch.setattr(graphs, "QUICK_TURNS", 4)
    result = graphs.measure(server_dsn, quick=True)
    assert result["sizes"].keys() == {"10", "100"}
    for measured in result["sizes"].values():
        assert {graphs.OURS, graphs.OURS_COLD, graphs.PUBLISHED} <= measured.keys()
        assert all(one[f"{what}_ms"] > 0 for one in measured.values() for what in graphs.OPERATIONS)
    assert result["steps"] == 12
    assert 0 < result["stored"][graphs.OURS]["row_bytes"] < result["stored"][graphs.PUBLISHED]["row_bytes"]
    assert "get_tuple" in graphs.table(result)


@pytest.mark.slow
def test_memories_are_measured_beside_other_ways(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ServerMissing("the mirror is away")

    def none() -> None:
        raise Missing("not installed: a model")

    monkeypatch.setattr(memories.VectorPostgreSQL, "start", missing)
    monkeypatch.setattr(memories, "real", none)
    monkeypatch.setattr(memories, "QUICK_SIZES", {48: (700,)})
    monkeypatch.setattr(memories, "QUICK_AMONG", 600)
    result = memories.measure(server_dsn, quick=True)
    times = result["sizes"]["48"]["700"]["ms"]
    assert {memories.WARM, memories.COLD, memories.PRODUCT, memories.FETCHED, memories.LOOPS} <= times.keys()
    assert memories.PGMEMORY not in times
    assert all(ms > 0 for ms in times.values())
    (share,) = result["recall"].values()
    assert 0.5 < share <= 1
    assert "the mirror is away" in memories.table(result)
    assert "not installed: a model" in memories.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_working_memory_is_measured_on_each_storage(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ServerMissing("the mirror is away")

    monkeypatch.setattr(working.Valkey, "start", missing)
    monkeypatch.setattr(working, "QUICK_ROUNDS", 3)
    monkeypatch.setattr(working, "CHECKPOINT_EVERY", 1)
    monkeypatch.setattr(working, "SESSIONS", 2)
    result = working.measure(server_dsn, quick=True)
    measured = result["sizes"]["10"]
    ours = {*(f"MySQL, {driver}" for driver in working.AWAITED), working.REDIS, working.MEMORY}
    assert ours | {working.bare_of(name) for name in ours - {working.MEMORY}} <= measured.keys()
    assert all(one[what]["p50"] > 0 for one in measured.values() for what in (working.GET, working.SET))
    assert set(working.OPERATIONS) <= measured[working.REDIS].keys()
    assert result["at_once"].keys() == result["without_pause"].keys() == measured.keys()
    assert 0 < result["checkpoint_bytes"]["checkpoint"] < result["checkpoint_bytes"]["session"]
    assert "the mirror is away" in working.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_copying_is_measured_from_each_source(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ServerMissing("the mirror is away")

    monkeypatch.setattr(copying.Redis, "start", missing)
    monkeypatch.setattr(copying, "QUICK_THREADS", 2)
    monkeypatch.setattr(copying, "QUICK_ROUNDS", 1)
    result = copying.measure(server_dsn, quick=True)
    assert result["sources"].keys() == {copying.FILES, copying.OWN}
    for ways in result["sources"].values():
        assert ways.keys() == {*copying.WAYS}
        assert all(one["threads_per_s"] > 0 and one["processor_ms"] > 0 for one in ways.values())
    assert "the mirror is away" in copying.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_the_service_is_measured_beside_direct_calls(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "QUICK_ROUNDS", 3)
    monkeypatch.setattr(server, "WARM_UP_ROUNDS", 1)
    monkeypatch.setattr(server, "CALLS", 2)
    monkeypatch.setattr(server, "CLIENTS", 2)
    result = server.measure(server_dsn, quick=True)
    (case,) = (case for sizes in result["cases"].values() for case in sizes.values())
    everyone = {server.DIRECT, server.SERVICE, server.WORKERS, server.DIRECT_LOCUS, server.SERVICE_LOCUS}
    assert case["alone"].keys() == case["at_once"].keys() == everyone
    for what in (server.SAVE, server.LOAD):
        assert all(0 < one[what]["p50"] <= one[what]["p95"] for one in case["alone"].values())
        assert all(one[what]["per_s"] > 0 for one in case["at_once"].values())
        assert all(server.throughput(result, what, name) > 0 for name in (server.SERVICE, server.WORKERS))
    assert server.SERVICE_LOCUS in server.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_the_inspector_is_measured_at_each_size(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "QUICK_SIZES", (200, 400))
    before = scale.enlarged(server_dsn)
    result = inspection.measure(server_dsn, quick=True)
    assert result["operations"].keys() == inspection.OPERATIONS.keys()
    for measured in result["operations"].values():
        assert measured.keys() == {"200", "400"}
        assert all(0 < one["p50"] <= one["p95"] for one in measured.values())
    assert scale.enlarged(server_dsn) == before
    assert "page of threads, deep" in inspection.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_frameworks_are_measured_beside_their_own_stores(server_dsn: str) -> None:
    result = frameworks.measure(server_dsn, quick=True)
    for framework in result["frameworks"].values():
        for figures in framework["sizes"].values():
            ours, *others = figures.values()
            assert others
            assert ours["stored"] > 0
            assert all(one["append_ms"] > 0 and one["load_ms"] > 0 for one in (ours, *others))
        assert framework["title"] in frameworks.table(result)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.slow
def test_both_engines_are_measured_in_one_run(server_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "QUICK_ROUNDS", 2)
    result = engines.measure(server_dsn, quick=True)
    (measured,) = result["sizes"].values()
    assert tuple(measured) == engines.ENGINES
    assert all(one.keys() == {*engines.OPERATIONS} and min(one.values()) > 0 for one in measured.values())
    assert "OceanBase" in result["environment"][engines.OCEANBASE]
    assert "get_tuple" in engines.table(result)
    assert json.loads(json.dumps(result)) == result
