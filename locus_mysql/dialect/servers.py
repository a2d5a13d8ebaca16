"""Questions to one of several servers: whether it takes writes, and whether it is a working member of its group."""

from __future__ import annotations

from .statement import Statement

#: Secondaries of a group are read-only, and so are members that are recovering or were expelled.
WRITES = Statement("SELECT @@GLOBAL.read_only")

#: Needs the privilege SELECT on that table, which has no rows where Group Replication is not installed.
MEMBERS = Statement(
    "SELECT member_id = @@GLOBAL.server_uuid, member_state FROM performance_schema.replication_group_members"
)

#: Stands in the error by which `ONLY_WHERE_WRITTEN` fails.
NO_LONGER_WRITTEN = "this server takes no writes"

#: Fails on a server that takes no writes, so that nothing that follows it in a packet is carried out there. Outside of
#: stored programs, MySQL has no statement that just raises an error. It makes a packet take 0.02 ms longer.
ONLY_WHERE_WRITTEN = Statement(
    f"DO UUID_TO_BIN(IF(@@GLOBAL.read_only, '{NO_LONGER_WRITTEN}', '00000000000000000000000000000000'))"
)

#: Asked of a server that is to be read as a secondary, beside `MEMBERS`.
READS = Statement("SELECT @@GLOBAL.read_only, @@GLOBAL.gtid_mode")

#: What has been committed, which others may read, and what is being committed, which they may read already. In this
#: order: what is committed between the two is in both.
CARRIED_OUT = Statement("SELECT @@GLOBAL.gtid_owned, @@GLOBAL.gtid_executed, @@GLOBAL.gtid_mode")

#: Stands in the error by which `only_after` fails.
LAGS = "this server lags behind"


def only_after(gtids: str, wait_s: float) -> Statement:
    """Fails on a server that has not carried these transactions out by the end of a wait; see `ONLY_WHERE_WRITTEN`."""
    return Statement(
        f"DO UUID_TO_BIN(IF(WAIT_FOR_EXECUTED_GTID_SET(%s, {wait_s:g}), '{LAGS}', '00000000000000000000000000000000'))",
        (gtids,),
    )
