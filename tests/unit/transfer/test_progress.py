"""How far a copy is, in words, and how a report reads."""

from __future__ import annotations

import pytest

from locus_mysql.cli import progress
from locus_mysql.cli.progress import Progress, duration, line
from locus_mysql.integrations.locus.copying.report import CopyReport


def test_a_line_tells_how_long_the_rest_may_take() -> None:
    assert (
        line(50, 1_200, "3,400 checkpoints", 10.0) == "50 of about 1,200 threads, 3,400 checkpoints, about 4 min left …"
    )
    assert line(50, None, "3 checkpoints", 10.0) == "50 threads, 3 checkpoints …"
    assert line(0, 10, "0 checkpoints", 10.0) == "0 of about 10 threads, 0 checkpoints …"
    assert line(12, 10, "0 checkpoints", 10.0) == "12 threads, 0 checkpoints …"
    assert [duration(one) for one in (3.2, 600, 20_000)] == ["3 s", "10 min", "5.6 h"]


def test_where_nobody_watches_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 1.0, 6.0, 7.0, 11.5, 100.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with Progress() as shown:
        for done in range(4):
            shown.advance(done, 10, "some")
        shown.advance(10, 10, "all")
        shown.tell("[bold]a sentence[/bold]")
    assert capsys.readouterr().err.splitlines() == [
        "1 of about 10 threads, some, about 54 s left …",
        "3 of about 10 threads, some, about 27 s left …",
        "[bold]a sentence[/bold]",
    ]


def test_a_report_tells_what_was_done_and_what_was_not() -> None:
    report = CopyReport(threads=1, copied=2)
    assert str(report) == "1 thread: 2 checkpoints copied."
    assert report.complete
    report = CopyReport(
        threads=1_200, copied=0, present=4_500, left_out=1, left_alone=1, failed=2, missing=1, verified=3, differing=1
    )
    report.not_given |= {"metadata", "ids"}
    report.not_kept |= {"times"}
    assert str(report).splitlines() == [
        "1,200 threads: 0 checkpoints copied, 4,500 there already, 1 left out, 3 the same on both sides, "
        "1 not the same on both sides, 1 thread left alone, 2 threads failed, "
        "1 thread without checkpoints in the source.",
        "The source does not give ids.",
        "The source does not give metadata.",
        "The target does not keep times.",
    ]
    for field in ("left_out", "left_alone", "failed", "missing", "differing"):
        assert not CopyReport(**{field: 1}).complete
