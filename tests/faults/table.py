"""The result tables of the fault tests: outcomes of calls for each fault, for each kind of record, and driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """Outcomes of calls with one driver under one fault.

    Args:
        fault: The fault.
        side: The driver and side.
        records: What the calls store.
        attempts: Number of calls.
        acknowledged: Number of calls that returned.
        lost: Calls after which another process found something else than without the fault.
        wrong: Calls that returned something else than without the fault.
        longest_s: Duration of the longest call, in seconds.
    """

    fault: str
    side: str
    records: str
    attempts: int
    acknowledged: int
    lost: int
    wrong: int
    longest_s: float


_COUNTS = ("attempts", "acknowledged", "lost", "wrong", "longest wait")


def as_text(rows: Sequence[Row]) -> str:
    """Return the tables for a terminal."""
    return "\n\n".join(_aligned(heading, lines) for heading, lines in _tables(rows))


def as_document(rows: Sequence[Row]) -> str:
    """Return the page of the documents."""
    by_fault, by_records = (_markdown(heading, lines) for heading, lines in _tables(rows))
    whole = _sum(rows)
    return f"""# What goes wrong, and what becomes of it

A store makes calls through a proxy, and each call meets the fault once. A call is *acknowledged* when it returns. It is
*wrong* if it returned something else than the same call without a fault, and a write is *lost* if another process then
finds something else than without a fault: nothing, half of it, or it twice. A call that is not acknowledged raises
`Unavailable` at its deadline. Waits include the time-outs of the test: 0.5 s for an answer (4 s if it drips); on the
asynchronous side twice that, as there sending and answer share one.

{whole.attempts:,} calls, {whole.lost} lost, {whole.wrong} wrong. The tables show the same calls twice. Written by
`pytest tests/faults --write-faults-table`.

## By fault

{by_fault}

## By what is stored

{by_records}
"""


def _tables(rows: Sequence[Row]) -> Iterable[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return headings and lines of both tables: the rows of each fault and driver, and of each record and driver."""
    for title, key in (("what goes wrong", "fault"), ("what is stored", "records")):
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((getattr(row, key), row.side), []).append(row)
        names = list(dict.fromkeys(name for name, _ in groups))
        ordered = sorted(groups, key=lambda group: (names.index(group[0]), group[1]))
        yield (title, "driver", *_COUNTS), [(*group, *_cells(_sum(groups[group]))) for group in ordered]


def _sum(rows: Sequence[Row]) -> Row:
    """Return the sums of the counts, and the longest wait."""
    counts = (sum(row[place] for row in rows) for place in range(3, 7))
    return Row(*rows[0][:3], *counts, max(row.longest_s for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    counts = (f"{number:,}" for number in (row.attempts, row.acknowledged, row.lost, row.wrong))
    return (*counts, f"{row.longest_s:.2f} s")


def _aligned(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    lines = [heading, *lines]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _markdown(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = f"| {' | '.join(heading)} |\n|---|---|{'--:|' * len(_COUNTS)}"
    return "\n".join([head, *(f"| {' | '.join(line)} |" for line in lines)])
