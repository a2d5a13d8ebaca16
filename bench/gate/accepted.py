"""The accepted figures, and whether what was measured is as good."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ACCEPTED = Path(__file__).parent.parent / "accepted.json"


@dataclass(frozen=True)
class Group:
    """Figures of one kind, as ``accepted.json`` has them. Of all figures less is better.

    Args:
        why: Why they may be what they are, and no better.
        tolerance: The part of an accepted figure by which one may be over it.
        passes: How often a figure may be measured: it fails only if it is over each time.
        figures: What was accepted.
    """

    why: str
    tolerance: float
    passes: int
    figures: Mapping[str, float]

    def limit(self, name: str) -> float:
        """The most that a figure may be; a figure that nobody accepted may be nothing."""
        return self.figures[name] * (1 + self.tolerance) if name in self.figures else float("-inf")

    def over(self, measured: Mapping[str, float]) -> list[str]:
        """The names of measured figures that are over their limits."""
        return [name for name, figure in measured.items() if figure > self.limit(name)]


@dataclass(frozen=True)
class Verdict:
    """One figure and what became of it."""

    group: str
    name: str
    measured: float | None
    accepted: float | None
    ok: bool
    remark: str = ""


def read_accepted(file: Path = ACCEPTED) -> dict[str, Group]:
    """The groups of the file by name."""
    return {name: Group(**group) for name, group in json.loads(file.read_text()).items()}


def write_accepted(measured: Mapping[str, Mapping[str, float]], file: Path = ACCEPTED) -> None:
    """Put measured figures in place of the accepted ones, for somebody to review."""
    groups = json.loads(file.read_text())
    for name, figures in measured.items():
        groups[name]["figures"] = {figure: round(value, 4) for figure, value in figures.items()}
    file.write_text(json.dumps(groups, indent=2) + "\n")


def judge(name: str, group: Group, measured: Mapping[str, float]) -> list[Verdict]:
    """A verdict on each figure that was measured or accepted."""
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
