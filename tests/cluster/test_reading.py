"""Loads read from the primary, in any order of the configured hosts and in any state of the other members."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator

import pytest

from locus_mysql import SyncCheckpointStore
from locus_mysql.cli.main import main
from locus_mysql.errors import ReadOnlyServer, Unavailable

from .conftest import EVERY_SIDE, Group, Store

OpenStore = Callable[..., Store]

one_of_each = pytest.mark.parametrize("side", ["mysql-connector-async", "pymysql-sync"])
SECRET = "Correct-horse-1"


@pytest.fixture
def plain_user(group: Group, database: str) -> Iterator[dict[str, str]]:
    """A user with the documented privileges, which do not allow reading the group's members."""
    user = f"locus_{secrets.token_hex(8)}"
    primary = group.primary()
    primary.run(f"CREATE USER {user} IDENTIFIED BY '{SECRET}'", f"GRANT ALL ON {database}.* TO {user}")
    for member in group.members:
        member.wait_for(primary.executed())
    yield {"user": user, "password": SECRET}
    group.mend()
    group.primary().run(f"DROP USER {user}")


async def test_a_load_never_reads_a_lagging_secondary(
    group: Group, open_store: OpenStore, plain_user: dict[str, str], database: str
) -> None:
    primary, (behind, _) = group.primary(), group.secondaries()
    before = open_store("pymysql-sync", primary)
    await before.save("thread", {"turn": 1}, "first")
    behind.wait_for(primary.executed())
    with behind.lagging(database):
        for turn, side in enumerate((*EVERY_SIDE, *EVERY_SIDE), 2):
            await before.save("thread", {"turn": turn}, f"turn {turn}")
            fresh = open_store(side, behind, primary, **(plain_user if turn > len(EVERY_SIDE) + 1 else {}))
            assert await fresh.load("thread") == {"turn": turn}
            assert (await fresh.list_checkpoints("thread"))[0] == f"turn {turn}"
            await fresh.save("thread", {"turn": turn, "by": side}, f"{side} {turn}")
            assert (await fresh.history("thread"))[0]["parent_id"] == f"turn {turn}"
            await fresh.close()
        assert behind.run(f"SELECT COUNT(*) FROM {database}.locus_store_checkpoints") == ((1,),)
    await before.close()


async def test_a_read_only_process_follows_a_switchover(group: Group, open_store: OpenStore, database: str) -> None:
    old, (new, _) = group.primary(), group.secondaries()
    readers = {side: open_store(side, old, new) for side in EVERY_SIDE}
    writer = open_store("pymysql-sync", new, old)
    await writer.save("thread", {"turn": 1})
    for reader in readers.values():
        assert await reader.load("thread") == {"turn": 1}
    old.run(f"SELECT group_replication_set_as_primary('{new.server_id}')")
    with old.lagging(database):
        await writer.save("thread", {"turn": 2})
        for reader in readers.values():
            assert await reader.load("thread") == {"turn": 2}
        assert old.run(f"SELECT COUNT(*) FROM {database}.locus_store_checkpoints") == ((1,),)
    for store in (writer, *readers.values()):
        await store.close()


@one_of_each
async def test_a_member_outside_its_group_is_skipped_even_if_writable(
    group: Group, open_store: OpenStore, side: str
) -> None:
    primary, (outside, _) = group.primary(), group.secondaries()
    before = open_store("pymysql-sync", primary)
    await before.save("thread", {"turn": 1})
    outside.wait_for(primary.executed())
    outside.run("STOP GROUP_REPLICATION", "SET GLOBAL super_read_only = 0", "SET GLOBAL read_only = 0")
    await before.save("thread", {"turn": 2})
    store = open_store(side, outside, primary)
    assert await store.load("thread") == {"turn": 2}
    alone = open_store(side, outside, outside, retry_deadline_s=0.5)
    with pytest.raises(Unavailable, match=f"{outside.port} is no working member of its group: its state is OFFLINE"):
        await alone.load("thread")
    for one in (before, store, alone):
        await one.close()


