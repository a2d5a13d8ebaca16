"""Sets of transactions, as servers write them: GTID sets. No I/O.

MySQL has no function for the union of two sets, and calling one would be a round trip. The format:
https://dev.mysql.com/doc/refman/9.0/en/replication-gtids-concepts.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: The source of the numbers: the server or group, and the tag, which may be empty.
Source: TypeAlias = tuple[str, str]

#: First and last number of consecutive transactions.
Interval: TypeAlias = tuple[int, int]

#: Suffix of each number in ``gtid_owned``: the thread that owns it.
_OWNER = re.compile(r"#\d+")

_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True)
class GTIDs:
    """A set of transactions.

    Args:
        intervals: The disjoint intervals of each source, in order.
    """

    intervals: Mapping[Source, tuple[Interval, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> GTIDs:
        """Parse the set that a server returned as ``gtid_executed`` or ``gtid_owned``.

        Raises:
            ValueError: This is neither.
        """
        found: dict[Source, list[Interval]] = {}
        for entry in _OWNER.sub("", text).split(","):
            server, *parts = (part.strip().lower() for part in entry.split(":"))
            tag = ""
            for part in parts:
                interval = _INTERVAL.fullmatch(part)
                if interval is None:
                    tag = part
                else:
                    found.setdefault((server, tag), []).append((int(interval[1]), int(interval[2] or interval[1])))
            if server and not parts:
                raise ValueError("no set of GTIDs")
        return cls({source: _joined(intervals) for source, intervals in found.items()})

    def __or__(self, other: GTIDs) -> GTIDs:
        joined = dict(self.intervals)
        for source, intervals in other.intervals.items():
            joined[source] = _joined([*joined.get(source, ()), *intervals])
        return GTIDs(joined)

    def __bool__(self) -> bool:
        return bool(self.intervals)

    def __str__(self) -> str:
        """Return the set in the server's format."""
        return ",".join(
            ":".join([server, *([tag] if tag else []), *(f"{first}-{last}" for first, last in intervals)])
            for (server, tag), intervals in sorted(self.intervals.items())
        )


def _joined(intervals: list[Interval]) -> tuple[Interval, ...]:
    joined: list[Interval] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
