"""How much a run of the tests does, as its environment says."""

from __future__ import annotations

import os

#: Set by ``ci/test --all``: tests run on every driver and side where else one of each kind does, and random runs are long.
FULL = os.environ.get("LOCUS_MYSQL_TEST_FULL") == "true"
