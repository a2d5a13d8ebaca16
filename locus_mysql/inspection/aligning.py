"""What two lists have in common, in order. Pure functions.

First their beginning and their end, then what occurs once in both, as in patience diff; between these again. That takes
little more time than reading the lists, and finds what was appended, edits in the middle, and a beginning that was
dropped. Where nothing occurs once, short pieces are compared thoroughly, and long ones not at all.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

#: Pieces up to this length on both sides are compared thoroughly, which takes the product of the two.
THOROUGH_LIMIT = 64

#: How far ahead a counterpart is looked for in longer ones.
NEAR = 4

#: How often pieces between pieces are looked at.
ROUNDS = 20

#: Where something stands in two lists; None if it is not in that one.
Pair: TypeAlias = tuple[int | None, int | None]


def key_of(value: Any) -> str:
    """A text that two JSON values have in common if they are the same: 1 and true are not, nor 1 and 1.0."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):  # no JSON, after all: the same as nothing else
        return f"{type(value)} {id(value)}"


def pairs(before: Sequence[str], after: Sequence[str], is_changed: Callable[[int, int], bool]) -> Iterator[Pair]:
    """The places of both lists, in order; where one was replaced, that of the list before comes first.

    Args:
        before: A key for each item of a list: equal for equal items.
        after: The same of another list.
        is_changed: Whether an item of the first, and one of the second that is not the same, are to be told as one.
    """
    start, other_start = 0, 0
    for end, other_end in [*common(before, after), (len(before), len(after))]:
        yield from _between(range(start, end), range(other_start, other_end), is_changed)
        if end < len(before):
            yield end, other_end
        start, other_start = end + 1, other_end + 1


def common(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Places of equal keys, rising in both lists."""
    found: list[tuple[int, int]] = []
    pieces = [(0, len(before), 0, len(after), 0)]
    while pieces:
        start, end, other_start, other_end, rounds = pieces.pop()
        while start < end and other_start < other_end and before[start] == after[other_start]:
            found.append((start, other_start))
            start, other_start = start + 1, other_start + 1
        while start < end and other_start < other_end and before[end - 1] == after[other_end - 1]:
            end, other_end = end - 1, other_end - 1
            found.append((end, other_end))
        if start == end or other_start == other_end:
            continue
        anchors = _anchors(before, after, range(start, end), range(other_start, other_end)) if rounds < ROUNDS else []
        found += anchors
        for place, other in [*anchors, (end, other_end)] if anchors else ():
            pieces.append((start, place, other_start, other, rounds + 1))
            start, other_start = place + 1, other + 1
        if not anchors and max(end - start, other_end - other_start) <= THOROUGH_LIMIT:
            matcher = SequenceMatcher(None, before[start:end], after[other_start:other_end], autojunk=False)
            for place, other, size in matcher.get_matching_blocks():
                found += [(start + place + step, other_start + other + step) for step in range(size)]
    return sorted(found)


def _anchors(before: Sequence[str], after: Sequence[str], here: range, there: range) -> list[tuple[int, int]]:
    """Places of keys that occur once in both pieces: the longest row of them that rises in both."""
    counts, other_counts = Counter(before[i] for i in here), Counter(after[i] for i in there)
    places = {after[i]: i for i in there if other_counts[after[i]] == 1}
    once = [(i, places[before[i]]) for i in here if counts[before[i]] == 1 and before[i] in places]
    # Patience sorting: the last of each row that is so long, with a way back.
    ends: list[int] = []
    last: list[int] = []
    back: list[int | None] = []
    for number, (_, other) in enumerate(once):
        length = bisect_left(ends, other)
        back.append(last[length - 1] if length else None)
        ends[length : length + 1] = [other]
        last[length : length + 1] = [number]
    row: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        row.append(once[at])
        at = back[at]
    return row[::-1]


def _between(here: range, there: range, is_changed: Callable[[int, int], bool]) -> Iterator[Pair]:
    """The places of a piece that have nothing in common."""
    if not here or not there:
        yield from ((place, None) for place in here)
        yield from ((None, other) for other in there)
        return
    near = THOROUGH_LIMIT if max(len(here), len(there)) <= THOROUGH_LIMIT else NEAR
    waiting = there.start
    gone: list[Pair] = []
    for place in here:
        ahead = range(waiting, min(waiting + near, there.stop))
        counterpart = next((other for other in ahead if is_changed(place, other)), None)
        if counterpart is None:
            gone.append((place, None))
            continue
        yield from gone
        gone = []
        yield from ((None, other) for other in range(waiting, counterpart))
        yield place, counterpart
        waiting = counterpart + 1
    yield from gone
    yield from ((None, other) for other in range(waiting, there.stop))
