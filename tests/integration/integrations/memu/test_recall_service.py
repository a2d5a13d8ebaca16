"""memu-cli's `MemoryService` answers the same on our database and on its in-memory store, newest and oldest version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...commands import dsn_of
from ...conftest import MakeConfig
from .service_flow import both

ROOT = Path(__file__).resolve().parents[4]

#: The oldest version that is served.
OLDEST = "0.6.0"


def test_the_newest_version_answers_the_same_on_both(make_config: MakeConfig) -> None:
    theirs, ours = both(dsn_of(make_config()))
    assert ours == theirs
    assert len(ours) == 10
    assert ours[2]["segments"][0]["text"] == "likes tea"
    assert ours[-1] == [[["memory", "tastes"], ["memory", "work"]], [["skill", "tastes"]]]


@pytest.mark.slow
def test_the_oldest_version_answers_the_same_on_both(make_config: MakeConfig) -> None:
    folder = ROOT / ".cache" / f"memu-cli-{OLDEST}"
    if not (folder / "complete").exists():
        wanted = ("--target", str(folder), f"memu-cli=={OLDEST}")
        subprocess.run([sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", *wanted], check=True)
        (folder / "complete").touch()
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.integrations.memu.service_flow", dsn_of(make_config())],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    version, theirs, ours = json.loads(done.stdout)
    assert version == OLDEST
    assert ours == theirs
    assert len(ours) == 10
