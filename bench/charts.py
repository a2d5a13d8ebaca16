"""The charts of the report: SVG, the same bytes for the same figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from . import memories as of_memories
from .contestants import BUILT_IN, OURS, POSTGRESQL, REDIS
from .floor import floor_of
from .processes import COLD
from .targets import Results

FLOOR = floor_of(OURS)
OURS_COLD = f"{OURS}, {COLD}"

# Okabe and Ito's colours, which colour-blind people can distinguish as well: https://jfly.uni-koeln.de/color/
COLOURS = {
    OURS: "#0072B2",
    "locus-mysql, aiomysql": "#56B4E9",
    OURS_COLD: "#56B4E9",
    BUILT_IN: "#D55E00",
    POSTGRESQL: "#009E73",
    REDIS: "#CC79A7",
    FLOOR: "#000000",
}
OTHER_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX"  # one fewer than the colours, so that lines of the same colour differ in style
LABEL_HEIGHT = 0.052  # fraction of the axes' height

STYLE = {
    "svg.hashsalt": "locus-mysql",
    "svg.fonttype": "none",  # text stays text, which is small, sharp and searchable
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.7,
    "figure.facecolor": "white",
}


@dataclass(frozen=True)
class Line:
    """One line of a chart."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    dashed: bool = False
    bold: bool = False


def draw_all(results: Results, folder: Path) -> list[tuple[str, str]]:
    """Draw the charts of the results; return file name and title of each."""
    drawn = []
    for name, title, draw in (
        ("save-latency.svg", "Save by size of the conversation", save_latency),
        ("load-latency.svg", "Load by size of the conversation", load_latency),
        ("throughput.svg", "Saves per second by concurrent conversations", throughput),
        ("storage.svg", "Storage by turn", storage),
        ("operations.svg", "Operations by size of the table", operations),
        ("memories.svg", "Search by meaning by number of items", memories),
    ):
        try:
            with mpl.rc_context(STYLE):
                figure = draw(results)
        except LookupError:
            continue  # not measured in this run
        with mpl.rc_context(STYLE):
            figure.savefig(folder / name, format="svg", metadata={"Date": None, "Creator": None})
        drawn.append((name, title))
    return drawn


def save_latency(results: Results) -> Figure:
    """Draw the median milliseconds of a save by number of messages."""
    return _latency(results, "save")


def load_latency(results: Results) -> Figure:
    """Draw the median milliseconds of a load by number of messages."""
    return _latency(results, "load")


def _latency(results: Results, what: str) -> Figure:
    sized = {int(name): one for name, one in results["latency"]["workloads"].items() if name.isdigit()}
    lines = [
        Line(
            _shown(name),
            list(sized),
            [one["contestants"][name][f"{what}_ms"] for one in sized.values()],
            COLOURS[name],
            dashed=name == FLOOR,
            bold=name == OURS,
        )
        for name in (OURS, *([OURS_COLD] if what == "load" else []), BUILT_IN, POSTGRESQL, REDIS, FLOOR)
        if all(name in one["contestants"] for one in sized.values())
    ]
    return _chart(
        lines, f"{what.capitalize()}, median ms: lower is better", "messages in the conversation", list(sized)
    )


def throughput(results: Results) -> Figure:
    """Draw the saves per second by number of concurrent conversations."""
    measured = {int(number): one for number, one in results["throughput"]["concurrency"].items()}
    names = next(iter(measured.values()))
    lines = [
        Line(
            _shown(name),
            list(measured),
            [one[name]["saves_per_s"] for one in measured.values()],
            COLOURS[name],
            bold=name == OURS,
        )
        for name in COLOURS
        if name in names
    ]
    return _chart(lines, "Saves per second: higher is better", "concurrent conversations", list(measured))


def storage(results: Results) -> Figure:
    """Draw the bytes stored by number of turns."""
    growth = results["growth"]["plain turns"]
    turns = growth["turns"]
    lines = [
        Line("locus-mysql", turns, _millions(growth["stored_bytes"]), COLOURS[OURS], bold=True),
        Line("each state whole", turns, _millions(growth["whole_states_bytes"]), COLOURS[FLOOR], dashed=True),
        Line("Locus built-in MySQL", turns, _millions(growth["builtin_bytes"]), COLOURS[BUILT_IN]),
        Line("the final state alone", turns, _millions(growth["final_state_bytes"]), "#999999", dashed=True),
    ]
    return _chart(
        lines,
        "Stored, MB: lower is better",
        "turns of the conversation",
        [tick for tick in (1, 10, 100, 1000) if tick <= turns[-1]],
    )


