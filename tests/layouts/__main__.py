"""Record the current layouts, before the release of a version: ``python -m tests.layouts``.

It refuses to do so for a version that CHANGELOG.md does not call unreleased: the layouts of a released version stay as
they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

from locus_mysql import __version__

from . import fingerprints

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def main() -> int:
    if f"## [{__version__}] - unreleased" not in CHANGELOG.read_text():
        print(f"CHANGELOG.md does not say that {__version__} is unreleased. Raise the version first.", file=sys.stderr)
        return 1
    fingerprints.record()
    return 0


if __name__ == "__main__":
    sys.exit(main())
