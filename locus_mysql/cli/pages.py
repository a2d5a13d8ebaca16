"""The pages of a list, one after another: `pages`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from ..engine.retry import Backoff
from ..families.inspection.records import Page

T = TypeVar("T")


async def pages(read: Callable[[str | None], Awaitable[Page[T]]], cursor: str | None = None) -> AsyncIterator[Page[T]]:
    """Yield pages until the last one.

    Args:
        read: Returns the page that a cursor names.
        cursor: The cursor of the first page.

    Raises:
        Unavailable: For a minute, each page named itself as the next one.
    """
    backoff = Backoff("A page of a list named itself as the next one")
    while True:
        page = await read(cursor)
        yield page
        cursor = page.cursor
        if cursor is None:
            return
        backoff.compare(cursor)
