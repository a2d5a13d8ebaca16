"""Lists are read page by page until their end."""

from __future__ import annotations

import pytest

from locus_mysql.cli.inspection.command import pages
from locus_mysql.engine import retry
from locus_mysql.errors import Unavailable
from locus_mysql.families.inspection.records import Page


async def test_pages_follow_each_other_until_one_has_no_cursor() -> None:
    stored = {None: Page([1], "a"), "a": Page([2], "b"), "b": Page([3], None)}

    async def read(cursor: str | None) -> Page[int]:
        return stored[cursor]

    assert [page.items async for page in pages(read)] == [[1], [2], [3]]
    assert [page.items async for page in pages(read, "b")] == [[3]]


async def test_a_page_that_names_itself_as_the_next_one_ends_the_list_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "GIVE_UP_AFTER_S", 0.0)

    async def read(cursor: str | None) -> Page[int]:
        return Page([1], "a")

    with pytest.raises(Unavailable, match="A page of a list named itself as the next one"):
        async for _ in pages(read):
            pass
