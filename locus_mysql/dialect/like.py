"""Globs as patterns of LIKE."""

from __future__ import annotations


def like(glob: str) -> str:
    """Return the LIKE pattern of a glob in which only ``*`` and ``?`` have a meaning."""
    escaped = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")
