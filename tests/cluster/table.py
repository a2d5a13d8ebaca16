"""The result tables of the tests under load, in a terminal and in docs/design/failover.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/design/failover.md"
BEGIN, END = "<!-- the table of faults begins -->\n", "<!-- the table of faults ends -->\n"

_HEADS = (
    "path", "times", "calls", "acknowledged writes", "lost", "doubled", "stale loads", "hung", "failed",
    "p50", "p99", "longest",
)  # fmt: skip


class Row(NamedTuple):
    """The outcomes of the clients of one way in one round of a fault.

    Args:
        fault: The fault.
        driver: The driver and its side, as in `EVERY_SIDE`.
        path: ``direct`` or ``Router``.
        number: The number of the round.
        acknowledged: Writes that returned.
        lost: Acknowledged writes that were missing afterwards.
        doubled: Writes that were stored twice.
        stale: Loads that lacked an acknowledged write.
        hung: Calls beyond their deadline.
        failed: Calls that raised `Unavailable`.
        waits_s: How long each call took, in seconds.
    """

    fault: str
    driver: str
    path: str
    number: int
    acknowledged: int
    lost: int
    doubled: int
    stale: int
    hung: int
    failed: int
    waits_s: tuple[float, ...]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that this fraction of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the tables: a line for each fault and path, and one for each driver and path."""
    by_fault = _table("what goes wrong", rows, lambda row: row.fault)
    by_driver = _table("driver", sorted(rows, key=lambda row: row.driver), lambda row: row.driver)
    return f"{by_fault}\n\n{by_driver}"


def _table(head: str, rows: Sequence[Row], first_of: Callable[[Row], str]) -> str:
    lines = []
    for first, path in dict.fromkeys((first_of(row), row.path) for row in rows):
        found = [row for row in rows if (first_of(row), row.path) == (first, path)]
        waits = sorted(wait for row in found for wait in row.waits_s)
        sums = [sum(column) for column in zip(*(row[4:10] for row in found), strict=True)]
        seconds = (percentile(waits, 0.5), percentile(waits, 0.99), waits[-1])
        cells = (
            *(first, path, str(len({(row.fault, row.number) for row in found})), f"{len(waits):,}"),
            *(f"{number:,}" for number in sums),
            *(f"{wait:.2f} s" for wait in seconds),
        )
        lines.append(f"| {' | '.join(cells)} |")
    heads = f"| {' | '.join((head, *_HEADS))} |\n|---|---|{'--:|' * (len(_HEADS) - 1)}"
    return "\n".join([heads, *lines])


def write_document(rows: Sequence[Row]) -> None:
    """Replace the table in docs/design/failover.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{as_markdown(rows)}\n\n{END}{after}", encoding="utf-8")
