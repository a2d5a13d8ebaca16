"""JSON containment and equality as MySQL defines them, in linear time; keys to find candidates; and globs: `matcher`.

Metadata is indexed and looked up by 64-bit keys: `index_keys` and `lookup_keys`. A key represents a scalar and the
names on its path; arrays on the path are ignored, as an array contains what one of its elements contains. So all
metadata that contains a value has the keys of each scalar in the value, and one of them is enough for the lookup. An
array or object without scalars has a key for its kind. Candidates are then compared exactly.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInput

#: Maximum number of comparisons of arrays and objects in one query, beyond those allowed for each searched element.
COMPARISONS_LIMIT = 200_000

#: Comparisons that each element of a searched array adds to that maximum.
COMPARISONS_PER_ELEMENT = 4

#: Number of wanted objects or arrays above which the elements of the searched array are indexed by their leaves.
INDEXED_FROM = 4

# Leaves that represent an array or an object; no scalar has this form.
_ARRAY, _OBJECT = ("\0array",), ("\0object",)


#: Most keys of one checkpoint: a row of a multi-valued index holds at most 1,604 integers, measured on MySQL 9.7.
INDEXED_KEYS_LIMIT = 1_000

#: Represents all metadata of a checkpoint with too many top-level names.
TOO_MANY_NAMES = 0

# Instead of a scalar; no value has this form.
_ARRAY_LEAF, _OBJECT_LEAF, _TOO_MANY = ["\0array"], ["\0object"], ["\0many"]


def contains(target: Any, candidate: Any) -> bool:
    """Return whether a JSON value contains another, as ``JSON_CONTAINS(target, candidate)`` defines it.

    A scalar contains an equal one; an array contains an array if it contains each of its elements, and anything else if
    one of its elements does; an object contains an object if it has each of its keys with a value that contains it.
    https://dev.mysql.com/doc/refman/9.0/en/json-search-functions.html#function_json-contains

    Raises:
        InvalidInput: See `Containment`.
    """
    return Containment(candidate).within(target)


class Containment:
    """Decides of many values whether they contain one candidate. See `contains`.

    Scalars are looked up in sets. Whether one of many objects contains another one has no general solution that is much
    faster than comparing all pairs; so objects and arrays in arrays are indexed by their leaves, only those that have
    the rarest leaf of the candidate are compared, and all comparisons are counted.

    Args:
        candidate: The value to find.
        comparisons: Comparisons of arrays and objects allowed for all values together, beyond
            `COMPARISONS_PER_ELEMENT` for each element of their arrays.
    """

    def __init__(self, candidate: Any, comparisons: int = COMPARISONS_LIMIT) -> None:
        self._candidate = candidate
        self._left = comparisons
        self._wanted: dict[int, _Wanted] = {}
        self._arrays: dict[int, _Array] = {}

    def within(self, target: Any) -> bool:
        """Return whether a value contains the candidate.

        Raises:
            InvalidInput: It takes more comparisons than allowed.
        """
        try:
            return self._contains(target, self._candidate)
        finally:
            self._arrays.clear()

    def _contains(self, target: Any, candidate: Any) -> bool:
        if isinstance(target, list):
            return self._in_array(target, candidate)
        if isinstance(target, dict):
            return isinstance(candidate, dict) and self._in_object(target, candidate)
        return not isinstance(candidate, list | dict) and scalar_key(target) == scalar_key(candidate)

    def _in_object(self, target: Mapping[str, Any], candidate: Mapping[str, Any]) -> bool:
        for name, wanted in candidate.items():
            self._count(1)
            if name not in target or not self._contains(target[name], wanted):
                return False
        return True

    def _in_array(self, target: list[Any], candidate: Any) -> bool:
        array = self._arrays.get(id(target))
        if array is None:
            array = self._arrays[id(target)] = _Array(target)
            self._left += COMPARISONS_PER_ELEMENT * len(target)
        if isinstance(candidate, dict):
            return self._one_of(array.objects.all, candidate)
        if not isinstance(candidate, list):
            return scalar_key(candidate) in array.scalars
        wanted = self._wanted.get(id(candidate))
        if wanted is None:
            wanted = self._wanted[id(candidate)] = _Wanted.of(candidate)
        self._count(len(wanted.scalars) // 16)
        if wanted.scalars and not wanted.scalars <= array.scalars:
            return False
        for elements, parts in ((array.objects, wanted.objects), (array.arrays, wanted.arrays)):
            for part in parts:
                if not self._one_of(elements.holding(part) if len(parts) > INDEXED_FROM else elements.all, part):
                    return False
        return True

    def _one_of(self, elements: Sequence[Any], candidate: Any) -> bool:
        for element in elements:
            self._count(1)
            if self._contains(element, candidate):
                return True
        return False

    def _count(self, comparisons: int) -> None:
        self._left -= comparisons
        if self._left < 0:
            raise InvalidInput(
                "The value is too much to look for: it has many arrays or objects within arrays, each of which would "
                f"have to be compared with very many stored ones (over {COMPARISONS_LIMIT} comparisons). Look for "
                "fewer of them, or for values that distinguish the wanted ones."
            )


class _Wanted(NamedTuple):
    """The elements of a wanted array, each once."""

    scalars: frozenset[Hashable]
    objects: Sequence[Any]
    arrays: Sequence[Any]

    @classmethod
    def of(cls, elements: Sequence[Any]) -> _Wanted:
        containers: dict[Hashable, Any] = {}
        forms: dict[Hashable, int] = {}
        scalars = set()
        for element in elements:
            if isinstance(element, list | dict):
                containers.setdefault(_form(element, forms), element)
            else:
                scalars.add(scalar_key(element))
        found = containers.values()
        return cls(
            frozenset(scalars),
            [one for one in found if isinstance(one, dict)],
            [one for one in found if isinstance(one, list)],
        )


class _Array:
    """A searched array.

    Args:
        elements: Its elements.
    """

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements
        self._scalars: set[Hashable] | None = None
        self._objects: _Elements | None = None
        self._arrays: _Elements | None = None

    @property
    def scalars(self) -> set[Hashable]:
        """The scalars in it, and in nested arrays."""
        if self._scalars is None:
            self._scalars = {scalar_key(one) for one in _flat(self._elements) if not isinstance(one, dict)}
        return self._scalars

    @property
    def objects(self) -> _Elements:
        """The objects in it, and in nested arrays."""
        if self._objects is None:
            self._objects = _Elements([one for one in _flat(self._elements) if isinstance(one, dict)])
        return self._objects

    @property
    def arrays(self) -> _Elements:
        """The arrays in it."""
        if self._arrays is None:
            self._arrays = _Elements([one for one in self._elements if isinstance(one, list)])
        return self._arrays


class _Elements:
    """Objects or arrays, indexed by their leaves on first use.

    A container of a value has each leaf of the value, under the same names; the path does not include arrays.

    Args:
        all: The objects or arrays.
    """

    def __init__(self, all: Sequence[Any]) -> None:
        self.all = all
        self._index: dict[Hashable, list[Any]] | None = None

    def holding(self, candidate: Any) -> Sequence[Any]:
        """Return those that have the rarest of a candidate's leaves."""
        if self._index is None:
            self._index = {}
            for element in self.all:
                for leaf in set(_leaves(element)):
                    self._index.setdefault(leaf, []).append(element)
        return min((self._index.get(leaf, ()) for leaf in set(_leaves(candidate))), key=len)


