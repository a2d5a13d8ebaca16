"""Measurements that ``python -m bench`` runs, and the reports that it writes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import __main__ as command
from bench import latency
from bench.peers import Peers
from bench.targets import SIZES


class Failing(SimpleNamespace):
    """A measurement that fails."""

    def measure(self, dsn: str, quick: bool) -> dict[str, Any]:
        raise RuntimeError("no space left")


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """Set up two measurements without servers; return the folders of whole and partial reports."""

    def measure(dsn: str, quick: bool) -> dict[str, Any]:
        return {"dsn": dsn, "quick": quick}

    modules = {
        name: SimpleNamespace(__doc__=f"About {name}.", measure=measure, table=lambda result: f"| {result} |")
        for name in ("cold_start", "memory_use")
    }

    @contextmanager
    def no_peers() -> Iterator[Peers]:
        yield Peers()

    monkeypatch.setattr(command, "MEASUREMENTS", tuple(modules))
    monkeypatch.setattr(command, "load", lambda names: {name: modules[name] for name in names})
    monkeypatch.setattr(command, "peers", no_peers)
    monkeypatch.setattr(command, "environment", lambda dsn, found: {"MySQL": "9.7"})
    monkeypatch.setattr(command, "REPORT", tmp_path / "whole")
    monkeypatch.setattr(command, "PARTIAL_REPORT", tmp_path / "partial")
    return SimpleNamespace(whole=tmp_path / "whole", partial=tmp_path / "partial", modules=modules)


def test_a_whole_run_writes_the_report_of_the_repository(folders: SimpleNamespace) -> None:
    assert command.main(["--dsn", "mysql://"]) == 0

    report = (folders.whole / "report.md").read_text()
    assert "About cold_start." in report
    assert "About memory_use." in report
    assert not folders.partial.exists()


@pytest.mark.parametrize("arguments", [["--quick"], ["--only", "memory_use"]])
def test_less_than_a_whole_run_leaves_it_alone(folders: SimpleNamespace, arguments: list[str]) -> None:
    assert command.main(["--dsn", "mysql://", *arguments]) == 0

    assert not folders.whole.exists()
    assert "About memory_use." in (folders.partial / "report.md").read_text()


def test_only_named_measurements_run(folders: SimpleNamespace) -> None:
    command.main(["--dsn", "mysql://", "--only", "memory_use"])

    assert "About cold_start." not in (folders.partial / "report.md").read_text()


def test_a_failed_measurement_is_reported_and_does_not_end_the_others(
    folders: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    folders.modules["cold_start"] = Failing()

    assert command.main(["--dsn", "mysql://"]) == 1

    assert "no space left" in capsys.readouterr().err
    assert not folders.whole.exists()
    assert "About memory_use." in (folders.partial / "report.md").read_text()


def test_an_unknown_measurement_is_refused_with_the_names_there_are(
    folders: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--dsn", "mysql://", "--only", "memory"]) == 2

    assert "cold_start, memory_use" in capsys.readouterr().out


def test_a_report_is_drawn_anew_from_its_json(folders: SimpleNamespace) -> None:
    command.main(["--dsn", "mysql://"])
    report = folders.whole / "report.md"
    before = report.read_text()
    report.unlink()

    assert command.main(["--draw"]) == 0

    assert report.read_text() == before


def test_every_size_with_a_target_is_measured() -> None:
    assert set(SIZES) == set(latency.ROUNDS)
