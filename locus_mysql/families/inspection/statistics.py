"""Statistics of a family's owners as threads: exact for a few thousand, else estimated from a sample. No I/O.

All owners are counted. The numbers and bytes of their parts are summed up for all of them, or for a sample that a hash
of the id selects, so a request reads the parts of a few thousand owners at most. That reads no sealed bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...dialect.sql import SQL
from ...engine.operation import Batch, Operation
from ...records.tables import Row
from .owner_rows import Key, OwnerRows, size_of
from .records import Day, LargeThread, Statistics, ThreadRow

#: Approximate number of owners in a sample; and the smallest number, whatever number of parts they have.
SAMPLE, LEAST_SAMPLE = 2_500, 500

#: Approximate number of parts in a sample. A sample with more is thinned, down to `LEAST_SAMPLE` owners.
SAMPLE_ROWS = 500_000

#: Reported owners; and owners with the most parts, of which some may be larger than those of the sample.
LARGEST, BUSIEST = 10, 50

COUNT = SQL("SELECT COUNT(*) FROM {TABLE} o{INDEX} WHERE o.tenant = :tenant")

#: A sample of the owners, by a hash of their ids, each with the day of its creation if that is one of the last 30, and
#: about how many parts it has. An index has the ids; only the chosen rows are read.
SAMPLED = SQL("""
SELECT {KEY}, IF(o.{CREATED} >= UTC_DATE() - INTERVAL 29 DAY, CAST(DATE(o.{CREATED}) AS CHAR), NULL), {ABOUT}
  FROM (SELECT {KEY} FROM {TABLE} o{INDEX} WHERE o.tenant = :tenant AND MOD(CRC32({ID}), :one_in) = 0) AS sampled
  STRAIGHT_JOIN {TABLE} o ON o.tenant = :tenant AND {SAME_KEY}
 WHERE {LIVE}
""")

#: The parts of each owner.
SIZES = SQL("SELECT {KEY}, NULL, {ROWS}, {BYTES} FROM {TABLE} o WHERE o.tenant = :tenant AND {LIVE}{CONDITIONS}")

#: The parts written on each of the last 30 days.
SAVED = SQL("""
SELECT CAST(DATE(c.{AT}) AS CHAR), COALESCE(SUM({COUNTED}), 0), COALESCE(SUM({SIZE}), 0)
  FROM {TABLE} o
  STRAIGHT_JOIN {PARTS} c ON {JOINED}
 WHERE o.tenant = :tenant AND c.{AT} >= UTC_DATE() - INTERVAL 29 DAY AND {LIVE}{CONDITIONS}
 GROUP BY 1
""")

#: Both: the parts of each owner by the day on which they were written, NULL for older ones.
SIZES_BY_DAY = SQL("""
SELECT {KEY}, IF(c.{AT} >= UTC_DATE() - INTERVAL 29 DAY, CAST(DATE(c.{AT}) AS CHAR), NULL) AS day,
       COALESCE(SUM({COUNTED}), 0), COALESCE(SUM({SIZE}), 0)
  FROM {TABLE} o
  STRAIGHT_JOIN {PARTS} c ON {JOINED}
 WHERE o.tenant = :tenant AND {LIVE}{CONDITIONS}
 GROUP BY {KEY}, day
