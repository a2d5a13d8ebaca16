"""These tests fetch the framework's source distributions: they are part of the full run only."""

from __future__ import annotations

from .....thoroughness import FULL

collect_ignore = [] if FULL else ["test_upstream.py"]
