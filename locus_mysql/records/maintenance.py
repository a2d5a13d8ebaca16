"""The upkeep of any family, derived from its `Tables`: `Maintenance`. Generators that do no I/O.

It counts what is stored and what is no longer needed, lists tenants, and removes owners: expired ones, those that
nobody wrote to for some days, one, those whose names match, and all of a tenant. An owner and its parts are removed in
one transaction, which records a token, so that a repeated or late packet removes nothing else. A family adds what is
special about it as an `Upkeep`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, cast

from ..dialect import Query, Statement
from ..dialect.sql import SQL
from ..dialect.statement import like
from ..engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ..engine.retry import Backoff, next_page
from ..runtime.arguments import check_days
from ..wording import counted
from . import leases, ledger
from .maintenance_statements import (
    COUNT_EXPIRED,
    COUNT_IDLE,
    COUNT_LIVE,
    FIND_EXPIRED,
    FIND_IDLE,
    FIND_NAMED,
    FIND_ORPHANED,
    FIND_UNLINKED,
    GUARD,
    GUARD_UNLINKED,
    OF_TENANT,
    PART_USAGE,
    RECORD_COUNTED,
    REMOVE_ORPHANED,
    REMOVE_OWNERS,
    TENANTS,
    USAGE,
)
from .row_statements import REMOVE, REMOVE_SOME, REMOVED_AT_ONCE, RowStatements, after_row
from .tables import Part, Row, Table, Tables

#: Owners that one query finds.
AT_ONCE = 500

#: Rows of a tenant that one statement counts.
COUNTED_ROWS = 10_000

#: Owners of one transaction that one statement names.
NAMED_AT_ONCE = 100


class Count(NamedTuple):
    """A number of stored or removed items.

    Args:
        number: How many.
        phrase: Their description, with the noun in the singular and in braces: ``{record} of recent writes``.
    """

    number: int
    phrase: str

    def __str__(self) -> str:
        return re.sub(r"\{(.*)\}", lambda noun: counted(self.number, noun[1]), self.phrase)

    @property
    def noun(self) -> str:
        """The noun of the phrase, in the plural."""
        return counted(0, re.sub(r".*\{(.*)\}.*", r"\1", self.phrase)).removeprefix("0 ")


#: The counts of an operation, in the order in which commands print them.
Counts: TypeAlias = tuple[Count, ...]


def in_words(counts: Sequence[Count]) -> str:
    """Return counts as an enumeration: ``1 expired item, 2 locks and 3 records of recent writes``."""
    *others, last = map(str, counts)
    return f"{', '.join(others)} and {last}" if others else last


class Usage(NamedTuple):
    """What a tenant has in the tables of a family.

    Args:
        rows: The number of rows of owners and parts; of each table at most `COUNTED_ROWS`.
        rows_of: The same by table.
        more: Whether a table has more.
        written_at: The time of the last write, in UTC; None if the tables do not tell.
    """

    rows: int
    rows_of: Mapping[str, int]
    more: bool
    written_at: datetime | None


class Owned(NamedTuple):
    """An owner that is to be removed.

    Args:
        row: Its tenant, its key, and the columns that it has in common with its parts.
        name: Its name.
        live: Whether it has not expired.
    """

    row: Row
    name: str
    live: bool


class Removed(NamedTuple):
    """What was removed.

    Args:
        owners: The number of owners that had not expired.
        units: The number of parts that the family counts, such as checkpoints.
    """

    owners: int
    units: int


class Upkeep:
    """What the upkeep of one family does besides; this class does nothing. Each method is an operation."""

    def stored(self, tenant: str) -> Operation[Counts]:
        """Count more of what a tenant has stored."""
        return ()
        yield

    def waste(self, tenant: str) -> Operation[Counts]:
        """Count more rows of a tenant that are no longer needed."""
        return ()
        yield

    def repair(self, tenant: str) -> Operation[None]:
        """Repair owners of a tenant before `Maintenance.vacuum` looks at them."""
        return
        yield

    def vacuum(self, tenant: str, age_us: int) -> Operation[Counts]:
        """Remove more rows of a tenant that are no longer needed, in short transactions.

        Args:
            tenant: The tenant.
            age_us: The age of rows that are removed by age, in microseconds.
        """
        return ()
        yield

    def forget(self, tenant: str) -> Operation[None]:
        """Remove what a tenant has left behind after its owners were removed."""
        return
        yield

    def each(self, find: Callable[..., Query[Any]], work: Callable[[str], Operation[int]], size: int) -> Operation[int]:
        """Do some work on each thread that queries find, page by page in the order of the ids; return the sum.

        Args:
            find: Returns the query of a page: of at most ``limit`` ids after ``after``.
            work: The work on a thread.
            size: The number of threads of a page.
        """
        done, after = 0, ""
        while True:
            page = yield from fetch(find(after=after, limit=size))
            for row in page:
                after = next_page(after, row.thread_id)
                done += yield from work(after)
            if len(page) < size:
                return done


class Maintenance:
    """Counts, lists and removes what tenants have in the tables of one family.

    Args:
        tables: The family's tables.
        upkeep: What is special about the family.
        removed: Called with each owner that was removed: its tenant, its key and its link.
    """

    def __init__(
        self, tables: Tables, upkeep: Upkeep | None = None, removed: Callable[[Row], None] = lambda _: None
    ) -> None:
        self.tables = tables
        self._upkeep = upkeep or Upkeep()
        self._removed = removed
        self._sql = RowStatements(tables)
        owner = tables.owner
        #: The part whose rows are counted, such as checkpoints.
        self._unit = next((part for part in tables.parts if part.counted), None)
        self._columns = ("tenant", *dict.fromkeys((*owner.key, *tables.link)))
        expires = f"o.{owner.expires} <= UTC_TIMESTAMP(6)" if owner.expires else "FALSE"
        written = owner.written or (f"o.{owner.updated}" if owner.updated else "NULL")
        self._pieces = {
            "EXPIRES": owner.expires,
            "EXPIRED": expires,
            "UNUSED": leases.unused(owner.turns) if owner.turns else "TRUE",
            "WRITTEN": written,
            "RECENT": owner.recent,
            "IDLE": f"{written} < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND",
            "NEWEST_FIRST": f" ORDER BY o.{tables.tenant} DESC, o.{owner.recent} DESC" if owner.recent else "",
            "IDENTITY": ", ".join(f"o.{one}" for one in self._columns[1:]),
            "NAME": self.name,
            "TOTALS": "".join(f", COALESCE(SUM(o.{column}), 0)" for column, _ in owner.totals),
        }

    @property
    def name(self) -> str:
        """The SQL expression of an owner's name."""
        return self.tables.owner.name or f"o.{self.tables.owner.key[0]}"

    @property
    def together(self) -> int:
        """The number of owners that one transaction removes."""
        return self.tables.owner.together

    # Counting

    def stored(self, tenant: str) -> Operation[Counts]:
        """Count what a tenant has stored. The first count is of owners. One round trip, and those of the family."""
        (found,) = yield Batch.of(self._owners(COUNT_LIVE, tenant=tenant))
        number, *sums = map(int, cast(Iterable[Any], found.rows[0]))
        totals = [Count(total, noun) for total, (_, noun) in zip(sums, self.tables.owner.totals, strict=True)]
        return Count(number, f"{{{self.tables.owner.noun}}}"), *totals, *(yield from self._upkeep.stored(tenant))

    def waste(self, tenant: str, older_than_days: float | None = None) -> Operation[Counts]:
        """Count rows of a tenant that are no longer needed, or soon will not be. Changes nothing.

        Args:
            tenant: The tenant.
            older_than_days: Also count the owners that `vacuum` would remove by this age.
        """
        expired = self._owners(COUNT_EXPIRED, tenant=tenant)
        tokens = ledger.COUNT_OF_TENANT(self._sql.dialect, tenant=tenant)
        idle = []
        if older_than_days is not None and self.tables.owner.idles:
            idle = [self._owners(COUNT_IDLE, tenant=tenant, age_us=_age_us(older_than_days))]
        results = yield Batch((expired, tokens, *idle), atomic=False)
        noun = self.tables.owner.noun
        return (
            Count(results.rows(expired)[0].number, f"{{expired {noun}}}"),
            *(yield from self._upkeep.waste(tenant)),
            *(Count(results.rows(one)[0].number, f"{{{noun}}} without a save for that long") for one in idle),
            # They identify repeated writes for a quarter of an hour.
            Count(results.rows(tokens)[0].tokens, "{record} of recent writes"),
        )

    def tenants(self, after: str = "", limit: int = AT_ONCE) -> Operation[list[str]]:
        """Return names of tenants with owners, in their order. One round trip.

        Args:
            after: The last name of the page before.
            limit: The maximum number of names, up to 500.
        """
        return [row.tenant for row in (yield from fetch(self._owners(TENANTS, after=after, limit=limit)))]

    def usage(self, tenants: Sequence[str]) -> Operation[dict[str, Usage]]:
        """Return what tenants have stored. Reads a bounded number of rows of each, in one round trip."""
        queries = [
            (
                self._owners(USAGE, tenant=one, limit=COUNTED_ROWS + 1),
                {
                    role: part(PART_USAGE, self._pieces, tenant=one, limit=COUNTED_ROWS + 1)
                    for role, part in self._sql.parts.items()
                },
            )
            for one in tenants
        ]
        results = yield Batch(tuple(one for own, parts in queries for one in (own, *parts.values())), atomic=False)
        found = {}
        for tenant, (own, parts) in zip(tenants, queries, strict=True):
            usage = results.rows(own)[0]
            rows_of = {self.tables.owner.role: usage.number}
            rows_of |= {role: cast(int, results.of(query).rows[0][0]) for role, query in parts.items()}
            more = any(number > COUNTED_ROWS for number in rows_of.values())
            rows_of = {self.tables.names[role]: min(number, COUNTED_ROWS) for role, number in rows_of.items()}
            at = datetime.fromisoformat(usage.written_at) if isinstance(usage.written_at, str) else usage.written_at
            found[tenant] = Usage(sum(rows_of.values()), rows_of, more, at)
        return found

    # Removing

    def claim(self, job: str, holder: int) -> Operation[bool]:
        """See `ledger.claim`."""
        return (yield from ledger.claim(self._sql.dialect, job, holder))

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[Counts]:
        """Remove rows of a tenant that are no longer needed, in short transactions, and return their numbers.

        Args:
            tenant: The tenant.
            older_than_days: The age in days from which owners and parts are removed, if the family removes any by age.
        """
        age_us = _age_us(older_than_days)
        yield from self._upkeep.repair(tenant)
        expired = yield from self.remove_expired(tenant=tenant)
        idle = (yield from self._remove_idle(tenant, age_us)) if self.tables.owner.idles else 0
        if not self.tables.restores:
            yield from (self._remove_unlinked if self.tables.owner.id else self._remove_orphaned)(tenant)
        more = yield from self._upkeep.vacuum(tenant, age_us)
        tokens = yield from ledger.forget_old_tokens(self._sql.dialect)
        if self._unit is not None:
            total = expired + idle + sum(one.number for one in more)
            return (Count(total, f"{{{self._unit.noun}}}"),)
        noun = self.tables.owner.noun
        return Count(expired, f"{{expired {noun}}}"), *more, Count(tokens, "{record} of recent writes")

    def remove_expired(self, limit: int | None = None, tenant: str | None = None) -> Operation[int]:
        """Remove expired owners with their parts, longest expired first; return their number, or that of their units.

        Args:
            limit: The maximum number of owners; None for all.
            tenant: The tenant; None for all tenants.
        """
        pieces = {"OF_TENANT": "" if tenant is None else OF_TENANT}
        condition = f" AND {self._pieces['EXPIRED']} AND {self._pieces['UNUSED']}"
        removed, left = 0, limit
        backoff = Backoff(f"Each {self.tables.owner.noun} that had expired and was removed was found again")
        while self.tables.owner.expires and left != 0:
            asked = AT_ONCE if left is None else min(AT_ONCE, left)
            found = yield from self._found(FIND_EXPIRED, pieces, tenant=tenant, limit=asked)
            backoff.compare(found)
            done = yield from self._remove_all(found, condition)
            removed += done.units if self._unit is not None else done.owners
            left = None if left is None else left - len(found)
            if len(found) < asked:
                break
        return removed

    def _remove_idle(self, tenant: str, age_us: int) -> Operation[int]:
        condition = f" AND {self._pieces['IDLE']} AND {self._pieces['UNUSED']}"
        removed, backoff = 0, Backoff(f"Each {self.tables.owner.noun} that was removed as too old was found again")
        while True:
            found = yield from self._found(FIND_IDLE, {}, tenant=tenant, age_us=age_us, limit=AT_ONCE)
            backoff.compare(found)
            done = yield from self._remove_all(found, condition, age_us=age_us)
            removed += done.units if self._unit is not None else done.owners
            if len(found) < AT_ONCE:
                return removed

    def named(
        self, tenant: str, pattern: str = "*", after: Row | None = None, limit: int = AT_ONCE
    ) -> Operation[list[Owned]]:
        """Return the next owners of a tenant along the primary key whose names match, expired ones too.

        Args:
            tenant: The tenant.
            pattern: A glob of their names.
            after: The row of the last one of the page before.
            limit: The maximum number.
        """
        text, values = self._matching(pattern)
        condition, after_values = after_row(self.tables.owner, after)
        pieces = {"SELECTED": text, "AFTER": condition}
        return (yield from self._found(FIND_NAMED, pieces, tenant=tenant, limit=limit, **values, **after_values))

    def remove(self, owners: Sequence[Owned]) -> Operation[Removed]:
        """Remove owners with their parts, each in one transaction; items of long-term memory some hundreds at once."""
        return (yield from self._remove_all(owners, ""))

    def forget(self, tenant: str, pattern: str = "*") -> Operation[Removed]:
        """Remove all owners of a tenant whose names match, and what they have left. May be repeated."""
        total = Removed(0, 0)
        after: Row | None = None
        while page := (yield from self.named(tenant, pattern, after)):
            done = yield from self.remove(page)
            total = Removed(total.owners + done.owners, total.units + done.units)
            after = page[-1].row
        yield from self.forget_rest(tenant, pattern)
        return total

    def forget_rest(self, tenant: str, pattern: str = "*") -> Operation[None]:
        """Remove parts without an owner, whose owners' names would match, and what the family keeps besides."""
        if self.tables.owner.id:
            if pattern == "*":
                yield from self._remove_unlinked(tenant)
        elif self.tables.owner.spaces is None:
            yield from self._remove_orphaned(tenant, pattern)
        yield from self._upkeep.forget(tenant)
        yield from ledger.forget_old_tokens(self._sql.dialect)

    def _remove_all(self, owners: Sequence[Owned], condition: str, **values: Any) -> Operation[Removed]:
        """Remove owners that still fulfil a condition, with their parts."""
        removed = units = 0
        for some in _portions(owners, self.tables.owner.together):
            number, counted_units = yield from self._remove_some(some, condition, values)
            live = sum(one.live for one in some) if not condition else len(some)
            removed += min(number, live)
            units += counted_units
        return Removed(removed, units)

    def _remove_some(
        self, owners: Sequence[Owned], condition: str, values: Mapping[str, Any]
    ) -> Operation[tuple[int, int]]:
        """Remove owners of one tenant in one transaction; return the numbers of owners and of their units."""
        tables, dialect, rows = self.tables, self._sql.dialect, [one.row for one in owners]
        tenant, token = str(rows[0]["tenant"]), os.urandom(16)
        links = [(tenant, *(row[one] for one in tables.link)) for row in rows]
        unchanged = {}
        if tables.owner.id:  # each owner has a transaction of its own
            unchanged = {"link": rows[0][tables.owner.id]}
        pieces = {"CONDITION": condition, "UNCHANGED": f" AND o.{tables.owner.id} = :link" if unchanged else ""}
        deletes = [
            self._owners(
                REMOVE_OWNERS,
                pieces,
                keys=[(tenant, *(row[one] for one in tables.owner.key)) for row in some],
                **unchanged,
                **values,
            )
            for some in _sliced(rows, NAMED_AT_ONCE)
        ]
        outcome: Query[ledger.OutcomeRow] | None = ledger.FIND(dialect, tenant=tenant, token=token)
        record: list[Statement] = [] if tables.owner.together > 1 else [GUARD(dialect)]
        if self._unit is None and tables.removing is None and condition:
            outcome = None  # a repeated packet finds no owner that fulfils the condition
        elif self._unit is None:
            record = [*record, ledger.RECORD(dialect, tenant=tenant, token=token)]
        else:
            counts = self._part(self._unit, RECORD_COUNTED, tenant=tenant, token=token, links=links)
            record = [*record, counts, *((outcome,) if outcome else ())]
        if tables.removing is None:
            first, then = list[Statement](), [self._part(part, REMOVE, links=links) for part in tables.parts]
        else:
            first, then = tables.removing(tenant, token, rows)
        if tables.owner.turns and not condition:
            keys = [(tenant, *(row[one] for one in tables.owner.turns)) for row in rows]
            first = [leases.ended(dialect, keys), *first]
        try:
            results = yield Batch.of(first, deletes, record, then, outcome_query=outcome)
        except (Outdated, Duplicate):  # it was removed or written to meanwhile
            return 0, 0
        finally:
            for row in rows:
                self._removed(row)
        units = results.rows(outcome)[0].outcome or 0 if self._unit is not None and outcome else 0
        if results.earlier_attempt is not None:
            return len(rows), units
        return sum(results.of(one).affected for one in deletes), units

    def _remove_orphaned(self, tenant: str, pattern: str = "*") -> Operation[None]:
        """Remove the parts of owners that do not exist. Parts name their owner by its key."""
        key, text = Table("", self.tables.link), "" if pattern == "*" else f" AND {self.name} LIKE :pattern"
        for part in self.tables.parts:
            last: Row | None = None
            while True:
                condition, values = after_row(key, last)
                pieces = {"SELECTED": text, "AFTER": condition}
                query = self._part(
                    part, FIND_ORPHANED, pieces, tenant=tenant, limit=AT_ONCE, pattern=like(pattern), **values
                )
                (found,) = yield Batch.of(query)
                for *link, is_missing in found.rows:
                    if is_missing:
                        yield Batch.of(self._part(part, REMOVE_ORPHANED, links=[(tenant, *link)]))
                if len(found.rows) < AT_ONCE:
                    break
                last = dict(zip(self.tables.link, found.rows[-1], strict=False))

    def _remove_unlinked(self, tenant: str) -> Operation[None]:
        """Remove the parts of owners that do not exist. Parts name their owner by an id; see `OwnerWriter`."""
        backoff = Backoff("Parts without an owner that were removed were found again")
        for part in self.tables.parts:
            find = self._part(part, FIND_UNLINKED, tenant=tenant, limit=AT_ONCE)
            while found := (yield Batch.of(find))[0].rows:
                backoff.compare((part.role, found))
                for link in found:
                    values: dict[str, Any] = {"links": [(tenant, *link)]}
                    steps = (
                        self._part(part, REMOVE_SOME, limit=REMOVED_AT_ONCE, **values),
                        self._part(part, GUARD_UNLINKED, **values),
                    )
                    with contextlib.suppress(Outdated):  # an import has completed the owner
                        while (yield Batch.of(*steps))[0].affected == REMOVED_AT_ONCE:
                            pass

    def _matching(self, pattern: str) -> tuple[str, dict[str, Any]]:
        """Return the condition for owners whose names match a glob, and its parameters."""
        owner = self.tables.owner
        if pattern == "*":
            return "", {}
        text, values = f" AND {self.name} LIKE :pattern", dict[str, Any](pattern=like(pattern))
        literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        labels = [one.replace("~1", "/").replace("~0", "~") for one in literal.split("/")[:-1]]
        if owner.spaces is not None and labels:
            path = owner.spaces.path_of(labels)
            text += f" AND o.{owner.spaces.column} >= :space AND o.{owner.spaces.column} < :space_end"
            values |= {"space": path, "space_end": path[:-1] + b"\1"}
        elif len(owner.key) > 1:  # the beginning of the primary key
            named = dict(zip(owner.key, labels, strict=False))
            text += "".join(f" AND o.{one} = :of_{one}" for one in named)
            values |= {f"of_{one}": label.encode() for one, label in named.items()}
        return text, values

    def _found(self, statement: SQL, pieces: Mapping[str, str], **values: Any) -> Operation[list[Owned]]:
        (found,) = yield Batch.of(self._owners(statement, pieces, **values))
        names = self.tables.tenant, *self._columns[1:]
        rows = [(self.tables.row(self.tables.owner, names, row), row) for row in found.rows]
        return [
            Owned({"tenant": one.pop(self.tables.tenant), **one}, _text(row[-2]), bool(row[-1])) for one, row in rows
        ]

    def _owners(self, statement: Any, pieces: Mapping[str, str] | None = None, **values: Any) -> Any:
        return self._sql.owners(statement, {**self._pieces, **(pieces or {})}, **values)

    def _part(self, part: Part, statement: Any, pieces: Mapping[str, str] | None = None, **values: Any) -> Any:
        same = " AND ".join(f"o.{one} = p.{one}" for one in self.tables.link)
        own = {"COUNTED": part.counted, "LEDGER": f"`{self.tables.names['ledger']}`", "SAME_KEY": same}
        return self._sql.parts[part.role](statement, {**own, **(pieces or {})}, **values)


def _age_us(days: float) -> int:
    return int(check_days(days) * 86_400 * 1_000_000)


def _text(name: Any) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _sliced(rows: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _portions(owners: Sequence[Owned], size: int) -> Iterable[Sequence[Owned]]:
    """Return owners of one tenant at a time, at most ``size`` of them."""
    by_tenant: dict[str, list[Owned]] = {}
    for one in owners:
        by_tenant.setdefault(str(one.row["tenant"]), []).append(one)
    return (some for own in by_tenant.values() for some in _sliced(own, size))
