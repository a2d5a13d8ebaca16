"""Each driver alone under pytest-benchmark, which can compare runs: the suite in ``bench/test_latency.py``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .markdown import markdown_table

ROOT = Path(__file__).parent.parent
STOP_TIMEOUT_S = 20


def measure(dsn: str, quick: bool = False) -> dict[str, Any]:
    """Run the suite; ``quick``: ten messages only.

    Raises:
        RuntimeError: A test failed; the message is pytest's output.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [sys.executable, "-m", "pytest", "bench/test_latency.py", "-q", "--benchmark-enable"]
        command += [f"--benchmark-json={results}", *(["-k", "10-messages"] if quick else [])]
        output = _run(command, {**os.environ, "LOCUS_MYSQL_TEST_DSN": dsn})
        if output is not None:
            raise RuntimeError(output)
        measured = json.loads(results.read_text())["benchmarks"]
    return {
        "tests": [
            {
                "test": one["name"].removeprefix("test_"),
                "median_ms": one["stats"]["median"] * 1000,
                "iqr_ms": one["stats"]["iqr"] * 1000,
                "rounds": one["stats"]["rounds"],
            }
            for one in measured
        ]
    }


def _run(command: list[str], environment: dict[str, str]) -> str | None:
    """Run pytest; return its output if it failed, else None. It stops with this process."""
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        raise
    return output if process.returncode != 0 else None


def table(result: dict[str, Any]) -> str:
    """Return a table with median and spread of each test."""
    rows = [
        [one["test"], f"{one['median_ms']:.2f}", f"{one['iqr_ms']:.2f}", str(one["rounds"])] for one in result["tests"]
    ]
    return markdown_table(["test", "median, ms", "interquartile range, ms", "rounds"], rows)
