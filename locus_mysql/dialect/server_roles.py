"""Statements about a server's role: whether it accepts writes, and its state in its group."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from .statement import Query, Statement
from .variants import OCEANBASE


class WritesRow(NamedTuple):
    """Whether a server refuses writes."""

    read_only: int


class HealthRow(NamedTuple):
    """A server's version, whether it refuses writes, and its time."""

    version: str
    read_only: int
    time: datetime


class GroupRow(NamedTuple):
    """A row of `GROUP`."""

    name: str


class MemberRow(NamedTuple):
    """A member of the server's group, whether it is the server itself, and its state."""

    own: int | None
    state: str


class ViewRow(NamedTuple):
    """The last view of the group that the server has seen: text that stays for the life of a group, ``:``, a number."""

    view: str | None


class GroupConsistencyRow(NamedTuple):
    """The value of ``group_replication_consistency``."""

    consistency: str


#: Whether a server refuses writes: 1 or 0. Secondaries of a group are read-only, and so are members that are recovering
#: or were expelled. A reader of Amazon Aurora has only ``innodb_read_only``.
#: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/AuroraMySQL.BestPractices.html
READ_ONLY = "(@@GLOBAL.read_only OR @@GLOBAL.innodb_read_only)"

WRITES = Query(f"SELECT {READ_ONLY}", row=WritesRow)

HEALTH = Query(f"SELECT VERSION(), {READ_ONLY}, UTC_TIMESTAMP(6)", row=HealthRow)

#: Needs the privilege SELECT on that table, which has no rows where Group Replication is not installed.
MEMBERS = Query(
    "SELECT member_id = @@GLOBAL.server_uuid, member_state FROM performance_schema.replication_group_members",
    row=MemberRow,
)

#: The number in it rises with each member that joins, leaves or is expelled. Needs the privilege SELECT on that table.
VIEW = Query(
    "SELECT view_id FROM performance_schema.replication_group_member_stats WHERE member_id = @@GLOBAL.server_uuid",
    row=ViewRow,
)

#: Part of an error message about that privilege.
VIEW_TABLE = "replication_group_member_stats"

#: Part of the error message with which `ONLY_WHERE_WRITTEN` fails.
NO_LONGER_WRITTEN = "this server takes no writes"

#: Fails on a server that refuses writes, so that the server executes nothing that follows in the packet. Outside of
#: stored programs, MySQL has no statement that only raises an error. This one makes a packet take 0.02 ms longer.
ONLY_WHERE_WRITTEN = Statement(
    f"DO UUID_TO_BIN(IF({READ_ONLY}, '{NO_LONGER_WRITTEN}', '00000000000000000000000000000000'))"
)

#: Part of the version in the greeting of MySQL Router, unless it passes the bytes of TLS on to the server.
ROUTER = "-router"

#: Succeeds only on a port of MySQL Router that splits reads from writes, and changes nothing there. Any other port or
#: server answers with an error.
SPLITS = Statement("ROUTER SET access_mode = 'auto'")

#: The name of the group for which the server is configured, or the version of Amazon Aurora, which only its servers
#: have. No row, or an empty one, if there is neither. Needs no privilege.
GROUP = Query(
    "SELECT variable_value FROM performance_schema.global_variables"
    " WHERE variable_name IN ('group_replication_group_name', 'aurora_version')",
    row=GroupRow,
)

#: Returns no row if Group Replication is not installed. Takes some milliseconds, as the server reads all of its
#: variables.
GROUP_CONSISTENCY = Query(
    "SELECT VARIABLE_VALUE FROM performance_schema.global_variables "
    "WHERE VARIABLE_NAME = 'group_replication_consistency'",
    row=GroupConsistencyRow,
)

# The table does not exist (error 1146), so there is no group.
for _query in (GROUP, GROUP_CONSISTENCY):
    OCEANBASE.instead_of(_query.sql, "SELECT '' FROM DUAL WHERE FALSE")
