"""The accepted figures, and their comparison with the measured ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCEPTED = Path(__file__).parent.parent / "accepted.json"


@dataclass(frozen=True)
class Group:
    """Figures of one kind in ``accepted.json``. Smaller figures are better.

    Args:
        why: The reason why the figures are acceptable.
        tolerance: The fraction of an accepted figure by which a measured one may exceed it.
        passes: Maximum number of measurements of a figure, which fails only if all of them are too high.
        figures: The accepted figures.
    """

    why: str
    tolerance: float
    passes: int
    figures: Mapping[str, float]

    def limit(self, name: str) -> float:
        """Return the upper limit of a figure. A figure that was not accepted always fails."""
        return self.figures[name] * (1 + self.tolerance) if name in self.figures else float("-inf")

    def over(self, measured: Mapping[str, float]) -> list[str]:
        """Return the names of the measured figures above their limits."""
        return [name for name, figure in measured.items() if figure > self.limit(name)]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one figure."""

    group: str
    name: str
    measured: float | None
    accepted: float | None
    ok: bool
    remark: str = ""


def read_accepted(file: Path = ACCEPTED) -> dict[str, Group]:
    """Read the groups of the file, by name."""
    return {name: Group(**group) for name, group in json.loads(file.read_text()).items()}


def write_accepted(measured: Mapping[str, Mapping[str, float]], file: Path = ACCEPTED) -> None:
    """Replace accepted figures by measured ones, for review."""
    groups = json.loads(file.read_text())
    for name, figures in measured.items():
        groups[name]["figures"] = {figure: round(value, 4) for figure, value in figures.items()}
    file.write_text(json.dumps(groups, indent=2) + "\n")


def judge(name: str, group: Group, measured: Mapping[str, float]) -> list[Verdict]:
    """Return a verdict on each figure that was measured or accepted."""
    verdicts = []
    for figure, value in measured.items():
        accepted = group.figures.get(figure)
        ok = value <= group.limit(figure)
        remark = ""
        if accepted is None:
            remark = "nobody accepted this figure"
        elif value < accepted * (1 - group.tolerance):
            remark = "better than accepted: accept it"
        verdicts.append(Verdict(name, figure, value, accepted, ok, remark))
    for figure, accepted in group.figures.items():
        if figure not in measured:
            verdicts.append(Verdict(name, figure, None, accepted, False, "was not measured"))
    return verdicts
