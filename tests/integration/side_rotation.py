"""`rotated`: tests that run on several sides in full runs, and in short runs on one, each time another."""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Sequence

import pytest

_SIDE = re.compile(r"(mysql-connector|aiomysql|asyncmy|pymysql)-(async|sync)")


def rotated(items: Sequence[pytest.Item], *rotations: Sequence[str]) -> set[str]:
    """Return the ids of the tests to leave out, so that each test runs on one side of its rotation.

    Every operation is a generator, written once; the sides differ only in the short loops that drive it. So it is
    enough that each operation is tested on one side, and each side by its part of the tests. Which side it is depends
    on the test's name alone, and stays the same from run to run. Tests of what the sides do differently run on all of
    their sides: those that name sides of no rotation, and those marked ``both_sides``.

    Args:
        items: All collected tests.
        rotations: The names of sides among which tests rotate that run on exactly these, as ids of tests contain them.
    """
    sides_of: dict[str, dict[str, str]] = defaultdict(dict)
    for item in items:
        if (match := _SIDE.search(item.name)) and not item.get_closest_marker("both_sides"):
            sides_of[_SIDE.sub("*", item.nodeid, count=1)][match[0]] = item.nodeid
    left_out: set[str] = set()
    for test, on_side in sides_of.items():
        for sides in rotations:
            if on_side.keys() == set(sides):
                chosen = sides[zlib.crc32(test.encode()) % len(sides)]
                left_out.update(on_side[side] for side in sides if side != chosen)
    return left_out
