"""Writes owners with their parts: `OwnerWriter`. Generators that do no I/O."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..dialect import Statement
from ..engine.operation import Batch, Duplicate, Operation, Outdated
from ..errors import SchemaMismatch, StateTooLarge
from ..transfer.engine import TransferReport
from .ledger import FIND, RECORD
from .moving import Moving, OwnerRecord, PartRecord, Record, Restart, Stored, plain
from .owner_reader import OwnerReader
from .row_statements import EXPECT, INSERT, PUT, REMOVE, REMOVE_SEEN, REMOVE_SOME, REMOVED_AT_ONCE
from .tables import Row

#: How often writing an owner is tried, as others may write it meanwhile.
TRIES = 5

#: MySQL's error for a row that refers to one that is not stored.
NO_REFERENCED_ROW = 1452

#: What is done with an owner: it may still fit into one transaction; its rows are written, or compared at its end; it
#: is stored already; another one is stored; it has expired; it was left out.
Fate: TypeAlias = Literal["arriving", "written", "compared", "present", "differs", "expired", "left"]


@dataclass(slots=True)
class _Arriving:
    """An owner that arrives with its parts.

    Args:
        row: Its row.
        parts: Those of its parts that were not written yet, by their tables.
        rows: The number of its rows.
        waiting: The number of those that were not written yet.
        size_bytes: The bytes of those.
        counts: The numbers of parts that arrived, by their tables.
        digest: That of all its rows.
        fate: What is done with its rows; see `Fate`.
    """

    row: dict[str, Any]
    parts: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    rows: int = 1
    waiting: int = 1
    size_bytes: int = 0
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    digest: Any = field(default_factory=hashlib.sha256)
    fate: Fate = "arriving"


class OwnerWriter:
    """Writes owners with their parts. An owner is seen only when it is complete, as its own row is written last.

    Stored owners are compared, by their version if they have one. Repeating a transfer completes it.

    Args:
        moving: The family and the tenant.
        report: Counts rows.
        overwrite: Whether stored owners that differ are replaced, or a function that decides that from a stored row.
        verify: Whether all rows are compared, also those that were just written.
        rename: Changes the row of an owner before it is written.
        advice: What the message about an owner that was not replaced ends with.
    """

    def __init__(
        self,
        moving: Moving,
        report: TransferReport,
        *,
        overwrite: bool | Callable[[Row], bool] = False,
        verify: bool = False,
        rename: Callable[[dict[str, Any]], None] = lambda _: None,
        advice: str = " --overwrite replaces it.",
    ) -> None:
        self._moving = moving
        self._report = report
        self._overwrite = overwrite
        self._verify = verify
        self._rename = rename
        self._advice = advice
        self._complete: list[_Arriving] = []
        self._open: _Arriving | None = None

    def write(self, records: Sequence[Record]) -> Operation[None]:
        """Take records in their order, and write those that fill a transaction."""
        moving = self._moving
        for record in records:
            if isinstance(record, Restart):
                if self._open is not None and self._open.fate == "written":
                    yield from self._clear(self._open.row)
                self._open = None
            elif isinstance(record, OwnerRecord):
                yield from self._close()
                row = dict(zip(moving.sql.owners.columns, record.values, strict=True))
                self._rename(row)
                values = tuple(row[one] for one in moving.sql.owners.columns)
                self._open = _Arriving(moving.owner_row(values), size_bytes=_size(values))
                self._open.digest.update(moving.digest_of(OwnerRecord(values)))
            elif self._open is not None:
                yield from self._take(self._open, record)

    def finish(self) -> Operation[None]:
        """Write what is left."""
        yield from self._close()
        yield from self._flush()

    def _take(self, owner: _Arriving, part: PartRecord) -> Operation[None]:
        moving = self._moving
        table = moving.statements(part.role)
        owner.rows += 1
        owner.counts[part.role] += 1
        owner.digest.update(moving.digest_of(part))
        if owner.fate not in ("arriving", "written"):
            return
        row = dict(zip((*table.columns, *table.bases), part.values, strict=True))
        row.update((one, owner.row[one]) for one in moving.tables.link)
        owner.parts[part.role].append(moving.seal(table, row, owner.row))
        owner.waiting += 1
        owner.size_bytes += _size(part.values)
        if moving.tables.writing is not None:  # it is written in one transaction, whatever its size
            return
        if owner.waiting >= self._moving.max_rows or owner.size_bytes >= self._moving.max_bytes:
            yield from self._write_part_of(owner)

    def _close(self) -> Operation[None]:
        """The owner that arrives is complete."""
        owner, self._open = self._open, None
        if owner is None:
            return
        if owner.fate == "arriving":
            self._complete.append(owner)
            waiting = self._complete
            if (
                sum(one.rows for one in waiting) >= self._moving.max_rows
                or sum(one.size_bytes for one in waiting) >= self._moving.max_bytes
            ):
                yield from self._flush()
        elif owner.fate == "written":
            yield from self._finish_large(owner)
        elif owner.fate == "compared":
            self._count_unwritten(owner, "present" if (yield from self._same_among([owner])) else "differs")
        else:
            self._count_unwritten(owner, owner.fate)

    def _flush(self) -> Operation[None]:
        """Write complete owners, in one transaction."""
        owners, self._complete = self._complete, []
        if owners:
            yield from self._write_small(owners)

    def _write_small(self, owners: Sequence[_Arriving]) -> Operation[None]:
        moving = self._moving
        for attempt in range(TRIES):
            stored = yield from moving.at([moving.key_of(one.row) for one in owners])
            chosen, seen = list[_Arriving](), list[dict[str, Any]]()
            same = yield from self._same_among([one for one in owners if self._compares_rows(one, stored)], stored)
            for owner in owners:
                found, _ = stored.owners.get(moving.key_of(owner.row), (None, False))
                fate = self._fate_of(owner, stored, same)
                if fate != "written":
                    self._count_unwritten(owner, fate)
                    continue
                chosen.append(owner)
                seen += [found] if found is not None else []
            if not chosen:
                return
            try:
                yield from self._transaction(chosen, seen)
            except (Duplicate, StateTooLarge, SchemaMismatch) as error:
                if isinstance(error, SchemaMismatch) and not _lacks_a_row(error):
                    raise
                if len(chosen) > 1:
                    for one in chosen:
                        yield from self._write_small([one])
                    return
                if not isinstance(error, Duplicate):
                    why = f"{error}" if isinstance(error, StateTooLarge) else "a row that it refers to is not stored."
                    self._report.leave_out(f"{self._title(chosen[0])} was left out: {why}")
                    return
                if attempt and not seen and error.table == moving.tables.names[moving.tables.owner.role]:
                    self._report.differ(f"{self._title(chosen[0])} was left out: another one has its {error.key}.")
                    return
                owners = chosen
                continue
            yield from self._count(chosen)
            return
        for one in owners:
            self._report.differ(f"{self._title(one)} was written to at each attempt to write it. Try again.")

    def _compares_rows(self, owner: _Arriving, stored: Stored) -> bool:
        """Return whether the rows of an owner show whether it is stored already."""
        found, live = stored.owners.get(self._moving.key_of(owner.row), (None, False))
        return found is not None and live and (self._verify or not self._moving.version_of(found))

    def _fate_of(self, owner: _Arriving, stored: Stored, equal: Collection[tuple[Any, ...]] | None) -> Fate:
        """Return what is to be done with an owner.

        Args:
            owner: The owner.
            stored: The owner in the tables.
            equal: The keys of owners that are stored with the same rows; None if not all its parts have arrived.
        """
        expires_at = owner.row.get(self._moving.tables.owner.expires)
        if expires_at is not None and expires_at <= stored.now:
            return "expired"
        found, live = stored.owners.get(self._moving.key_of(owner.row), (None, False))
        if found is None or not live:
            return "written"
        if not self._compares_rows(owner, stored):
            same = self._moving.version_of(found) == self._moving.version_of(owner.row)
        elif equal is None:
            return "written" if self._replaces(found) else "compared"
        else:
            same = self._moving.key_of(owner.row) in equal
        if same:
            return "present"
        return "written" if self._replaces(found) else "differs"

    def _replaces(self, stored: Row) -> bool:
        return self._overwrite if isinstance(self._overwrite, bool) else self._overwrite(stored)

    def _count_unwritten(self, owner: _Arriving, fate: Fate) -> None:
        report = self._report
        if fate == "present":
            report.present += owner.rows
            report.verified += owner.rows if self._verify else 0
        elif fate == "differs":
            report.differ(f"{self._title(owner)} differs in the tables.{self._advice}")
        elif fate == "expired":
            report.leave_out(f"{self._title(owner)} was left out: it has expired.")

    def _same_among(self, owners: Sequence[_Arriving], stored: Stored | None = None) -> Operation[set[tuple[Any, ...]]]:
        """Return the keys of those of some owners that are stored with the same rows.

        Args:
            owners: The owners.
            stored: Those and others in the tables; None if they are to be read.
        """
        moving = self._moving
        arrived = {moving.key_of(one.row): one.digest.digest() for one in owners}
        if not arrived:
            return set()
        stored = stored or (yield from moving.at(list(arrived)))
        live = sorted((key, row) for key, (row, is_live) in stored.owners.items() if is_live and key in arrived)
        reader = OwnerReader(moving, among=[row for _, row in live])
        digests, key = dict[tuple[Any, ...], Any](), tuple[Any, ...]()
        while True:
            page = yield from reader.page()
            if page.damaged:
                if len(owners) == 1:
                    return set()
                found = set[tuple[Any, ...]]()
                for one in owners:
                    found |= yield from self._same_among([one])
                return found
            if page.last is None:
                return {key for key, digest in digests.items() if digest.digest() == arrived[key]}
            for record in page.records:
                if isinstance(record, Restart):
                    digests.pop(key, None)
                    continue
                if isinstance(record, OwnerRecord):
                    key = moving.key_of(dict(zip(moving.sql.owners.columns, record.values, strict=True)))
                    digests[key] = hashlib.sha256()
                digests[key].update(moving.digest_of(record))

    def _transaction(self, owners: Sequence[_Arriving], seen: Sequence[dict[str, Any]]) -> Operation[None]:
        """Write complete owners, and remove what is stored of them, all or nothing."""
        moving = self._moving
        steps = [self._removal(one) for one in seen]
        if moving.tables.writing is not None:
            token = os.urandom(16)
            parts = {role: [row for owner in owners for row in owner.parts[role]] for role in moving.sql.parts}
            first, then = moving.tables.writing(moving.tenant, token, [one.row for one in owners], parts)
            yield from self._once(*first, *steps, *then, self._insertion(owners), token=token)
            return
        # Also rows that a killed transfer left, which have no owner.
        links = list(dict.fromkeys(moving.link_of(one) for one in (*seen, *(owner.row for owner in owners))))
        steps += [one(REMOVE, links=links) for one in moving.sql.parts.values()]
        for role, table in moving.sql.parts.items():
            if rows := [row for owner in owners for row in owner.parts[role]]:
                steps.append(table(INSERT, rows=rows))
        yield from self._once(*steps, self._insertion(owners))

    def _insertion(self, owners: Sequence[_Arriving]) -> Statement:
        moving = self._moving
        table = moving.sql.owners
        return table(INSERT, rows=[moving.seal(table, dict(one.row), one.row) for one in owners])

    def _removal(self, seen: Row) -> Statement:
        """Remove a stored owner, if it is still the one that was read."""
        values = {one: plain(seen[one]) for one in self._moving.tables.seen}
        return self._moving.sql.owners(REMOVE_SEEN, tenant=self._moving.tenant, **values)

    def _once(self, *steps: Statement, token: bytes = b"") -> Operation[None]:
        moving, token = self._moving, token or os.urandom(16)
        yield Batch.of(
            *steps,
            RECORD(moving.sql.dialect, tenant=moving.tenant, token=token),
            outcome_query=FIND(moving.sql.dialect, tenant=moving.tenant, token=token),
        )

    def _write_part_of(self, owner: _Arriving) -> Operation[None]:
        """Write rows of an owner that is too large for one transaction; nobody sees them without the owner's row."""
        moving = self._moving
        if owner.fate == "arriving":
            yield from self._flush()
            key = moving.key_of(owner.row)
            stored = yield from moving.at([key])
            owner.fate = self._fate_of(owner, stored, None)
            found, _ = stored.owners.get(key, (None, False))
            if owner.fate == "written" and found is not None:
                yield from self._once(self._removal(found))
                yield from self._clear(found)
        rows_of = {role: rows for role, rows in owner.parts.items() if rows}
        owner.parts.clear()
        owner.waiting, owner.size_bytes = 1, 0
        if owner.fate != "written" or not rows_of:
            return
        try:
            yield from self._once(*(moving.statements(r)(PUT, rows=v) for r, v in rows_of.items()))
        except StateTooLarge as error:
            owner.fate = "left"
            self._report.leave_out(f"{self._title(owner)} was left out: {error}")
            yield from self._clear(owner.row)

    def _finish_large(self, owner: _Arriving) -> Operation[None]:
        moving = self._moving
        yield from self._write_part_of(owner)
        if owner.fate != "written":
            return
        links = [moving.link_of(owner.row)]
        counts = [table(EXPECT, links=links, expected=owner.counts[role]) for role, table in moving.sql.parts.items()]
        try:
            yield from self._once(*counts, self._insertion([owner]))
        except Outdated:
            yield from self._clear(owner.row)
            self._report.leave_out(
                f"{self._title(owner)} was left out: rows of an earlier attempt were in its place. They were removed; "
                "repeat the transfer."
            )
        except Duplicate:
            found = yield from moving.live(moving.key_of(owner.row))
            same = found is not None and moving.version_of(found) == moving.version_of(owner.row) != ()
            self._count_unwritten(owner, "present" if same else "differs")
        else:
            yield from self._count([owner])

    def _count(self, owners: Sequence[_Arriving]) -> Operation[None]:
        """Count owners that were written."""
        same = (yield from self._same_among(owners)) if self._verify else None
        for owner in owners:
            if same is not None and self._moving.key_of(owner.row) not in same:
                self._report.differ(f"{self._title(owner)} differs from its source after it was written.")
                continue
            self._report.verified += 0 if same is None else owner.rows
            self._report.copied += owner.rows

    def _clear(self, owner: Row) -> Operation[None]:
        """Remove the parts of an owner that is not stored. May be repeated."""
        moving = self._moving
        for table in moving.sql.parts.values() if moving.tables.writing is None else ():
            while True:
                (removed,) = yield Batch.of(table(REMOVE_SOME, links=[moving.link_of(owner)], limit=REMOVED_AT_ONCE))
                if removed.affected < REMOVED_AT_ONCE:
                    break

    def _title(self, owner: _Arriving) -> str:
        return self._moving.title(owner.row)


def _lacks_a_row(error: SchemaMismatch) -> bool:
    """Return whether a foreign key refused a row."""
    return getattr(error.__cause__, "errno", None) == NO_REFERENCED_ROW


def _size(values: Sequence[Any]) -> int:
    return sum(len(one) for one in values if isinstance(one, bytes | str))
