"""JSON containment and equality, as MySQL defines them, in time linear in the two values."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
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


def same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    return bool(canonical(one) == canonical(other))


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
