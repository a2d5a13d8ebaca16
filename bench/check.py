"""The gate: measures figures that do not depend on the machine, and compares them with the accepted ones.

    python -m bench.check --dsn mysql://user:password@host:port/database

The exit code is 0 if every figure is as good as in ``bench/accepted.json``, else 1. ``--only GROUP`` measures one
group. ``--accept`` writes the measured figures into the file instead; review them before you commit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from .gate import (
    copying,
    frameworks,
    inspection,
    memories,
    processes,
    reads,
    round_trips,
    server,
    storage,
    throughput,
    timing,
    wire,
    working,
)
from .gate.accepted import Group, Verdict, judge, read_accepted, write_accepted
from .markdown import markdown_table

#: The groups of figures, in the order in which they are measured, by their names in accepted.json.
MEASUREMENTS: Mapping[str, Callable[[str], dict[str, float]]] = {
    "round trips": round_trips.figures,
    "bytes on the wire": wire.figures,
    "bytes stored": storage.figures,
    "rows read": reads.figures,
    "memories": memories.figures,
    "working": working.figures,
    "inspection": inspection.figures,
    "copying": copying.figures,
    "time": timing.figures,
    "throughput and tail": throughput.figures,
    "time in other processes": processes.figures,
    "time of working memory": working.times,
    "server": server.figures,
    "frameworks": frameworks.figures,  # last: their imports would slow the garbage collection before each call
}


def measure(figures: Callable[[str], dict[str, float]], dsn: str, group: Group) -> dict[str, float]:
    """Measure a group until its figures are within their limits, at most as often as it allows; return the minima."""
    best: dict[str, float] = {}
    for _ in range(group.passes):
        for name, value in figures(dsn).items():
            best[name] = min(value, best.get(name, value))
        if not group.over(best):
            break
    return best


def typical(figures: Callable[[str], dict[str, float]], dsn: str, group: Group) -> dict[str, float]:
    """Return the median of each figure in all passes of its group, for acceptance."""
    passes = [figures(dsn) for _ in range(group.passes)]
    return {name: statistics.median(one[name] for one in passes) for name in passes[0]}


def check(dsn: str, groups: Iterable[str] = tuple(MEASUREMENTS)) -> list[Verdict]:
    """Measure the groups and judge every figure."""
    accepted = read_accepted()
    verdicts: list[Verdict] = []
    for name in groups:
        begin = time.perf_counter()
        verdicts += judge(name, accepted[name], measure(MEASUREMENTS[name], dsn, accepted[name]))
        print(f"check: {name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return verdicts


def table(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a Markdown table that is readable on a terminal."""
    rows = []
    for verdict in verdicts:
        outcome = "ok" if verdict.ok else "FAILED"
        if verdict.remark:
            outcome += f", {verdict.remark}"
        name = f"{verdict.group}: {verdict.name}"
        rows.append([name, _number(verdict.measured), _number(verdict.accepted), outcome])
    return markdown_table(["figure", "measured", "accepted", "outcome"], rows)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--only", action="append", choices=tuple(MEASUREMENTS), help="a group; may be repeated")
    parser.add_argument("--accept", action="store_true", help="write what was measured into accepted.json")
    chosen = parser.parse_args(arguments)
    groups = chosen.only or tuple(MEASUREMENTS)
    if chosen.accept:
        accepted = read_accepted()
        write_accepted({name: typical(MEASUREMENTS[name], chosen.dsn, accepted[name]) for name in groups})
        return 0
    verdicts = check(chosen.dsn, groups)
    print(table(verdicts))
    failed = [verdict for verdict in verdicts if not verdict.ok]
    print(f"\n{len(verdicts) - len(failed)} ok, {len(failed)} FAILED")
    if failed:  # again, because a log may keep only its end
        print(table(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
