"""Numbers of layouts: comments of tables, and that no table changes without another number."""

from __future__ import annotations

import pytest

from locus_mysql.dialect.schema import Layout, read_comment
from locus_mysql.families.registry import families
from tests.layouts.fingerprints import all_schemas, fingerprint, recorded


@pytest.mark.parametrize("name", [family.name for family in families()])
def test_the_tables_change_only_with_the_number_of_the_layout(name: str) -> None:
    schemas = all_schemas()[name]
    number = schemas[0].layout_version
    assert recorded()[name].get(str(number)) == fingerprint(schemas), (
        f"The CREATE TABLE statements of family {name!r} differ from those of layout {number}, which is frozen. Raise "
        "LAYOUT_VERSION: see 'Changing the layout of the tables' in CONTRIBUTING.md."
    )


def test_numbers_are_the_same_whatever_the_options_and_rise_by_one() -> None:
    for name, schemas in all_schemas().items():
        (number,) = {schema.layout_version for schema in schemas}
        assert set(recorded()[name]) == {str(one) for one in range(1, number + 1)}


@pytest.mark.parametrize(
    ("comment", "content"),
    [
        ("locus-mysql: agents layout 1", Layout("agents", 1, 1)),
        ("locus-mysql: my-toys layout 12, usable from 9", Layout("my-toys", 12, 9)),
        ("locus-mysql layout 1", None),
        ("", None),
        ("locus-mysql: agents layout 1 (old)", None),
        ("my locus-mysql: agents layout 1", None),
    ],
)
def test_a_comment_says_what_a_table_is(comment: str, content: Layout | None) -> None:
    assert read_comment(comment) == content
    if isinstance(content, Layout):
        assert content.comment == comment
