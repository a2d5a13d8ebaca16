"""NumPy, if it is installed (`locus-mysql[vectors]`)."""

from __future__ import annotations

from typing import Any

from ....engine.logs import CALLS

np: Any
try:
    import numpy as np
except ImportError:  # pragma: no cover - depends on what is installed
    np = None

_said: set[str] = set()


def say_if_missing() -> None:
    """Tell once, in the log, that searches are slower than they could be."""
    if np is None and not _said:
        _said.add("slow")
        CALLS.warning(
            "NumPy is not installed: searches by meaning give the same results, but more slowly. Install "
            "locus-mysql[vectors]."
        )
