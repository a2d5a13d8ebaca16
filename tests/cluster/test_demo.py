"""The demo's chapter on failover holds on a real group, and leaves nothing behind."""

from __future__ import annotations

import io

from examples.failover import demo
from locus_mysql import MySQLConfig

from .conftest import Group


async def test_a_conversation_goes_on_while_the_primary_is_killed(group: Group, database: str) -> None:
    hosts = tuple(member.host for member in group.members)
    shown = io.StringIO()
    config = MySQLConfig(user=group.config.user, password=group.config.password, database=database, hosts=hosts)
    assert await demo.run_demo(config, shown), shown.getvalue()
    assert "FAILED" not in shown.getvalue()
    assert "\nAll 6 checks held" in shown.getvalue()
    assert max(map(len, shown.getvalue().splitlines())) <= 110
    group.mend()
    assert group.primary().run(f"SHOW TABLES FROM {database}") == ()
