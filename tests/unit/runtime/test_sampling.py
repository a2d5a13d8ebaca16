"""A random sample of calls is selected."""

from __future__ import annotations

import pytest

from locus_mysql.runtime import sampling


@pytest.mark.parametrize(
    ("drawn", "happening"),
    [(0.0, [1, 2, 32, 64]), (1 / 64, [1, 2, 32]), (1 / 33, [1, 2, 32]), (0.5, [1]), (0.999, [1])],
)
def test_sampling_selects_one_in_n(monkeypatch: pytest.MonkeyPatch, drawn: float, happening: list[int]) -> None:
    monkeypatch.setattr(sampling, "random", lambda: drawn)
    assert [one_in for one_in in (1, 2, 32, 64) if sampling.one_in(one_in)] == happening
