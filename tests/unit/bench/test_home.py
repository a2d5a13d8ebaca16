"""Benchmarks write nothing outside of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

DRAW = """
from matplotlib.figure import Figure
figure = Figure()
figure.subplots().set_title("text")
figure.savefig("chart.svg")
"""


def test_drawing_a_chart_leaves_the_home_folder_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    elsewhere = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR")
    environment = {name: value for name, value in os.environ.items() if name not in elsewhere}
    subprocess.run(
        [sys.executable, "-c", f"import bench.charts\n{DRAW}"],
        cwd=tmp_path,
        env={**environment, "HOME": str(home), "PYTHONPATH": str(ROOT)},
        check=True,
        timeout=120,
    )
    assert (tmp_path / "chart.svg").exists()
    assert list(home.rglob("*")) == []
