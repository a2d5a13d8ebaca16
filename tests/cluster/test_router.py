"""Through MySQL Router: writes follow the primary, loads for reads are never stale, and certificates are verified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.errors import ConfigError, ReadOnlyServer, SetupError

from .conftest import EVERY_SIDE, Group, Member, Store, router_addresses
from .test_failover import state_of

OpenThrough = Callable[..., Store]

one_of_each = pytest.mark.parametrize("side", ["mysql-connector-async", "pymysql-sync"])
every_side = pytest.mark.parametrize("side", EVERY_SIDE)


@pytest.fixture
def open_through(database: str) -> OpenThrough:
    """``open_through(side, port, **options)`` opens a store at a port of the Router, over TLS that is verified.

    The ports for TLS end to end show the members' certificate, and the others the Router's, of another authority.
    """
    addresses = router_addresses()

    def open_one(side: str, port: str, **options: Any) -> Store:
        tls = {"ssl_mode": "VERIFY_CA", "ssl_ca": addresses[authority_of(port)]}
        at = MySQLConfig(dsn=addresses[port])
        address = {} if "hosts" in options else {"host": at.host, "port": at.port}
        given = {"user": at.user, "password": at.password, "database": database}
        return Store(side, MySQLConfig(**{**address, **given, **tls, **options}))

    return open_one


def authority_of(port: str) -> str:
    """Return the name of the authority whose certificate a client sees at a port."""
    return "members_authority" if port.startswith("passthrough") else "authority"


def make_primary(group: Group, member: Member) -> None:
    """Move the group's primary, as for maintenance."""
    group.primary().run(f"SELECT group_replication_set_as_primary('{member.server_id}')")


@every_side
@pytest.mark.parametrize("port", ["writes", "passthrough"])
async def test_saves_and_loads_go_through_the_port_for_writes_encrypted_to_the_server(
    group: Group, open_through: OpenThrough, database: str, side: str, port: str
) -> None:
    store = open_through(side, port)
    await store.save("thread", state_of(1))
    assert await store.load("thread") == state_of(1)
    sessions = group.primary().run(
        "SELECT connection_type, attr_value FROM performance_schema.threads"
        " LEFT JOIN performance_schema.session_connect_attrs"
        "  ON session_connect_attrs.processlist_id = threads.processlist_id AND attr_name = '_client_ssl_cipher'"
        f" WHERE processlist_db = '{database}' AND type = 'FOREGROUND'"
    )
    assert sessions
    assert {encryption for encryption, _ in sessions} == {"SSL/TLS"}
    if port == "writes":  # the Router re-encrypts, and reports the client side's cipher
        assert all("AES" in str(cipher) or "CHACHA" in str(cipher) for _, cipher in sessions)
    await store.close()


@every_side
@pytest.mark.parametrize(("port", "others"), [("writes", "members_authority"), ("passthrough", "authority")])
async def test_a_client_refuses_a_certificate_that_is_not_of_its_authority(
    open_through: OpenThrough, side: str, port: str, others: str
) -> None:
    """With TLS end to end the Router, which lacks the members' key, cannot stand in for them."""
    store = open_through(side, port, ssl_ca=router_addresses()[others])
    with pytest.raises(ConfigError, match="not trusted"):
        await store.save("thread", state_of(1))
    await store.close()


@every_side
async def test_the_routers_certificate_is_also_checked_for_its_host(open_through: OpenThrough, side: str) -> None:
    store = open_through(side, "writes", ssl_mode="VERIFY_IDENTITY")
    await store.save("thread", state_of(1))
    assert await store.load("thread") == state_of(1)
    await store.close()
    store = open_through(side, "passthrough", ssl_mode="VERIFY_IDENTITY")  # the members' certificate names no host
    with pytest.raises(ConfigError, match="not trusted"):
        await store.load("thread")
    await store.close()


@pytest.mark.parametrize(("way", "port"), [("move", "writes"), ("kill", "writes"), ("kill", "passthrough")])
async def test_calls_through_the_router_follow_the_primary(
    group: Group, open_through: OpenThrough, way: str, port: str
) -> None:
    old, (new, _) = group.primary(), group.secondaries()
    host = str(MySQLConfig(dsn=router_addresses()[port]).endpoints[0])
    options = {"hosts": (host, host)} if port == "passthrough" else {}  # as docs/servers.md says
    stores = {side: open_through(side, port, retry_deadline_s=90, **options) for side in EVERY_SIDE}
    for side, store in stores.items():
        await asyncio.gather(*(store.save(f"{side} {number}", state_of(1), "first") for number in range(3)))
    if way == "move":
        make_primary(group, new)
    else:
        old.kill()

    async def call(side: str, store: Store) -> None:
        assert await store.load(f"{side} 0") == state_of(1)
        await asyncio.gather(*(store.save(f"{side} {number}", state_of(2), "second") for number in range(3)))
        assert await store.list_checkpoints(f"{side} 2") == ["second", "first"]

    await asyncio.gather(*(call(side, store) for side, store in stores.items()))
    assert group.primary() is not old
    for store in stores.values():
        await store.close()


SECONDARY = r"secondary of a group.*port of MySQL Router for writes.*read_only"
SPLITS = r"splits reads from writes.*port for writes.*read_only"


@every_side
@pytest.mark.parametrize(
    ("port", "pipeline", "error", "words"),
    [
        ("reads", True, ReadOnlyServer, SECONDARY),
        ("passthrough_reads", True, ReadOnlyServer, SECONDARY),
        ("splitting", True, SetupError, SPLITS),
        ("splitting", False, SetupError, SPLITS),
    ],
)
async def test_a_port_for_reads_refuses_loads_and_saves_except_to_only_read(
    group: Group,
    open_through: OpenThrough,
    side: str,
    port: str,
    pipeline: bool,
    error: type[Exception],
    words: str,
) -> None:
    writer = open_through(side, "writes")
    await writer.save("thread", state_of(1))
    executed = group.primary().executed()
    for member in group.members:
        member.wait_for(executed)
    store = open_through(side, port, pipeline=pipeline)
    for call in (lambda: store.load("thread"), lambda: store.save("thread", state_of(2))):
        with pytest.raises(error, match=words):
            await call()
    reading = open_through(side, port, read_only=True, pipeline=port != "splitting")
    assert await reading.load("thread") == state_of(1)
    assert await writer.load("thread") == state_of(1)
    for one in (writer, store, reading):
        await one.close()


@one_of_each
async def test_two_routers_are_named_as_hosts(group: Group, open_through: OpenThrough, side: str) -> None:
    """Both hosts are one Router: each packet then checks that its server is the primary, even if TLS hides it."""
    new, _ = group.secondaries()
    host = str(MySQLConfig(dsn=router_addresses()["passthrough"]).endpoints[0])
    store = open_through(side, "passthrough", hosts=(host, host))
    await store.save("thread", state_of(1))
    make_primary(group, new)
    await store.save("thread", state_of(2))
    assert await store.load("thread") == state_of(2)
    await store.close()
