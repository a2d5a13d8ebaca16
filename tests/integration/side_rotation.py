"""`rotated`: selects one side for each test in short runs. In full runs, a test runs on all of its sides."""

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
    enough that each operation is tested on one side, and each side by some of the tests. The side depends only on the
    test's name, and stays the same from run to run. Tests of behaviour that differs between sides run on all of their
    sides: those whose sides are no rotation, and those marked ``both_sides``.

    Args:
        items: All collected tests.
        rotations: Groups of names of sides, as the ids of tests contain them. A test whose sides are exactly one group
            runs on one side of that group.
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
