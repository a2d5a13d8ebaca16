"""Measure everything and write the report: ``python -m bench --dsn mysql://…``; ``ci/bench`` starts the servers."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from locus_mysql.signals import StopRequested, stop_signals_raise

from . import report, targets
from .environment import environment
from .peers import peers

#: Names of the measurements, in the order in which they run. Each is a module of this package.
MEASUREMENTS = (
    *("latency", "throughput", "cold_start", "growth", "round_trips", "memory", "scale", "graphs"),
    *("memories", "working", "inspection", "server", "stalls", "copying", "frameworks", "engines"),
    "under_pytest",
)
REPORT = Path(__file__).parent / "report"
PARTIAL_REPORT = Path(__file__).parent.parent / ".cache/bench-report"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, write the report; return the exit code."""
    chosen = parser().parse_args(arguments)
    wanted = MEASUREMENTS if chosen.only is None else tuple(chosen.only.split(","))
    unknown = [name for name in wanted if name not in MEASUREMENTS]
    if unknown:
        print(f"bench: no measurement is called {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
        return 2
    whole = chosen.only is None and not chosen.quick
    folder = chosen.output or (REPORT if whole else PARTIAL_REPORT)
    if chosen.draw:
        return draw(chosen.output or REPORT)
    if chosen.dsn is None:
        parser().error("--dsn is needed")
    try:
        with stop_signals_raise():
            return run(chosen.dsn, wanted, chosen.quick, folder)
    except StopRequested as request:
        return 128 + request.signum


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    made.add_argument("--dsn", help="mysql://user:password@host:port/database of a server to measure with")
    made.add_argument("--only", metavar="NAMES", help=f"some of {','.join(MEASUREMENTS)}, joined by commas")
    made.add_argument("--quick", action="store_true", help="a few rounds of the small cases, to see that it works")
    made.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="where to write the report: bench/report; what is quick or not all of it goes to .cache/bench-report",
    )
    made.add_argument(
        "--draw", action="store_true", help="measure nothing: write the report again from its raw results"
    )
    return made


def run(dsn: str, wanted: Sequence[str], quick: bool, folder: Path) -> int:
    """Run measurements in this order, and print each table when it is ready. A failed one does not stop the rest."""
    modules = load(wanted)
    results: targets.Results = {}
    with peers() as found:
        facts = environment(dsn, found)
        print("\n".join(f"{name}: {fact}" for name, fact in facts.items()), flush=True)
        for name, module in modules.items():
            begin = time.perf_counter()
            try:
                results[name] = module.measure(dsn, quick)
            except Exception:
                traceback.print_exc()
                print(f"bench: {name} failed", file=sys.stderr, flush=True)
                continue
            print(f"\n## {name}\n\n{module.table(results[name])}", flush=True)
            print(f"bench: {name} took {time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    results = report.rounded(results)
    print(f"\n## targets\n\n{targets.table(results)}")
    failed = [name for name in modules if name not in results]
    written = report.write(PARTIAL_REPORT if failed else folder, facts, results, modules)
    print(f"\nThe report is {written}")
    if failed:
        print(f"bench: failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def draw(folder: Path) -> int:
    """Write the report of an earlier run again from its raw results."""
    facts, results = report.read(folder)
    modules = load([name for name in MEASUREMENTS if name in results])
    print(f"The report is {report.write(folder, facts, results, modules)}")
    return 0


def load(names: Sequence[str]) -> dict[str, ModuleType]:
    """Import the modules of measurements, all of them before the first one runs."""
    return {name: import_module(f"{__package__}.{name}") for name in names}


if __name__ == "__main__":
    sys.exit(main())