""")


class Measured(NamedTuple):
    """An owner with the number of its parts and their bytes."""

    key: Key
    rows: int
    size_bytes: int


#: Returns the average size that the parts of some owners would have if they were stored whole; None if unknown.
WholeSize: TypeAlias = Callable[[Sequence[Measured]], Operation[float | None]]


def statistics_of(owners: OwnerRows, shown: Callable[[Row], ThreadRow], whole_size: WholeSize) -> Operation[Statistics]:
    """Return numbers, sizes and growth of owners.

    Args:
        owners: The owners.
        shown: Returns the thread of an owner.
        whole_size: The average size of whole states.
    """
    (counted,) = yield Batch.of(owners.statement(COUNT))
    ((count,),) = _values(counted)
    one_in = max(1, count // SAMPLE)
    same = " AND ".join(f"o.{one} = sampled.{one}" for one in owners.naming.columns)
    (sampled,) = yield Batch.of(owners.statement(SAMPLED, {"SAME_KEY": same}, one_in=one_in))
    sample = _values(sampled)
    chosen = thinned(sample)
    is_whole = one_in == 1 and len(chosen) == len(sample)
    conditions, values = ("", {}) if is_whole else owners.among([_key(owners, row) for row in chosen])
    found = yield Batch(
        tuple(
            owners.statement(one, {"CONDITIONS": conditions, **pieces}, **values) for one, pieces in _statements(owners)
        ),
        atomic=False,
    )
    totals = {_key(owners, row): [0, 0] for row in chosen}
    days: Counter[tuple[str, int]] = Counter()
    for *key, day, number, size in (row for one in found for row in _values(one)):
        if key and (total := totals.get(_key(owners, key))):
            total[0] += int(number)
            total[1] += int(size)
        if day is not None:
            days.update({(day, 1): int(number), (day, 2): int(size)})
    measured = [Measured(key, *total) for key, total in totals.items()]
    is_timed = any(part.at for part in owners.tables.parts)
    for row, one in zip(chosen, measured, strict=True):
        if (day := row[-2]) is not None:
            days.update({(day, 0): 1} if is_timed else {(day, 0): 1, (day, 1): one.rows, (day, 2): one.size_bytes})
    threads = len(measured) if is_whole else count
    scale = threads / len(measured) if measured else 0.0
    rows, size_bytes = sum(one.rows for one in measured), sum(one.size_bytes for one in measured)
    average = yield from whole_size(measured)
    large = sorted(measured, key=lambda one: -one.size_bytes)[:LARGEST]
    conditions, values = owners.among([one.key for one in large])
    largest = (yield from owners.fetch(conditions, LARGEST, **values)) if large else []
    if not is_whole:
        largest += yield from owners.fetch("", BUSIEST, {"BY": "{ABOUT} DESC", "INDEX": ""})
    shown_rows = {one.thread_id: one for one in map(shown, largest)}
    return Statistics(
        family=owners.tables.schema.family,
        threads=threads,
        checkpoints=round(rows * scale),
        size_bytes=round(size_bytes * scale),
        whole_bytes=None if average is None else round(average * rows * scale),
        days=[
            Day(day, *(round(days[day, place] * scale) for place in range(3)))
            for day in sorted({day for day, _ in days})
        ],
        largest=[LargeThread.of(one) for one in sorted(shown_rows.values(), key=lambda one: -one.size_bytes)[:LARGEST]],
        sampled=None if is_whole else len(measured),
    )


def thinned(sample: Sequence[Any]) -> Sequence[Any]:
    """Return every n-th owner of a sample that may have too many parts; the last value of each is about its number."""
    rows = sum(int(row[-1]) for row in sample)
    return sample[:: max(1, min(-(-rows // SAMPLE_ROWS), len(sample) // LEAST_SAMPLE))]


def _statements(owners: OwnerRows) -> list[tuple[SQL, dict[str, str]]]:
    """Return the statements that measure owners, with their pieces."""
    owner, timed = owners.tables.owner, [part for part in owners.tables.parts if part.at]
    pieces = [
        {
            "AT": part.at,
            "COUNTED": part.counted or "1",
            "SIZE": " + ".join(filter(None, (size_of(part), part.beside))),
            "PARTS": f"`{owners.tables.names[part.role]}`",
            "JOINED": owners.joined(part),
        }
        for part in timed
    ]
    if timed and len(owners.tables.parts) == 1 and not owner.rows and not owner.size:
        return [(SIZES_BY_DAY, pieces[0])]
    return [(SIZES, {}), *((SAVED, one) for one in pieces)]


def _key(owners: OwnerRows, row: Sequence[Any]) -> Key:
    columns = owners.naming.columns
    return owners.moving.key_of(owners.tables.row(owners.tables.owner, columns, row[: len(columns)]))


def _values(result: Any) -> Sequence[Any]:
    return result.rows  # type: ignore[no-any-return]
