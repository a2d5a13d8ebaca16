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
