"""NumPy, if it is installed (`locus-mysql[vectors]`)."""

from __future__ import annotations

from typing import Any

from ....engine.logs import CALLS
from ....extras import install_command

np: Any
try:
    import numpy as np
except ImportError:  # pragma: no cover - depends on what is installed
    np = None

_warned: set[str] = set()


def warn_if_numpy_is_missing() -> None:
    """Log once that searches are slower without NumPy."""
    if np is None and not _warned:
        _warned.add("slow")
        CALLS.warning(
            "NumPy is not installed: searches by meaning give the same results, but more slowly. Run %s.",
            install_command("vectors"),
        )
