"""The factor of salience follows memU's formula."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_mysql.integrations.memu.searching import salience_factor

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "last", "factor"),
    [
        (3, NOW.isoformat(), math.log(4)),
        (3, (NOW - timedelta(days=30)).isoformat(), math.log(4) * math.exp(-0.693)),
        (1, None, math.log(2) / 2),
        (None, None, math.log(2) / 2),
        (None, "2026-01-01T00:00:00", math.log(2)),
        (None, "2026-01-01", math.log(2)),
        (None, "2026-01-01T01:00:00+01:00", math.log(2)),
        (0, NOW.isoformat(), 0.0),
        (-5, NOW.isoformat(), 0.0),
        ("many", "never", math.log(2) / 2),
        (True, 5, math.log(2) / 2),
        (2.5, NOW.isoformat(), math.log(3.5)),
    ],
)
def test_the_factor_of_salience(count: Any, last: Any, factor: float) -> None:
    given = [None if value is None else json.dumps(value) for value in (count, last)]
    assert salience_factor(*given, NOW, 30.0) == pytest.approx(factor)


def test_a_time_far_in_the_future_is_no_overflow() -> None:
    assert math.isfinite(salience_factor(None, '"9999-01-01"', NOW, 0.001))
