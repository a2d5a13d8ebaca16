"""Record the layouts with new numbers: ``python -m tests.layouts``. Those of recorded numbers stay as they are."""

from __future__ import annotations

from . import fingerprints

if __name__ == "__main__":
    fingerprints.record()
