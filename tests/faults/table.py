"""The result tables of the fault tests: outcomes of calls for each fault, for each kind of record, and driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


#: What the columns mean, as lines of a table.
_WORDS = "\n".join(
    (
        "| word | meaning |",
        "| --- | --- |",
        "| acknowledged | The call returned. One that is not acknowledged raises `Unavailable` at its deadline,"
        " `retry_deadline_s`, and may be repeated. |",
        "| lost | Another process found something else than without the fault: nothing, a part, or a write twice. |",
        "| wrong | The call returned something else than without the fault. |",
        "| longest wait | It includes the time-outs of the test: 0.5 s for an answer, 4 s if it drips; with"
        " asynchronous drivers twice that, as one time-out covers sending and the answer. A program waits for its own"
        " `read_timeout_s` and `write_timeout_s`. |",
    )
)

#: The name under which calls without a fault are listed.
NO_FAULT = "nothing"

_COUNTS = ("attempts", "acknowledged", "lost", "wrong", "longest wait")


def as_text(rows: Sequence[Row]) -> str:
    """Return the tables for a terminal."""
    return "\n\n".join(_aligned(heading, lines) for heading, lines in _tables(rows))


def as_document(rows: Sequence[Row]) -> str:
    """Return the page of the documents."""
    by_fault, by_records = (_markdown(heading, lines) for heading, lines in _tables(rows))
    whole = _sum(rows)
    unknown = whole.attempts - whole.acknowledged
    without = sum(row.attempts for row in rows if row.fault == NO_FAULT)
    calls = f"{whole.attempts:,} calls, of them {whole.attempts - without:,} with a fault and {without:,} without"
    pairs, faults = {(row.fault, row.records) for row in rows}, {row.fault for row in rows}
    met = "all" if len(pairs) == len(faults) * len({row.records for row in rows}) else "some"
    return f"""# Faults

What a program sees when its connection or its server fails in the middle of a call: nothing but a longer wait, up to
`retry_deadline_s`; then `Unavailable`. Every store of every family, and of every framework whose records are kept in
them, makes the same calls through a proxy again and again, each time with another fault in each call; each store meets
{met} of the faults, and each fault every driver.

{calls}: {whole.lost} lost, {whole.wrong} wrong, {unknown} not acknowledged.

{_WORDS}

A call is repeated by the store itself, and a write is recognised by its token, so it is never done twice
([what every write keeps](architecture.md#what-every-write-keeps)). Faults of whole servers and of groups are on
[another page](failover.md). Both tables show the same calls. Written by `pytest tests/faults --write-faults-table`.

## By fault

{by_fault}

## By what is stored

{by_records}
"""


def _tables(rows: Sequence[Row]) -> Iterable[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return headings and lines of both tables: the rows of each fault and driver, and of each kind of record."""
    yield ("what goes wrong", "driver", *_COUNTS), _lines(rows, lambda row: (row.fault, row.side))
    sides: dict[str, set[str]] = {}
    for row in rows:
        sides.setdefault(row.records, set()).add(row.side.rpartition("-")[2])
    calls = {records: ", ".join(sorted(one)) for records, one in sides.items()}
    yield ("what is stored", "calls", *_COUNTS), _lines(rows, lambda row: (row.records, calls[row.records]))


def _lines(rows: Sequence[Row], group_of: Callable[[Row], tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the lines of a table, in the order of the first rows of their names."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault(group_of(row), []).append(row)
    names = list(dict.fromkeys(name for name, _ in groups))
    ordered = sorted(groups, key=lambda group: (names.index(group[0]), group[1]))
    return [(*group, *_cells(_sum(groups[group]))) for group in ordered]


def _sum(rows: Sequence[Row]) -> Row:
    """Return the sums of the counts, and the longest wait."""
    counts = (sum(row[index] for row in rows) for index in range(3, 7))
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
