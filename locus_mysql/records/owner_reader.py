"""Reads owners with their parts, page by page: `OwnerReader`. Generators that do no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..dialect import Statement
from ..engine.operation import Batch, Operation
from ..errors import CorruptCheckpoint
from .moving import Moving, OwnerRecord, Page, PartRecord, Position, Restart, plain, size_of
from .row_statements import ALL, Selection
from .tables import Row

#: How often an owner is read again because another process wrote to it.
TRIES = 5


@dataclass(slots=True)
class _Reading:
    """An owner that is read page by page.

    Args:
        owner: Its row.
        role: The table that is read; empty before the first.
        after: The last row of that table.
        tries: How often it was begun.
    """

    owner: dict[str, Any]
    role: str = ""
    after: dict[str, Any] | None = None
    tries: int = 1


class OwnerReader:
    """Reads owners with their parts, in the order of their keys. An owner is complete, and as it was at one time.

    Args:
        moving: The family and the tenant.
        selection: Which owners.
        after: Where to continue; None for the beginning.
        among: Stored rows of owners, in the order of their keys, if only these are read.
    """

    def __init__(
        self,
        moving: Moving,
        selection: Selection = ALL,
        after: Position | None = None,
        among: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._moving = moving
        self._selection = selection
        self._after: dict[str, Any] | None = None
        self._among = among
        self._owners = min(32, moving.max_owners) if among is None else moving.max_owners  # that one page reads
        self._ahead: list[dict[str, Any]] | None = None
        self._reading: _Reading | None = None
        self._resumed = after

    def page(self) -> Operation[Page]:
        """Return the next records. One round trip for many small owners, and for each page of a large one."""
        if self._resumed is not None:
            return (yield from self._resume())
        if self._reading is not None:
            return (yield from self._continue(self._reading))
        moving = self._moving
        if self._among is not None:
            after = () if self._after is None else moving.key_of(self._after)
            owners = [one for one in self._among if moving.key_of(one) > after][: self._owners]
        elif self._ahead is not None:
            owners, self._ahead = self._ahead, None
        else:
            (found,) = yield Batch.of(self._find(self._after))
            owners = [moving.sql.owners.row(row) for row in found.rows]
        if not owners:
            return Page([], [], None)
        return (yield from self._several(owners))

    def _find(self, after: Row | None) -> Statement:
        moving = self._moving
        return moving.sql.page_of_owners(moving.tenant, self._selection, after, self._owners, moving.max_bytes)

    def alone(self, key: tuple[Any, ...]) -> Operation[Iterator[Operation[Page]] | None]:
        """Return the pages of one owner; None if there is none."""
        stored = yield from self._moving.live(key)
        if stored is None:
            return None
        self._among = [stored]

        def pages() -> Iterator[Operation[Page]]:
            yield self._several([stored])
            while self._reading is not None:
                yield self._continue(self._reading)

        return pages()

    def _several(self, owners: list[dict[str, Any]]) -> Operation[Page]:
        """Read the parts of some owners, and the owners of the next page."""
        moving, tables = self._moving, self._moving.tables
        most = moving.max_owners
        while True:
            parts = {role: moving.parts(role, owners) for role in moving.sql.parts}
            again = moving.seen(owners)
            ahead = () if self._among is not None else (self._find(owners[-1]),)
            results = yield Batch((*parts.values(), again, *ahead))
            rows = {
                role: [moving.statements(role).row(row) for row in results.of(statement).rows]
                for role, statement in parts.items()
            }
            if not any(moving.is_cut(role, some) for role, some in rows.items()):
                break
            if len(owners) == 1:
                return (yield from self._begin(owners[0]))
            owners = owners[: len(owners) // 2]
            most = len(owners)
        read = [(tables.owner, owners), *((moving.statements(role).table, some) for role, some in rows.items())]
        is_small = 2 * max(size_of(table, some) for table, some in read) < moving.max_bytes
        is_short = 2 * max(map(len, rows.values()), default=0) < moving.max_rows
        self._owners = min(most, 2 * self._owners if is_small and is_short else len(owners))
        for statement in ahead:
            self._ahead = [moving.sql.owners.row(row) for row in results.of(statement).rows]
        seen = [tables.row(tables.owner, tables.seen, row) for row in results.of(again).rows]
        now = {moving.key_of(row): row for row in seen}
        page = Page([], [], None)
        by_link: dict[tuple[Any, ...], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for role, some in rows.items():
            for row in some:
                by_link[moving.link_of(row)].append((role, row))
        for owner in owners:
            stored = now.get(moving.key_of(owner))
            if stored is None or moving.epoch_of(stored) != moving.epoch_of(owner):
                self._ahead = None
                if page.last is None:
                    return (yield from self._begin(owner))
                break
            last = self._add(page, owner)
            for role, row in by_link[moving.link_of(owner)] if last is not None else ():
                last = self._add_part(page, owner, role, row) or last
            self._after = owner
            page = page._replace(last=last or Position(self._moving_values(owner)))
        return page

    def _moving_values(self, owner: Row) -> tuple[Any, ...]:
        return tuple(plain(owner[one]) for one in self._moving.sql.owners.columns)

    def _add(self, page: Page, owner: Row) -> Position | None:
        """Add an owner to a page; None if it is damaged."""
        try:
            values = self._moving.open(self._moving.sql.owners, owner, owner)
        except CorruptCheckpoint as error:
            page.damaged.append(str(error))
            return None
        page.records.append(OwnerRecord(values))
        return Position(values)

    def _add_part(self, page: Page, owner: Row, role: str, row: Row) -> Position | None:
        try:
            values = self._moving.open(self._moving.statements(role), row, owner)
        except CorruptCheckpoint as error:
            page.damaged.append(str(error))
            return None
        page.records.append(PartRecord(role, values))
        return Position(self._moving_values(owner), role, values)

    def _resume(self) -> Operation[Page]:
        resumed, self._resumed = self._resumed, None
        assert resumed is not None  # noqa: S101 - for the type checker
        moving = self._moving
        row = dict(zip(moving.sql.owners.columns, resumed.owner, strict=True))
        key = moving.key_of(row)
        stored = yield from moving.live(key)
        self._after = row
        if stored is None:
            return Page([Restart()], [], resumed._replace(void=True))
        if resumed.void or self._moving_values(stored) != resumed.owner:
            return (yield from self._begin(stored, void=True))
        self._reading = _Reading(stored)
        if resumed.role:
            self._reading.role = resumed.role
            table = moving.statements(resumed.role)
            self._reading.after = dict(zip(table.columns, resumed.part, strict=False)) | stored
        return (yield from self._continue(self._reading))

    def _begin(self, owner: dict[str, Any], tries: int = 1, *, void: bool = False) -> Operation[Page]:
        """Read an owner page by page."""
        moving = self._moving
        page = Page([Restart()] if void else [], [], None)
        key = moving.key_of(owner)
        self._after, self._reading = owner, None
        if tries > TRIES:
            page.damaged.append(f"{moving.title(owner)} was written to whenever it was read. Try again later.")
            return page._replace(last=Position(self._moving_values(owner), void=True))
        stored = yield from moving.live(key)
        if stored is None:
            return page._replace(last=Position(self._moving_values(owner), void=True))
        last = self._add(page, stored)
        if last is not None:
            self._reading = _Reading(stored, tries=tries)
        return page._replace(last=last or Position(self._moving_values(stored)))

    def _continue(self, reading: _Reading) -> Operation[Page]:
        moving, owner = self._moving, reading.owner
        roles = [*moving.sql.parts]
        role = reading.role or (roles[0] if roles else "")
        page = Page([], [], Position(self._moving_values(owner), reading.role))
        if role:
            statement = moving.parts(role, [owner], reading.after)
            (found,) = yield Batch.of(statement)
            rows = [moving.statements(role).row(row) for row in found.rows]
            last = page.last
            for row in rows:
                last = self._add_part(page, owner, role, row) or last
            page = page._replace(last=last)
            reading.role, reading.after = role, rows[-1] if rows else reading.after
            if moving.is_cut(role, rows):
                return page
            if role != roles[-1]:
                reading.role, reading.after = roles[roles.index(role) + 1], None
                return page
        key = moving.key_of(owner)
        stored = yield from moving.live(key)
        if stored is not None and moving.epoch_of(stored) == moving.epoch_of(owner):
            self._after, self._reading = owner, None
            return page
        again = yield from self._begin(stored or owner, reading.tries + 1, void=True)
        return Page([*page.records, *again.records], [*page.damaged, *again.damaged], again.last)
