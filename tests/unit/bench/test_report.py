"""The report shows exactly the measured figures."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import charts, report, targets
from bench.contestants import BUILT_IN, OURS, POSTGRESQL
from bench.floor import floor_of
from bench.targets import TARGETS, Target


def latency_results(ours_ms: float) -> dict[str, Any]:
    def times(ms: float) -> dict[str, float]:
        return {"save_ms": ms, "load_ms": ms}

    measured = {OURS: times(ours_ms), BUILT_IN: times(100.0), POSTGRESQL: times(20.0), floor_of(OURS): times(2.0)}
    return {"latency": {"workloads": {str(size): {"contestants": measured} for size in targets.SIZES}}}


def target(name: str, case: str) -> Target:
    (found,) = (one for one in TARGETS if (one.name, one.case) == (name, case))
    return found


@pytest.mark.parametrize(("ours_ms", "times", "met"), [(2.5, 40.0, True), (2.6, pytest.approx(38.46, abs=0.01), False)])
def test_a_target_is_met_or_missed_by_the_measured_value(ours_ms: float, times: float, met: bool) -> None:
    results = latency_results(ours_ms)

    assert target("save, times faster than Locus' built-in", "n=5000").verdict(results) == (times, met)


def test_less_than_is_not_at_most() -> None:
    results = latency_results(14.0)  # 0.7 of PostgreSQL's

    assert target("save, of PgCheckpointer's", "n=100").verdict(results) == (0.7, False)
    assert target("save, of PgCheckpointer's", "n=10").verdict(results) == (0.7, True)


def test_a_target_without_a_measurement_is_neither_met_nor_missed() -> None:
    assert {one.verdict({}) for one in TARGETS} == {(None, None)}
    assert target("save, of Redis' (fsync)", "n=10").verdict(latency_results(1.0)) == (None, None)


def test_storage_counts_only_after_a_thousand_turns() -> None:
    growth = {
        "turns": [500, 1000],
        "stored_bytes": [1, 2],
        "whole_states_bytes": [100, 200],
        "final_state_bytes": [1, 1],
    }
    short = {name: values[:1] for name, values in growth.items()}
    whole_states = target("whole states, times what is stored", "1,000 turns")

    assert whole_states.verdict({"growth": {"plain turns": growth}}) == (100.0, True)
    assert whole_states.verdict({"growth": {"plain turns": short}}) == (None, None)


def test_an_operation_is_as_flat_as_its_steepest_variant() -> None:
    def of(*ratios: float) -> dict[str, Any]:
        return {
            "scale": {
                "operations": {
                    f"query_by_metadata, {number}": {"1000": 2.0, "1000000": 2.0 * ratio}
                    for number, ratio in enumerate(ratios)
                }
            }
        }

    flat = target("query_by_metadata, times its time at 1,000", "1,000,000 checkpoints")

    assert flat.verdict(of(1.0, 1.5)) == (1.5, True)
    assert flat.verdict(of(1.0, 2.5)) == (2.5, False)


def test_the_report_has_targets_charts_and_tables_and_its_json_is_read_back(tmp_path: Path) -> None:
    results = latency_results(2.5)
    module: Any = SimpleNamespace(__doc__="How long it takes.", table=lambda result: "| the table |")

    written = report.write(tmp_path, {"MySQL": "9.7"}, results, {"latency": module})

    text = written.read_text()
    for part in ("| MySQL |", "| the table |", "How long it takes.", "![Save by size", "(save-latency.svg)", "MISSED"):
        assert part in text
    assert "throughput.svg" not in text
    assert report.read(tmp_path) == ({"MySQL": "9.7"}, results)


def test_a_measurement_with_a_page_has_a_file_of_its_own(tmp_path: Path) -> None:
    times = {"warm": 1.0, "NumPy's product alone": 0.25, "a round trip alone": 0.75}
    memories = {
        "environment": {"MySQL": "9.7"},
        "sizes": {"384": {"1000": {"ms": times}}},
        "recall": {"clustered": 0.5},
    }
    results = {**latency_results(2.5), "memories": memories}
    module: Any = SimpleNamespace(__doc__="How long it takes.", table=lambda result: "| the table |")
    paged: Any = SimpleNamespace(__doc__="What is known.", table=lambda result: "| of its own |", PAGE="memories")

    report.write(tmp_path, {"MySQL": "9.7"}, results, {"latency": module, "memories": paged})

    page, whole = ((tmp_path / name).read_text() for name in ("memories.md", "report.md"))
    for part in (
        "# What is known",
        "| of its own |",
        "(memories.svg)",
        "1,000 items of 384 dimensions |",
        "0.80",
        "met",
        "MISSED",
    ):
        assert part in page
    assert "save-latency" not in page
    assert "[memories](memories.md)" in whole
    assert "of its own |" not in whole
    assert "(memories.svg)" not in whole
    assert report.read(tmp_path) == ({"MySQL": "9.7"}, results)


def test_a_chart_is_the_same_bytes_every_time_and_names_every_line(tmp_path: Path) -> None:
    results = latency_results(2.5)
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        charts.draw_all(results, folder)

    one, two = ((tmp_path / name / "save-latency.svg").read_bytes() for name in ("one", "two"))
    assert one == two
    for name in (OURS, BUILT_IN, POSTGRESQL, "floor"):
        assert name.encode() in one
    assert b"<dc:date>" not in one
