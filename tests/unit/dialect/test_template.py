"""Templates of statements: `fill` and `placeholders`."""

from __future__ import annotations

import pytest

from locus_mysql.dialect.template import fill, placeholders


def test_placeholders_are_filled_recursively() -> None:
    pieces = {"t": "`p_t`", "OF.x": "x.a = {t}.a  \n"}
    assert (
        fill("SELECT {t}.b FROM {t} WHERE {OF.x} AND b", pieces)
        == "SELECT `p_t`.b FROM `p_t` WHERE x.a = `p_t`.a AND b"
    )


def test_braces_that_hold_no_name_stay() -> None:
    assert fill("REGEXP '^[0-9]{1,19}$'", {}) == "REGEXP '^[0-9]{1,19}$'"


def test_a_placeholder_without_a_piece_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("{nothing}", {})


def test_placeholders_writes_the_requested_number_of_placeholders() -> None:
    assert placeholders(3) == "%s, %s, %s"
    assert placeholders(2, "(%s, %s)") == "(%s, %s), (%s, %s)"
    assert placeholders(0) == ""
