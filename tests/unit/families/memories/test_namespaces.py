"""Paths have the order and the prefixes of their labels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from locus_mysql.families.memories.namespaces import begins_with, ends_with, labels_of, path_of
from locus_mysql.families.memories.statements.dialect import Range

labels = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=4)
namespaces = st.lists(labels, min_size=1, max_size=4).map(tuple)


@given(namespaces)
def test_labels_are_read_back(namespace: tuple[str, ...]) -> None:
    assert labels_of(path_of(namespace)) == namespace


@given(namespaces, namespaces)
def test_order_and_prefixes_are_those_of_the_labels(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (path_of(one) < path_of(other)) == (one < other)
    assert path_of(one).startswith(path_of(other)) == (one[: len(other)] == other)


@given(namespaces, namespaces)
def test_a_range_holds_what_begins_with_it(namespace: tuple[str, ...], prefix: tuple[str, ...]) -> None:
    for start in (prefix, namespace[:1], namespace):
        least, end = Range(path_of(start)).params.values()
        assert (least <= path_of(namespace) < end) == (namespace[: len(start)] == start)


@given(namespaces, st.data())
def test_a_wildcard_stands_for_one_label(namespace: tuple[str, ...], data: st.DataObject) -> None:
    pattern = [data.draw(st.sampled_from([label, "*"])) for label in namespace]
    assert begins_with(namespace, pattern)
    assert ends_with(namespace, pattern)
    assert begins_with((*namespace, "more"), pattern)
    assert ends_with(("more", *namespace), pattern)
    assert not begins_with(namespace[1:], pattern)
