"""These tests fetch LangGraph's source distributions and take minutes: they are part of the full run only."""

from __future__ import annotations

from .....thoroughness import FULL

collect_ignore = [] if FULL else ["test_upstream.py"]
