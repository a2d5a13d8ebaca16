"""Lists that are read page by page while others write contain every untouched owner exactly once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import pytest

from locus_mysql import Database
from locus_mysql.families.registry import find_family
from locus_mysql.inspection import Inspector
from locus_mysql.records.moving import Moving, OwnerRecord
from locus_mysql.records.transfer import RowSource

from ...either_side import AnyStore
from ..conftest import MakeConfig
from ..other_writers import Others
from .conftest import Open
from .samples import Sample, every_family

pytestmark = pytest.mark.slow

OWNERS, PAGE = 120, 20

#: Returns the names of a page, and where the next one begins; None if there is none.
ReadPage = Callable[[object], Awaitable[tuple[list[str], object]]]


class Writer(Others):
    """Other processes that write one family.

    Args:
        sample: The family.
        store: A store of it.
    """

    def __init__(self, sample: Sample, store: AnyStore) -> None:
        super().__init__(OWNERS)
        self._sample, self._store, self._steps = sample, store, Counter[str]()

    async def fill(self) -> None:
        """Create the owners."""
        for name in self.names:
            await self._write(name)

    async def check(self, read: ReadPage) -> None:
        """Read all pages, with writes between them, and check that each untouched owner is listed once."""
        listed, cursor = await read(None)
        while cursor is not None:
            for name in self.delete():
                await self._sample.delete(self._store, name)
            for name in self.save():
                await self._write(name)
            names, cursor = await read(cursor)
            listed += names
        self.assert_each_once(listed)

    async def _write(self, name: str) -> None:
        await self._sample.write(self._store, name, self._steps[name])
        self._steps[name] += 1


async def writer_of(sample: Sample, open_sample: Open) -> Writer:
    writer = Writer(sample, open_sample())
    await writer.fill()
    return writer


@every_family(lambda sample: sample.inspected)
async def test_the_inspector_lists_each_once(sample: Sample, open_sample: Open, make_config: MakeConfig) -> None:
    writer = await writer_of(sample, open_sample)
    async with Inspector(make_config()) as inspector:
        await writer.check(lambda cursor: sample.page(inspector, cursor, PAGE))  # type: ignore[arg-type]


@every_family()
async def test_an_export_has_each_once(
    sample: Sample, open_sample: Open, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_owners", PAGE)
    writer, config = await writer_of(sample, open_sample), make_config()
    async with Database(config) as database:
        units = RowSource(find_family(sample.family).tables(config), config, database).units()

        async def read(_: object) -> tuple[list[str], object]:
            unit = await anext(units, None)
            owners = [] if unit is None else [one for one in unit.page.records if isinstance(one, OwnerRecord)]
            return [name for one in owners for name in names_in(one.values)], unit

        await writer.check(read)


def names_in(values: Sequence[object]) -> list[str]:
    """Return the names in the values of an exported row."""
    text = " ".join(one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in values)
    return re.findall(r"thread \d{3}|new \d+", text)