def operations(results: Results) -> Figure:
    """Draw the milliseconds of operations by number of checkpoints in the table."""
    measured: Mapping[str, Mapping[str, float]] = results["scale"]["operations"]
    sizes = [int(size) for size in next(iter(measured.values()))]
    lines = [
        Line(name, sizes, list(times.values()), OTHER_COLOURS[number % len(OTHER_COLOURS)])
        for number, (name, times) in enumerate(measured.items())
    ]
    return _chart(lines, "Median ms: flat is good", "checkpoints in the table", sizes, height=6.5, width=0.46)


def memories(results: Results) -> Figure:
    """Draw the milliseconds of a search by meaning by number of items."""
    measured = {int(size): one["ms"] for size, one in results["memories"]["sizes"]["384"].items()}
    lines = []
    for number, name in enumerate(
        (
            of_memories.WARM,
            of_memories.COLD,
            of_memories.SCOPED,
            of_memories.FETCHED,
            of_memories.PGMEMORY,
            of_memories.LOOPS,
            of_memories.PRODUCT,
        )
    ):
        sizes = [size for size, times in measured.items() if name in times]
        colour = OTHER_COLOURS[number % len(OTHER_COLOURS)]
        times = [measured[size][name] for size in sizes]
        lines.append(
            Line(name, sizes, times, colour, dashed=name == of_memories.PRODUCT, bold=name == of_memories.WARM)
        )
    return _chart(lines, "Search by meaning, ms: lower is better", "items, of 384 dimensions", list(measured))


def _chart(
    lines: Sequence[Line], title: str, x_label: str, x_ticks: Sequence[float], height: float = 4.6, width: float = 0.6
) -> Figure:
    figure = Figure(figsize=(9.0, height), layout=None)
    axes = figure.add_axes((0.085, 0.13, width, 0.77))
    axes.set_xscale("log")
    axes.set_yscale("log")
    for marker, line in zip(MARKERS * 3, lines, strict=False):
        axes.plot(
            line.x[: len(line.y)],
            line.y,
            color=line.colour,
            linestyle="--" if line.dashed else "-",
            linewidth=3.0 if line.bold else 1.6,
            marker=marker,
            markersize=5,
        )
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")
    axes.set_xlabel(x_label)
    axes.set_xticks(list(x_ticks))
    axes.xaxis.set_major_formatter(FuncFormatter(_plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))
    axes.yaxis.set_minor_formatter(FuncFormatter(_two_and_five))
    axes.tick_params(axis="y", which="minor", labelsize=9)
    _name_lines(axes, lines, LABEL_HEIGHT * 4.6 / height)
    return figure


def _name_lines(axes: Axes, lines: Sequence[Line], apart: float) -> None:
    """Write each line's name at its end; move names apart that would overlap."""
    low, high = (math.log(limit) for limit in axes.get_ylim())
    ends = sorted(
        (((math.log(line.y[-1]) - low) / (high - low), line) for line in _with_points(lines)), key=lambda end: end[0]
    )
    heights = spread([end for end, _ in ends], apart)
    for (_end, line), height in zip(ends, heights, strict=True):
        last = len(line.y) - 1
        axes.annotate(
            line.name,
            xy=(line.x[last], line.y[-1]),
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=line.colour,
            fontweight="bold" if line.bold else "normal",
            va="center",
            arrowprops={"arrowstyle": "-", "color": line.colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4},
            annotation_clip=False,
        )


def _with_points(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if len(line.y) > 0]


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Move ascending positions so that neighbours are at least a given distance apart, none further than necessary.

    >>> spread([0.25, 0.25, 1.0], 0.5)
    [0.0, 0.5, 1.0]
    """
    groups: list[tuple[float, int]] = []  # centre and number of labels that touch
    for height in heights:
        centre, number = height, 1
        while groups and centre - groups[-1][0] < apart * (number + groups[-1][1]) / 2:
            other, others = groups.pop()
            centre = (centre * number + other * others) / (number + others)
            number += others
        groups.append((centre, number))
    return [centre + apart * (one - (number - 1) / 2) for centre, number in groups for one in range(number)]


def _shown(name: str) -> str:
    return {FLOOR: "floor: bare SQL + Locus' encoding"}.get(name, name)


def _millions(values: Sequence[float]) -> list[float]:
    return [value / 1e6 for value in values]


def _plain(value: float, _position: Any) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _two_and_five(value: float, height: Any) -> str:
    digit = value / 10 ** math.floor(math.log10(value) + 1e-9)
    return _plain(value, height) if round(digit) in (2, 5) else ""
