"""Templates of statements: `fill` and `Statements`."""

from __future__ import annotations

import pytest

from locus_mysql.dialect.template import TEXT_LIMIT_CHARACTERS, TEXTS_LIMIT, Statements, fill, placeholders


class Some(Statements):
    """Statements whose texts the tests can read."""

    def text(self, template: str, **pieces: str) -> str:
        return self._text(template, **pieces)

    @property
    def remembered(self) -> int:
        return len(self._texts)


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


def test_a_piece_of_a_call_never_stands_for_a_table() -> None:
    with pytest.raises(ValueError, match="shared"):
        Some({"t": "`p_t`"}).text("{t}", t="x")


def test_filled_templates_are_cached_by_their_pieces() -> None:
    some = Some({"t": "`p_t`"})
    first = some.text("\nSELECT {t}{which}\n", which=" WHERE a")
    assert first == "SELECT `p_t` WHERE a"
    assert some.text("\nSELECT {t}{which}\n", which=" WHERE a") is first
    assert some.text("\nSELECT {t}{which}\n", which="") == "SELECT `p_t`"
    assert some.remembered == 2


def test_the_cache_of_templates_is_bounded() -> None:
    some = Some({})
    for number in range(2 * TEXTS_LIMIT + 1):
        assert some.text("{n}", n=str(number)) == str(number)
        assert some.remembered <= TEXTS_LIMIT
    some = Some({})
    assert some.text("{n}", n="x" * (TEXT_LIMIT_CHARACTERS + 1))
    assert some.remembered == 0


def test_placeholders_writes_the_requested_number_of_placeholders() -> None:
    assert placeholders(3) == "%s, %s, %s"
    assert placeholders(2, "(%s, %s)") == "(%s, %s), (%s, %s)"
    assert placeholders(0) == ""
