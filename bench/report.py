"""The report: what was measured, as Markdown with charts and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from . import charts, targets
from .markdown import markdown_table

MARKDOWN, JSON = "report.md", "results.json"

CONDITIONS = """\
All of it comes from one run on one machine. The contestants take turns, in an order shuffled anew each round, so that
a busy moment hits all of them; after warm-up; every loaded state was compared with the saved one. Absolute times move
from machine to machine: only the ratios count.

- Every contestant commits durably, with its server's default: MySQL flushes the redo log and the binary log, PostgreSQL
  its log; Redis runs with `appendfsync always`. Search and metadata indexes of locus-mysql are on.
- All connections are TCP to 127.0.0.1. Those to MySQL are encrypted; those to PostgreSQL and Redis are not.
- The floor is one bare INSERT of the new messages' JSON and Locus' `to_checkpoint()`; for loads one bare SELECT of the
  state's JSON, the JSON decoder and Locus' `from_checkpoint()`; on the same client library as what stands on it.
- The states are those of a real Locus agent with a tool; a save adds one message.
"""

REPEAT = """\
## How to repeat it

`ci/bench` in a checkout sets everything up, measures on private servers and writes this folder. A short look:
`ci/bench -- --only latency --quick`.
"""


def write(
    folder: Path, environment: Mapping[str, str], results: targets.Results, measurements: Mapping[str, ModuleType]
) -> Path:
    """Write report, JSON and charts; return the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in folder.glob("*.svg"):
        chart.unlink()
    told = {"environment": dict(environment), "results": results}
    (folder / JSON).write_text(json.dumps(rounded(told), indent=1) + "\n")
    drawn = charts.draw_all(results, folder)
    parts = [
        "# What locus-mysql costs, and what others do",
        CONDITIONS,
        REPEAT,
        "## Machine, versions, durability",
        markdown_table(["", "measured with"], [[name, fact] for name, fact in environment.items()]),
        "## Targets",
        targets.table(results),
        *(f"![{title}]({name})" for name, title in drawn),
    ]
    for name, module in measurements.items():
        if name in results:
            heading, *_ = (module.__doc__ or name).splitlines()
            parts += [f"## {name.replace('_', ' ').capitalize()}", heading, module.table(results[name])]
    (folder / MARKDOWN).write_text("\n\n".join(part.strip() for part in parts) + "\n")
    return folder / MARKDOWN


def read(folder: Path) -> tuple[dict[str, str], targets.Results]:
    """Environment and results of an earlier run."""
    told = json.loads((folder / JSON).read_text())
    return told["environment"], told["results"]


def rounded(value: Any) -> Any:
    """The same with numbers of five significant digits, which is more than any run repeats."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return value
