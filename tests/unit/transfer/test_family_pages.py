"""Pages of records: a source whose pages do not go on ends the transfer."""

from __future__ import annotations

from typing import Any, cast

import pytest
from locus_mysql.runtime.transfer import RecordPage, Source
from locus_mysql.transfer.family_pages import FamilyPages

from locus_mysql.engine import retry
from locus_mysql.errors import Unavailable
from locus_mysql.runtime.database import Database


class OnePage:
    """A source that returns the same page for ever."""

    async def page(self, database: Database, after: object, limit: int) -> RecordPage:
        return RecordPage([b"{}"], last=("thread", 1))


async def test_a_page_that_comes_again_and_again_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "GIVE_UP_AFTER_S", 0.0)
    pages = FamilyPages(cast(Source, OnePage()), cast(Any, None))
    with pytest.raises(Unavailable, match="ended where the page before it had ended"):
        async for _ in pages.units():
            pass
