"""The result table of the fault tests: outcomes of calls for each fault and driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """Outcomes of calls with one driver under one fault.

    Args:
        fault: The fault.
        side: The driver and side.
        attempts: Number of calls.
        acknowledged: Number of calls that returned.
        lost: Acknowledged saves whose checkpoint was missing afterwards.
        wrong: Calls with a wrong result, and duplicate or unreadable checkpoints.
        longest_s: Duration of the longest call, in seconds.
    """

    fault: str
    side: str
    attempts: int
    acknowledged: int
    lost: int
    wrong: int
    longest_s: float


_HEADS = ("what goes wrong", "driver", "attempts", "acknowledged", "lost", "wrong", "longest wait")


def as_text(rows: Sequence[Row]) -> str:
    """Return the table for a terminal, with a line for each fault and driver."""
    lines = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def as_document(rows: Sequence[Row]) -> str:
    """Return the page of the documents."""
    head = f"| {' | '.join(_HEADS)} |\n|---|---|{'--:|' * 5}"
    body = "\n".join(f"| {' | '.join(_cells(row))} |" for row in rows)
    sums = (sum(row.attempts for row in rows), sum(row.lost for row in rows), sum(row.wrong for row in rows))
    return f"""# What goes wrong, and what becomes of it

Each line is one kind of fault with one driver: an agent saves, loads, lists and deletes through a proxy, and each call
meets the fault once. A call is *acknowledged* when it returns. A save is *lost* when it was acknowledged and another
process does not find its checkpoint afterwards; *wrong* is any other answer than an undisturbed server gives, and a
checkpoint that is there twice. A call that is not acknowledged raises `Unavailable` at its deadline. Waits include the
time-outs of the test: 0.5 s for an answer; on the asynchronous side 1 s, as there sending and answer share one.

{sums[0]:,} calls, {sums[1]} lost, {sums[2]} wrong. Written by `pytest tests/faults --write-faults-table`.

{head}
{body}
"""


def _cells(row: Row) -> tuple[str, ...]:
    counts = (f"{number:,}" for number in (row.attempts, row.acknowledged, row.lost, row.wrong))
    return (row.fault, row.side, *counts, f"{row.longest_s:.2f} s")
