"""The statements of `Maintenance`, filled in from a family's tables."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from ..dialect.sql import SQL, Select


class Number(NamedTuple):
    """A number of rows."""

    number: int


class TenantRow(NamedTuple):
    """The name of a tenant."""

    tenant: str


class UsageRow(NamedTuple):
    """The number of a tenant's owners, of a bounded number, and the time of the last write among them."""

    number: int
    written_at: datetime | str | None


# The pieces: {LIVE} of `RowStatements`, {EXPIRED}, {UNUSED}: nobody holds the owner at present, {WRITTEN}: the time of
# the last write, {IDENTITY}: what is read of an owner, {NAME}: its name, {UNCHANGED}: it is the one that was read.

COUNT_LIVE = SQL("SELECT COUNT(*){TOTALS} FROM {TABLE} o WHERE o.{TENANT} = :tenant AND {LIVE}")

#: Relies on the index of the time of expiry.
COUNT_EXPIRED = Select("SELECT COUNT(*) FROM {TABLE} o WHERE o.{TENANT} = :tenant AND {EXPIRED}", Number)

#: Owners that expired, of all tenants or of one. Relies on the index of the time of expiry.
FIND_EXPIRED = SQL("""
SELECT o.{TENANT}, {IDENTITY}, '', 0
  FROM {TABLE} o
 WHERE {EXPIRED} AND {UNUSED}{OF_TENANT}
 ORDER BY o.{EXPIRES}
 LIMIT :limit
""")
OF_TENANT = " AND o.{TENANT} = :tenant"

#: Owners that nobody wrote to for some time. Relies on the index {RECENT}, by whose column they are not younger.
_IDLE = """
  FROM {TABLE} o
 WHERE o.{TENANT} = :tenant AND o.{RECENT} < UTC_TIMESTAMP(6) - INTERVAL :age_us MICROSECOND AND {IDLE} AND {UNUSED}"""
FIND_IDLE = SQL(f"SELECT o.{{TENANT}}, {{IDENTITY}}, '', 0{_IDLE} LIMIT :limit")
COUNT_IDLE = Select(f"SELECT COUNT(*){_IDLE}", Number)

#: Owners along the primary key, also expired ones.
FIND_NAMED = SQL("""
SELECT o.{TENANT}, {IDENTITY}, {NAME}, {LIVE}
  FROM {TABLE} o
 WHERE o.{TENANT} = :tenant{SELECTED}{AFTER}
 ORDER BY {KEY}
 LIMIT :limit
""")

REMOVE_OWNERS = SQL("DELETE o FROM {TABLE} o WHERE (o.{TENANT}, {KEY}) IN (:keys){UNCHANGED}{CONDITION}")

#: Undoes the batch, with error 3141, unless the statement before it removed an owner.
GUARD = SQL("SELECT CAST(IF(ROW_COUNT() > 0, '1', '') AS JSON)")

#: Records the token of a removal whose outcome is the number of parts that it is about to remove.
RECORD_COUNTED = SQL("""
INSERT INTO {LEDGER} (tenant, token, outcome, recorded_at)
SELECT :tenant, :token, COUNT(*), UTC_TIMESTAMP(6)
  FROM {TABLE}
 WHERE ({TENANT}, {PLAIN_LINK}) IN (:links) AND {COUNTED}
""")

#: The owners that parts name, each with whether it does not exist. Only damage or a stopped import leaves such parts.
FIND_ORPHANED = SQL("""
SELECT p.*, o.{TENANT} IS NULL
  FROM (SELECT DISTINCT {LINK} FROM {TABLE} o
         WHERE o.{TENANT} = :tenant{SELECTED}{AFTER}
         ORDER BY {LINK} LIMIT :limit) AS p
  LEFT JOIN {OWNERS} o ON o.{TENANT} = :tenant AND {SAME_KEY}
""")

#: Removes such parts. The locking read waits for a writer that is creating the owner.
REMOVE_ORPHANED = SQL("""
DELETE FROM {TABLE}
 WHERE ({TENANT}, {PLAIN_LINK}) IN (:links)
   AND NOT EXISTS (SELECT 1 FROM {OWNERS} o WHERE (o.{TENANT}, {LINK}) IN (:links) FOR SHARE)
""")

#: The ids that parts have and no owner has.
FIND_UNLINKED = SQL("""
SELECT p.*
  FROM (SELECT DISTINCT {LINK} FROM {TABLE} o WHERE o.{TENANT} = :tenant) AS p
  LEFT JOIN {OWNERS} o ON o.{TENANT} = :tenant AND {SAME_KEY}
 WHERE o.{TENANT} IS NULL
 LIMIT :limit
""")

#: Undoes the batch, with error 3141, if an owner has such an id by now.
GUARD_UNLINKED = SQL("""
SELECT CAST(IF(COUNT(*) = 0, '1', '') AS JSON) FROM {OWNERS} o WHERE (o.{TENANT}, {LINK}) IN (:links)
""")

#: The names of tenants after one: along the primary key, skipping from each tenant to the next where one has many rows.
#: A recursive look-up of each next name would begin at the first row: MySQL makes no range of a value from another row.
TENANTS = Select(
    "SELECT DISTINCT o.{TENANT} FROM {TABLE} o WHERE o.{TENANT} > :after ORDER BY o.{TENANT} LIMIT :limit", TenantRow
)

#: The number of owners and the last write, of a bounded number of owners: those written last if an index has them so.
USAGE = Select(
    """
SELECT COUNT(*), MAX(o.written_at)
  FROM (SELECT {WRITTEN} AS written_at FROM {TABLE} o WHERE o.{TENANT} = :tenant{NEWEST_FIRST} LIMIT :limit) AS o
""",
    UsageRow,
)
PART_USAGE = Select(
    "SELECT COUNT(*) FROM (SELECT 1 FROM {TABLE} o WHERE o.{TENANT} = :tenant LIMIT :limit) AS o", Number
)