def canonical(value: Any) -> Any:
    """Return a form that compares equal exactly for equal JSON values: booleans differ from numbers, 1.0 is 1."""
    if isinstance(value, bool):
        return ["\0bool", int(value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return ["\0list", *map(canonical, value)]
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    return value


def scalar_key(value: Any) -> Hashable:
    """Return a hashable key that is equal for two scalars exactly if they are the same JSON."""
    if isinstance(value, str):
        return value
    form = canonical(value)
    if form != form:  # NaN, which a set would find by identity
        return object()
    return tuple(form) if isinstance(form, list) else form


def _flat(elements: list[Any]) -> Iterator[Any]:
    """Yield the scalars and objects in an array and in nested arrays."""
    pending = [elements]
    while pending:
        for one in pending.pop():
            if isinstance(one, list):
                pending.append(one)
            else:
                yield one


def _leaves(value: Any) -> Iterator[Hashable]:
    """Yield the scalars in a value, and the kinds of all arrays and objects, each with a number for its path."""
    pending: list[tuple[int, Any]] = [(0, value)]
    while pending:
        path, one = pending.pop()
        if isinstance(one, dict):
            yield path, _OBJECT
            pending += [(hash((path, name)), part) for name, part in one.items()]
        elif isinstance(one, list):
            yield path, _ARRAY
            pending += [(path, part) for part in one]
        else:
            yield path, scalar_key(one)


def _form(value: Any, forms: dict[Hashable, int]) -> Hashable:
    """Return a number for an array or object, or a scalar's key: equal for equal values, in linear time."""
    if isinstance(value, list):
        form: Hashable = (_ARRAY, *(_form(part, forms) for part in value))
    elif isinstance(value, dict):
        form = (_OBJECT, frozenset((name, _form(part, forms)) for name, part in value.items()))
    else:
        return scalar_key(value)
    return (_ARRAY, forms.setdefault(form, len(forms)))


def index_keys(metadata: dict[str, Any]) -> list[int]:
    """Return the keys of everything in metadata, at most `INDEXED_KEYS_LIMIT`.

    If there are more, the pairs with most of them have one key each for the name alone.
    """
    if len(metadata) > INDEXED_KEYS_LIMIT:
        return [TOO_MANY_NAMES]
    keys = {name: _some_keys(name, value) for name, value in metadata.items()}
    count = sum(map(len, keys.values()))
    for name in sorted(keys, key=lambda name: len(keys[name]), reverse=True):
        if count <= INDEXED_KEYS_LIMIT:
            break
        count -= len(keys[name]) - 1
        keys[name] = {_key(_path(name), _TOO_MANY)}
    return sorted(set().union(*keys.values()))


def lookup_keys(name: str, value: Any) -> list[int]:
    """Return keys of which all metadata with ``name: value`` has at least one, and little other metadata does."""
    # The longest of several is the most likely to be rare.
    path, leaf = max(_leaves_with_paths(_path(name), value), key=lambda found: len(_text(found[1])))
    return [_key(path, leaf), _key(_path(name), _TOO_MANY), TOO_MANY_NAMES]


def _some_keys(name: str, value: Any) -> set[int]:
    """Return the keys of one pair; collecting stops once they are too many."""
    keys: set[int] = set()
    for path, leaf in _leaves_with_paths(_path(name), value, containers=True):
        keys.add(_key(path, leaf))
        if len(keys) > INDEXED_KEYS_LIMIT:
            break
    return keys


def _leaves_with_paths(path: Any, value: Any, *, containers: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the scalars in a value, each with its path; and arrays and objects: all of them, or only empty ones."""
    if isinstance(value, dict):
        if containers or not value:
            yield path, _OBJECT_LEAF
        for name, member in value.items():
            yield from _leaves_with_paths(_path(name, path), member, containers=containers)
    elif isinstance(value, list):
        if containers or not value:
            yield path, _ARRAY_LEAF
        for element in value:
            yield from _leaves_with_paths(path, element, containers=containers)
    else:
        yield path, canonical(value)


def _path(name: str, parent: Any = None) -> Any:
    """Return a hasher that has read the names on the path to a value."""
    if parent is None:
        return hashlib.sha256(f"[{_text(name)}".encode(), usedforsecurity=False)
    path = parent.copy()
    path.update(f",{_text(name)}".encode())
    return path


def _key(path: Any, leaf: Any) -> int:
    """The first 64 bits of the SHA-256 of the JSON array of the names and the scalar."""
    whole = path.copy()
    whole.update(f",{_text(leaf)}]".encode())
    return int.from_bytes(whole.digest()[:8]) or 1


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks whether a text matches a glob. ``*`` matches any text, ``?`` one character.

    The text between two stars is matched at its first position only (an atomic group), as no later one can match more.
    With backtracking, ten stars would take hours on a text of 500 characters. A pattern that is longer than the text
    is never compiled.
    """
    least = len(pattern) - pattern.count("*")
    compiled: list[re.Pattern[str]] = []

    def matches(text: str) -> bool:
        if len(text) < least:
            return False
        if not compiled:
            compiled.append(_compile(pattern))
        return compiled[0].fullmatch(text) is not None

    return matches


def _compile(pattern: str) -> re.Pattern[str]:
    first, *others = (_literal(part) for part in re.sub(r"\*+", "*", pattern).split("*"))
    *between, last = others or [""]
    whole = first + "".join(f"(?>.*?{part})" for part in between) + (f".*{last}" if others else "")
    return re.compile(whole, re.DOTALL)


def _literal(part: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in part)
