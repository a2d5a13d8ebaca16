"""Progress lines of a transfer, and its final report."""

from __future__ import annotations

import pytest

from locus_mysql.cli import progress
from locus_mysql.cli.progress import Progress, duration, line
from locus_mysql.transfer.engine import TransferReport


def test_progress_shows_the_estimated_remaining_time() -> None:
    assert (
        line("threads", 50, 1_200, "3,400 checkpoints", 10.0)
        == "50 of about 1,200 threads, 3,400 checkpoints, about 4 min left …"
    )
    assert line("threads", 50, None, "3 checkpoints", 10.0) == "50 threads, 3 checkpoints …"
    assert line("items", 0, 10, "", 10.0) == "0 of about 10 items …"
    assert line("threads", 12, 10, "0 checkpoints", 10.0) == "12 threads, 0 checkpoints …"
    assert [duration(one) for one in (3.2, 600, 20_000)] == ["3 s", "10 min", "5.6 h"]


def test_without_a_terminal_progress_is_written_at_intervals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 1.0, 6.0, 7.0, 11.5, 100.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with Progress() as shown:
        for done in range(4):
            shown.advance(TransferReport(threads=done), 10)
        shown.advance(TransferReport(threads=10), 10)
        shown.notify("[bold]a sentence[/bold]")
    assert capsys.readouterr().err.splitlines() == [
        "1 of about 10 threads, 0 checkpoints, about 54 s left …",
        "3 of about 10 threads, 0 checkpoints, about 27 s left …",
        "[bold]a sentence[/bold]",
    ]


def test_a_report_counts_transferred_and_skipped_units() -> None:
    report = TransferReport(threads=1, copied=2)
    assert str(report) == "1 thread: 2 checkpoints copied."
    assert report.complete
    report = TransferReport(
        threads=1_200, copied=0, present=4_500, left_out=1, left_alone=1, failed=2, missing=1, verified=3, differing=1
    )
    report.not_given |= {"metadata", "ids"}
    assert str(report).splitlines() == [
        "1,200 threads: 0 checkpoints copied, 4,500 already present, 1 left out, 3 identical on both sides, "
        "1 different in the target, 1 thread left alone, 2 threads failed, "
        "1 thread without checkpoints in the source.",
        "The source does not give ids.",
        "The source does not give metadata.",
    ]
    report = TransferReport("item", "imported", copied=1, present=2, differing=1)
    assert str(report) == "Imported 1 item, 2 already present, 1 different in the target."
    for field in ("left_out", "left_alone", "failed", "missing", "differing"):
        assert not TransferReport(**{field: 1}).complete
