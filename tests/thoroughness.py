"""`FULL`: whether this run of the tests is a full one, set by the environment."""

from __future__ import annotations

import os

#: Set by ``ci/test --all``: tests that else run on one side of each kind run on every side, and random runs are longer.
FULL = os.environ.get("LOCUS_MYSQL_TEST_FULL") == "true"