@one_of_each
async def test_a_recovering_member_is_skipped(group: Group, open_store: OpenStore, database: str, side: str) -> None:
    primary, (recovering, _) = group.primary(), group.secondaries()
    before = open_store("pymysql-sync", primary)
    await before.save("thread", {"turn": 1})
    recovering.wait_for(primary.executed())
    recovering.run("STOP GROUP_REPLICATION")
    await before.save("thread", {"turn": 2})
    with recovering.open() as connection, connection.cursor() as cursor:
        cursor.execute(
            f"LOCK TABLES {database}.locus_store_checkpoints READ"
        )  # transactions that it missed wait for this lock
        joining = asyncio.create_task(asyncio.to_thread(recovering.join))
        while recovering.view().get(recovering.port, ("", ""))[0] != "RECOVERING":
            assert not joining.done() or joining.exception() is None
            await asyncio.sleep(0.05)
        store = open_store(side, recovering, primary)
        assert await store.load("thread") == {"turn": 2}
        await store.save("thread", {"turn": 3})
        assert recovering.view()[recovering.port][0] == "RECOVERING"
        alone = open_store(side, recovering, recovering, retry_deadline_s=0.5)
        with pytest.raises(Unavailable, match="its state is RECOVERING"):
            await alone.load("thread")
    await joining
    for one in (before, store, alone):
        await one.close()


@one_of_each
async def test_a_single_secondary_is_refused_to_a_user_who_may_not_see_the_group(
    group: Group, open_store: OpenStore, plain_user: dict[str, str], side: str
) -> None:
    secondary, _ = group.secondaries()
    store = open_store(side, secondary, **plain_user)
    with pytest.raises(ReadOnlyServer, match="secondary of a group"):
        await store.load("thread")
    await store.close()


@one_of_each
async def test_a_read_only_store_reads_a_secondary(group: Group, open_store: OpenStore, side: str) -> None:
    primary, (secondary, _) = group.primary(), group.secondaries()
    writer = open_store("pymysql-sync", primary)
    await writer.save("thread", {"turn": 1})
    secondary.wait_for(primary.executed())
    reader = open_store(side, secondary, read_only=True)
    assert await reader.load("thread") == {"turn": 1}
    assert await reader.list_threads() == ["thread"]
    with pytest.raises(ReadOnlyServer, match="read_only=True"):
        await reader.save("thread", {"turn": 2})
    for store in (writer, reader):
        await store.close()


@one_of_each
async def test_without_a_primary_loads_and_saves_fail_and_name_the_servers(
    group: Group, open_store: OpenStore, side: str
) -> None:
    secondaries = group.secondaries()
    both = open_store(side, *secondaries, retry_deadline_s=0.5)
    with pytest.raises(ReadOnlyServer) as caught:
        await both.load("thread")
    assert all(str(secondary.port) in str(caught.value) for secondary in secondaries)
    single = open_store(side, secondaries[0])
    for call in (single.load("thread"), single.save("thread", {"turn": 1})):
        with pytest.raises(ReadOnlyServer, match="secondary of a group"):
            await call
    for one in (both, single):
        await one.close()


def test_health_warns_of_a_group_that_may_answer_with_older_states_after_a_failover(
    group: Group, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    primary, config = group.primary(), group.config
    dsn = f"mysql://{config.user}:{config.password.get_secret_value()}@{primary.host}/{database}"
    with SyncCheckpointStore(dsn, driver="pymysql") as store:
        store.save("thread", {"turn": 1})
    before = primary.ask("SELECT @@GLOBAL.group_replication_consistency")
    try:
        for consistency in ("EVENTUAL", "BEFORE_ON_PRIMARY_FAILOVER"):
            primary.run(f"SET GLOBAL group_replication_consistency = '{consistency}'")
            assert main(["health", "--dsn", dsn, "--driver", "pymysql"]) == 0
            shown = capsys.readouterr().out
            assert f"group_replication_consistency is {consistency}" in shown
            assert ("after a failover" in shown) is (consistency == "EVENTUAL")
    finally:
        primary.run(f"SET GLOBAL group_replication_consistency = '{before}'")
