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

from ..conftest import MakeConfig
from .conftest import Open
from .samples import Sample, every_family

pytestmark = pytest.mark.slow

OWNERS, PAGE = 120, 20

#: Returns the names of a page, and where the next one begins; None if there is none.
ReadPage = Callable[[object], Awaitable[tuple[list[str], object]]]


class Others:
    """Other processes. Each call of `act` deletes some owners, writes to some, and creates some.

    Args:
        write: Writes to an owner, which it creates if necessary.
        delete: Deletes an owner.
        at_once: The number of owners deleted by each call. Half as many are written to, and half as many are created.
        owners: The number of owners at first.
    """

    def __init__(
        self,
        write: Callable[[str], Awaitable[object]],
        delete: Callable[[str], Awaitable[object]],
        at_once: int = 6,
        owners: int = OWNERS,
    ) -> None:
        self.names = [f"thread {number:03}" for number in range(owners)]
        self.write = write
        self._delete = delete
        self._at_once = at_once
        # They include owners that a list has already passed and owners that it has not reached yet.
        self._doomed = self.names[3::5] + self.names[3::5][::-1]
        self._busy = self.names[4::5]
        self._new = 0
        self.times = 0

    async def fill(self) -> None:
        """Create the owners."""
        for name in self.names:
            await self.write(name)

    async def act(self) -> None:
        """Write as others do."""
        self.times += 1
        for _ in range(self._at_once):
            if self._doomed:
                await self._delete(self._doomed.pop(0 if self._new % 2 else -1))
        for _ in range(self._at_once // 2):
            self._busy.append(self._busy.pop(0))
            await self.write(self._busy[-1])
            await self.write(f"new {self._new}")
            self._new += 1

    async def check(self, read: ReadPage) -> None:
        """Read all pages, with writes between them, and check that each untouched owner is listed once."""
        listed, cursor = await read(None)
        while cursor is not None:
            await self.act()
            names, cursor = await read(cursor)
            listed += names
        assert self.times >= 2, "it took one page"
        untouched = [name for name in self.names if name not in {*self.names[3::5], *self.names[4::5]}]
        counts = Counter(listed)
        assert {name: counts[name] for name in untouched} == dict.fromkeys(untouched, 1)


async def others_of(sample: Sample, open_sample: Open) -> Others:
    store = open_sample()
    steps: Counter[str] = Counter()

    async def write(name: str) -> None:
        await sample.write(store, name, steps[name])
        steps[name] += 1

    others = Others(write, lambda name: sample.delete(store, name))
    await others.fill()
    return others


@every_family(lambda sample: sample.inspected)
async def test_the_inspector_lists_each_once(sample: Sample, open_sample: Open, make_config: MakeConfig) -> None:
    others = await others_of(sample, open_sample)
    async with Inspector(make_config()) as inspector:
        await others.check(lambda cursor: sample.page(inspector, cursor, PAGE))  # type: ignore[arg-type]


@every_family()
async def test_an_export_has_each_once(
    sample: Sample, open_sample: Open, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moving, "max_owners", PAGE)
    others, config = await others_of(sample, open_sample), make_config()
    async with Database(config) as database:
        units = RowSource(find_family(sample.family).tables(config), config, database).units()

        async def read(_: object) -> tuple[list[str], object]:
            unit = await anext(units, None)
            owners = [] if unit is None else [one for one in unit.page.records if isinstance(one, OwnerRecord)]
            return [name for one in owners for name in names_in(one.values)], unit

        await others.check(read)


def names_in(values: Sequence[object]) -> list[str]:
    """Return the names in the values of an exported row."""
    text = " ".join(one.decode("latin-1") if isinstance(one, bytes) else str(one) for one in values)
    return re.findall(r"thread \d{3}|new \d+", text)
