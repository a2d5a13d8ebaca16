"""The framework's tests that do not run against our classes, with the reasons: patterns of their ids.

A reason must be true for every test that its pattern matches. ``docs/strands.md`` lists the differences.
"""

from __future__ import annotations

import re

LEFT_OUT: dict[str, str] = {}


def reason(test: str) -> str | None:
    """Return why a test does not run; None if it runs."""
    return next((why for pattern, why in LEFT_OUT.items() if re.search(pattern, test)), None)
