"""The navigation of the inspector, which lists the pages of registered families."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from locus_mysql.families.family import InspectorPage
from locus_mysql.families.memories.family import MemoryFamily
from locus_mysql.families.registry import register_family, unregister_family
from locus_mysql.server.pages.rendering import navigation


class ToyFamily(MemoryFamily):
    name = "toys"
    page = InspectorPage("toys", "Toys")


@pytest.fixture
def toys() -> Iterator[None]:
    register_family(ToyFamily())
    yield
    unregister_family("toys")


@pytest.mark.usefixtures("toys")
def test_a_family_that_is_registered_with_a_page_is_listed() -> None:
    assert ("toys", "/inspect/toys", "Toys") in navigation()
