"""Aligns two lists: finds their common items, in order. Pure functions.

Matches the common prefix and suffix, then the items that occur once in both lists, as patience diff does, and repeats
that in the pieces between. This takes little more time than reading the lists, and finds appended items, edits in the
middle, and a dropped beginning. Pieces without unique common items are compared exhaustively if they are short, up to a
budget; long ones are not compared.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

#: Pieces up to this length on both sides are compared exhaustively, in time proportional to the product of the lengths.
THOROUGH_LIMIT = 64

#: How many items ahead longer pieces are searched for a counterpart.
NEAR = 4

#: The budget of one alignment: comparisons of items, and the sum of the products of the lengths of exhaustively
#: compared pieces (16 of the longest ones). Prefixes, suffixes and unique common items use none of it.
COMPARISONS_LIMIT, CELLS_LIMIT = 20_000, 16 * THOROUGH_LIMIT**2

#: Greatest depth of pieces between pieces.
ROUNDS = 20

#: The positions of an item in two lists; None if a list does not contain it.
Pair: TypeAlias = tuple[int | None, int | None]


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode

#: Length beyond which a key is replaced by a digest.
_LONG_KEY = 80


class Keys:
    """Keys of JSON values: equal for identical values. 1 and true are different, and so are 1 and 1.0.

    The key of an array or object is a text or a digest of the keys of its parts, and each key is computed once. So the
    keys of a value take time linear in its size, however deep it is. The values must live as long as this object.

    Args:
        whole: Whether the key of an array or object is that of its whole text. That is faster for one key of a value of
            very many parts, but takes the time of its size again for each part that contains it.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._known: dict[int, str] = {}
        self._whole = whole

    def of(self, value: Any) -> str:
        """Return the key of a value."""
        try:
            return self._of(value)
        except (TypeError, ValueError, RecursionError):  # not JSON: different from everything else
            return f"{type(value)} {id(value)}"

    def _of(self, value: Any) -> str:
        if not isinstance(value, Mapping | list):
            return _encode(value)
        key = self._known.get(id(value))
        if key is None:
            form: Any = value
            if not self._whole:
                form = (
                    {name: self._short(part) for name, part in value.items()}
                    if isinstance(value, Mapping)
                    else [self._short(part) for part in value]
                )
            key = f"\0{_encode(form)}"
            if len(key) > _LONG_KEY:
                text = key.encode("utf-8", "surrogatepass")
                key = f"\0{hashlib.blake2b(text, digest_size=16).hexdigest()}"
            self._known[id(value)] = key
        return key

    def _short(self, part: Any) -> Any:
        """Return the short form of a part. No other value has its form, as arrays are always replaced."""
        return [self._of(part)] if isinstance(part, Mapping | list) else part


def key_of(value: Any) -> str:
    """Return the key of one value. See `Keys`."""
    return Keys().of(value)


class ComparisonBudget:
    """The remaining budget of a comparison of two states. When it is used up, the difference is coarse.

    Args:
        comparisons: Comparisons of two items with different keys.
        cells: The sum of the products of the lengths of exhaustively compared pieces.
    """

    def __init__(self, comparisons: int = COMPARISONS_LIMIT, cells: int = CELLS_LIMIT) -> None:
        self._comparisons = comparisons
        self._cells = cells
        #: Whether a comparison was skipped.
        self.used_up = False

    def may_compare(self, cost: int = 1) -> bool:
        """Return whether the budget allows to compare two items."""
        self._comparisons -= cost
        self.used_up = self.used_up or self._comparisons < 0
        return self._comparisons >= 0

    def may_align(self, cells: int) -> bool:
        """Return whether the budget allows to compare two pieces exhaustively."""
        self._cells -= cells
        self.used_up = self.used_up or self._cells < 0
        return self._cells >= 0


def pairs(
    before: Sequence[str],
    after: Sequence[str],
    is_changed: Callable[[int, int], bool],
    budget: ComparisonBudget | None = None,
) -> Iterator[Pair]:
    """Return the positions of the items of both lists, in order; of replaced items, the old one comes first.

    Args:
        before: A key for each item of the first list: equal for equal items.
        after: The keys of the second list.
        is_changed: Returns whether an item of the second list is a changed version of one of the first.
        budget: The budget.
    """
    budget = budget or ComparisonBudget()
    start, other_start = 0, 0
    for end, other_end in [*common(before, after, budget), (len(before), len(after))]:
        yield from _between(range(start, end), range(other_start, other_end), is_changed, budget)
        if end < len(before):
            yield end, other_end
        start, other_start = end + 1, other_end + 1


def common(
    before: Sequence[str], after: Sequence[str], budget: ComparisonBudget | None = None
) -> list[tuple[int, int]]:
    """Return the positions of equal keys, ascending in both lists."""
    budget = budget or ComparisonBudget()
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
        for index, other in [*anchors, (end, other_end)] if anchors else ():
            pieces.append((start, index, other_start, other, rounds + 1))
            start, other_start = index + 1, other + 1
        rows, columns = end - start, other_end - other_start
        if not anchors and max(rows, columns) <= THOROUGH_LIMIT and budget.may_align(rows * columns):
            matcher = SequenceMatcher(None, before[start:end], after[other_start:other_end], autojunk=False)
            for index, other, size in matcher.get_matching_blocks():
                found += [(start + index + step, other_start + other + step) for step in range(size)]
    return sorted(found)


def _anchors(before: Sequence[str], after: Sequence[str], piece: range, other_piece: range) -> list[tuple[int, int]]:
    """Return the longest sequence of keys that occur once in both pieces, ascending in both."""
    counts, other_counts = Counter(before[i] for i in piece), Counter(after[i] for i in other_piece)
    unique = {after[i]: i for i in other_piece if other_counts[after[i]] == 1}
    once = [(i, unique[before[i]]) for i in piece if counts[before[i]] == 1 and before[i] in unique]
    # Patience sorting: the last element of the best sequence of each length, with links back.
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


def _between(
    piece: range, other_piece: range, is_changed: Callable[[int, int], bool], budget: ComparisonBudget
) -> Iterator[Pair]:
    """Return the positions of a piece without common items."""
    if not piece or not other_piece:
        yield from ((index, None) for index in piece)
        yield from ((None, other) for other in other_piece)
        return
    near = THOROUGH_LIMIT if max(len(piece), len(other_piece)) <= THOROUGH_LIMIT else NEAR
    waiting = other_piece.start
    gone: list[Pair] = []
    for index in piece:
        ahead = range(waiting, min(waiting + near, other_piece.stop))
        counterpart = next((other for other in ahead if budget.may_compare() and is_changed(index, other)), None)
        if counterpart is None:
            gone.append((index, None))
            continue
        yield from gone
        gone = []
        yield from ((None, other) for other in range(waiting, counterpart))
        yield index, counterpart
        waiting = counterpart + 1
    yield from gone
    yield from ((None, other) for other in range(waiting, other_piece.stop))
