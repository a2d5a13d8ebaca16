"""The cost of listing very many namespaces."""

from __future__ import annotations

from typing import Any

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.interface import Result
from locus_mysql.families.memories.reading import PAGE_SIZE, ReadingOperations
from tests.growth import assert_linear, steps_of

from ...driven import Driven

READING = ReadingOperations(MySQLConfig(host="h"))


def _listed(count: int, **options: Any) -> Any:
    """List this many namespaces, page by page."""
    paths = [(b"many\0%06d\0x\0" % number,) for number in range(count)]
    driven = Driven(READING.list_namespaces("t", **options))
    next(driven)
    try:
        for start in range(0, count + 1, PAGE_SIZE):
            driven.send([Result(paths[start : start + PAGE_SIZE])])
    except StopIteration as done:
        return done.value
    raise AssertionError("It reads on.")


def test_listing_namespaces_is_linear_in_their_number() -> None:
    for options in ({"limit": 10**6}, {"limit": 10, "offset": 10**6}, {"limit": 10, "max_depth": 1}):
        pattern: dict[str, Any] = {"prefixes": [("many", "*")], "suffixes": [("*", "x")], **options}
        assert_linear(lambda size, pattern=pattern: steps_of(_listed, size, **pattern), 1_000)


def test_listing_namespaces_is_linear_in_the_number_of_patterns() -> None:
    def cost(size: int) -> int:
        return steps_of(_listed, 10, prefixes=[("many",)] * size, suffixes=[("x",)] * size, limit=10)

    assert_linear(cost, 100)
