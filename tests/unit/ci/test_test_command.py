"""The lists of tests in ``ci/test`` name files and folders that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def paths_in(script: str) -> list[str]:
    """Return the paths below ``tests`` in a script, with their braces expanded as bash does."""
    found = {word for line in script.splitlines() for word in re.findall(r"tests/[\w/{},.]*\w\}?(?:\.py)?", line)}
    expanded = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {' '.join(sorted(found))}"], capture_output=True, text=True, check=True
    )
    return expanded.stdout.split()


def test_every_path_of_tests_exists() -> None:
    found = paths_in((ROOT / "ci/test").read_text())
    assert {"tests/soak", "tests/integration/test_engines.py", "tests/integration/families/working"} <= {*found}
    assert [path for path in found if not (ROOT / path).exists()] == []


def test_a_missing_path_is_found_between_braces() -> None:
    assert paths_in("(tests/unit/{a,b_c}.py tests/x)") == ["tests/unit/a.py", "tests/unit/b_c.py", "tests/x"]
