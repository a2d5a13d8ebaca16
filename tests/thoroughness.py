"""How much a run of the tests does, as its environment says: in full, in short, or with one driver only."""

from __future__ import annotations

import os

#: ``ci/test --all`` sets it: every driver and side where one of each kind would do, and many examples of random runs.
FULL = os.environ.get("LOCUS_MYSQL_TEST_FULL") == "true"

#: ``ci/test --quick`` sets it: the one driver that the tests which run on every driver run on. None means on every one.
ONLY_DRIVER = os.environ.get("LOCUS_MYSQL_TEST_DRIVER") or None
