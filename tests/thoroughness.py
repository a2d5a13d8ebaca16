"""`FULL`: whether this run of the tests is a full one, set by the environment."""

from __future__ import annotations

import os

#: Set by ``ci/test --all``: what one side of each kind shows runs on every one, and random runs go on longer.
FULL = os.environ.get("LOCUS_MYSQL_TEST_FULL") == "true"
