"""The result table of the tests under load, in a terminal and in docs/failover.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/failover.md"
BEGIN, END = "<!-- the table of faults begins -->\n", "<!-- the table of faults ends -->\n"

_HEADS = (
    "what goes wrong", "path", "times", "calls", "acknowledged writes", "lost", "doubled", "stale loads",
    "hung", "failed", "p50", "p99", "longest",
)  # fmt: skip


class Row(NamedTuple):
    """The outcomes of the clients of one path in one round of a fault.

    Args:
        fault: The fault.
        path: ``direct`` or ``Router``.
        acknowledged: Writes that returned.
        lost: Acknowledged writes that were missing afterwards.
        doubled: Writes that were stored twice.
        stale: Loads that lacked an acknowledged write.
        hung: Calls beyond their deadline.
        failed: Calls that raised `Unavailable`.
        waits_s: How long each call took, in seconds.
    """

    fault: str
    path: str
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
    """Return the table, with a line for each fault and path."""
    lines = []
    for fault, path in dict.fromkeys((row.fault, row.path) for row in rows):
        found = [row for row in rows if (row.fault, row.path) == (fault, path)]
        waits = [wait for row in found for wait in row.waits_s]
        sums = [sum(column) for column in zip(*(row[2:8] for row in found), strict=True)]
        seconds = (percentile(waits, 0.5), percentile(waits, 0.99), max(waits))
        cells = (
            *(fault, path, str(len(found)), f"{len(waits):,}"),
            *(f"{number:,}" for number in sums),
            *(f"{wait:.2f} s" for wait in seconds),
        )
        lines.append(f"| {' | '.join(cells)} |")
    head = f"| {' | '.join(_HEADS)} |\n|---|---|{'--:|' * (len(_HEADS) - 2)}"
    return "\n".join([head, *lines])


def write_document(rows: Sequence[Row]) -> None:
    """Replace the table in docs/failover.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{as_markdown(rows)}\n\n{END}{after}", encoding="utf-8")
