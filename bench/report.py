"""The report of a run: Markdown pages with charts, and the raw results as JSON in a folder that git ignores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from . import charts, targets
from .markdown import markdown_table

MARKDOWN, JSON = "report.md", "results.json"

#: The folder of raw results, within a report's folder.
RAW = "raw"

CONDITIONS = """\
All measurements come from one run on one machine. The contestants take turns, in an order that is shuffled each round,
so that other load on the machine affects all of them. They are warmed up first, and each loaded state is compared with
the saved one. Absolute times differ between machines: compare only ratios.

- Every contestant commits durably, with its server's default: MySQL flushes the redo log and the binary log, PostgreSQL
  its log; Redis runs with `appendfsync always`. Search and metadata indexes of locus-mysql are on.
- All connections use TCP to 127.0.0.1. Those to MySQL are encrypted; those to PostgreSQL and Redis are not.
- The floor of a save is one bare INSERT of the new messages' JSON and Locus' `to_checkpoint()`; that of a load is one
  bare SELECT of the state's JSON, the JSON decoder and Locus' `from_checkpoint()`. Each client library has its own.
- The states are those of a real Locus agent with a tool; a save adds one message.
"""

REPEAT = """\
## How to repeat it

`ci/bench` in a checkout sets everything up, measures on private servers and writes this folder.
`ci/bench -- --only latency --quick` makes one measurement with few rounds.
"""


#: Heading of a measurement's own page.
PAGE_HEADING = """\
# {title}

[The report](report.md) has the other measurements. `ci/bench -- --only {name}` repeats this one.
"""


def write(
    folder: Path, environment: Mapping[str, str], results: targets.Results, measurements: Mapping[str, ModuleType]
) -> Path:
    """Write pages, charts and raw results; return the report's path. A measurement with a ``PAGE`` has its own page."""
    (folder / RAW).mkdir(parents=True, exist_ok=True)
    for chart in folder.glob("*.svg"):
        chart.unlink()
    pages = {name for name, module in measurements.items() if name in results and hasattr(module, "PAGE")}
    raw = {
        "environment": dict(environment),
        "results": {name: one for name, one in results.items() if name not in pages},
    }
    (folder / RAW / JSON).write_text(json.dumps(rounded(raw), indent=1) + "\n")
    drawn = charts.draw_all(results, folder)
    for name in pages:
        write_page(folder, name, measurements[name], results[name], drawn)
    parts = [
        "# What locus-mysql costs, and what others do",
        CONDITIONS,
        REPEAT,
        "## Machine, versions, durability",
        markdown_table(["", "measured with"], [[name, fact] for name, fact in environment.items()]),
        "## Targets",
        targets.table(results),
        *(f"![{title}]({name})" for name, title in drawn if Path(name).stem not in pages),
        *(f"On a separate page: [{name}]({name}.md)" for name in sorted(pages)),
    ]
    for name, module in measurements.items():
        if name in results and name not in pages:
            heading, *_ = (module.__doc__ or name).splitlines()
            parts += [f"## {name.replace('_', ' ').capitalize()}", heading, module.table(results[name])]
    (folder / MARKDOWN).write_text("\n\n".join(part.strip() for part in parts) + "\n")
    return folder / MARKDOWN


def write_page(
    folder: Path, name: str, module: ModuleType, result: Mapping[str, Any], drawn: Sequence[tuple[str, str]]
) -> None:
    """Write the page of one measurement, and its raw results."""
    (folder / RAW / f"{name}.json").write_text(json.dumps(rounded(result), indent=1) + "\n")
    heading, *_ = (module.__doc__ or name).splitlines()
    parts = [
        PAGE_HEADING.format(title=heading.removesuffix("."), name=name),
        *(f"![{title}]({file})" for file, title in drawn if Path(file).stem == name),
        *(["## Targets", targets.table({name: result}, name)] if targets.exist_for(name) else []),
        "## Measured",
        module.table(result),
        "## Machine, versions, durability",
        markdown_table(["", "measured with"], [[what, fact] for what, fact in result["environment"].items()]),
    ]
    (folder / f"{name}.md").write_text("\n\n".join(part.strip() for part in parts) + "\n")


def read(folder: Path) -> tuple[dict[str, str], targets.Results]:
    """Read environment and results of an earlier run."""
    raw = json.loads((folder / RAW / JSON).read_text())
    pages = {file.stem: json.loads(file.read_text()) for file in (folder / RAW).glob("*.json") if file.name != JSON}
    return raw["environment"], {**raw["results"], **pages}


def rounded(value: Any) -> Any:
    """Return a value with its numbers rounded to five significant digits, more than repeated runs agree in."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return value
