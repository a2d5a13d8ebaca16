"""TLS and logins work the same with every library, and no secret is sent unencrypted."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ci.certificates import self_signed
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.errors import ConfigError

from ..conftest import MakeConfig
from ..proxy import WireProxy, without_tls
from .conftest import Connect
from .sides import DriverConnection, DriverSide

RunSQL = Callable[..., tuple[Any, ...]]

PASSWORD = "pä$$'wörd😀\\ "


@pytest.fixture
def user(run_sql: RunSQL, database: str) -> Iterator[str]:
    """Yield a new user. Its first login must be a full one, as the server has not cached its hash yet."""
    name = f"locus_{secrets.token_hex(6)}"
    run_sql(f"CREATE USER {name}@'%%' IDENTIFIED WITH caching_sha2_password BY %s", PASSWORD)
    run_sql(f"GRANT ALL ON {database}.* TO {name}@'%'")
    yield name
    run_sql(f"DROP USER {name}@'%'")


@pytest.fixture
def unix_socket(run_sql: RunSQL) -> str:
    ((path,),) = run_sql("SELECT @@socket")
    if not Path(path).is_socket():
        pytest.skip(f"the server's socket {path} is not on this machine")
    return str(path)


@pytest.fixture
def server_ca(run_sql: RunSQL) -> Path:
    ((datadir, ca),) = run_sql("SELECT @@datadir, @@ssl_ca")
    path = Path(datadir, ca)
    try:
        path.read_bytes()
    except OSError:
        pytest.skip(f"the server's certificate authority {path} cannot be read here")
    return path


async def cipher(line: DriverConnection) -> str:
    ((_, name),) = await line.rows("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
    return str(name)


@pytest.mark.parametrize("mode", ["PREFERRED", "REQUIRED"])
async def test_tls_is_used_where_wanted(connect: Connect, mode: str) -> None:
    assert await cipher(await connect(ssl_mode=mode))


async def test_tls_is_not_used_where_disabled(connect: Connect) -> None:
    assert not await cipher(await connect(ssl_mode="DISABLED"))


async def test_preferred_takes_a_server_without_tls(connect: Connect, proxy: WireProxy) -> None:
    proxy.greeting = without_tls
    line = await connect(host="127.0.0.1", port=proxy.port, ssl_mode="PREFERRED")
    assert not await cipher(line)


@pytest.mark.parametrize("mode", ["REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"])
async def test_all_other_modes_refuse_a_server_without_tls_and_send_nothing(
    side: DriverSide, make_config: MakeConfig, proxy: WireProxy, mode: str
) -> None:
    proxy.greeting = without_tls
    with pytest.raises(ConfigError, match="offers no TLS"):
        await side.open(make_config(host="127.0.0.1", port=proxy.port, ssl_mode=mode))
    assert proxy.total.bytes_sent == 0


async def test_a_trusted_authority_is_accepted(connect: Connect, server_ca: Path) -> None:
    assert await cipher(await connect(ssl_mode="VERIFY_CA", ssl_ca=server_ca))


async def test_an_authority_that_is_not_trusted_is_refused(side: DriverSide, make_config: MakeConfig) -> None:
    with pytest.raises(ConfigError, match="not trusted: self-signed"):
        await side.open(make_config(ssl_mode="VERIFY_CA"))


async def test_a_certificate_for_another_host_is_refused(
    side: DriverSide, make_config: MakeConfig, server_ca: Path
) -> None:
    with pytest.raises(ConfigError, match=r"not trusted: .*mismatch"):
        await side.open(make_config(ssl_mode="VERIFY_IDENTITY", ssl_ca=server_ca))


async def test_a_user_who_needs_a_certificate_shows_it(
    connect: Connect, side: DriverSide, make_config: MakeConfig, run_sql: RunSQL, server_ca: Path, user: str
) -> None:
    run_sql(f"ALTER USER {user}@'%' REQUIRE X509")
    login = {"user": user, "password": PASSWORD, "ssl_mode": "REQUIRED"}
    with pytest.raises(ServerError, match="1045"):
        await side.open(make_config(**login))
    own = {"ssl_cert": server_ca.with_name("client-cert.pem"), "ssl_key": server_ca.with_name("client-key.pem")}
    line = await connect(**login, **own)
    assert (await line.value("SELECT USER()")).startswith(user)


@pytest.mark.parametrize("mode", ["DISABLED", "REQUIRED"])
async def test_a_first_login_with_a_password_works_with_and_without_tls(connect: Connect, user: str, mode: str) -> None:
    for _ in range(2):  # the second login uses the hash that the server has cached
        line = await connect(user=user, password=PASSWORD, ssl_mode=mode)
        assert (await line.value("SELECT USER()")).startswith(user)


async def test_a_first_login_without_tls_does_not_show_the_password(
    connect: Connect, user: str, proxy: WireProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = bytearray()
    forward = socket.socket.sendall

    def spy(sock: socket.socket, data: bytes) -> None:
        sent.extend(data)
        forward(sock, data)

    monkeypatch.setattr(socket.socket, "sendall", spy)  # the proxy's, in both directions
    await connect(host="127.0.0.1", port=proxy.port, user=user, password=PASSWORD, ssl_mode="DISABLED")
    assert user.encode() in sent
    assert PASSWORD.encode() not in sent


@pytest.mark.parametrize("mode", ["PREFERRED", "DISABLED", "REQUIRED"])
async def test_a_unix_socket_has_tls_only_if_required(connect: Connect, user: str, unix_socket: str, mode: str) -> None:
    line = await connect(unix_socket=unix_socket, user=user, password=PASSWORD, ssl_mode=mode)
    assert bool(await cipher(line)) == (mode == "REQUIRED")


@pytest.mark.parametrize("proposed", ["caching_sha2_password", "mysql_clear_password"])
async def test_a_server_that_asks_for_the_password_in_clear_text_does_not_get_it(
    side: DriverSide, make_config: MakeConfig, proposed: str
) -> None:
    heard = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_ask_for_clear_password, args=(listener, proposed, heard))
        thread.start()
        with pytest.raises((ConfigError, ConnectionLost)):  # which one depends on the library
            await side.open(
                make_config(
                    host="127.0.0.1",
                    port=listener.getsockname()[1],
                    password="hunter2",
                    ssl_mode="DISABLED",
                    connect_timeout_s=2,
                )
            )
        await asyncio.to_thread(thread.join)
    assert b"hunter2" not in heard


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a self-signed certificate for 127.0.0.1, with its key."""
    return self_signed(tmp_path_factory.mktemp("certificate") / "server.pem")


@pytest.mark.parametrize("proposed", ["caching_sha2_password", "mysql_clear_password"])
@pytest.mark.parametrize(
    ("mode", "allowed", "gets_it"),
    [
        ("PREFERRED", False, False),
        ("REQUIRED", False, False),
        ("REQUIRED", True, True),
        ("VERIFY_CA", False, True),
        ("VERIFY_IDENTITY", False, True),
    ],
)
async def test_over_tls_only_a_server_that_is_known_or_allowed_gets_the_password_in_clear_text(
    side: DriverSide, make_config: MakeConfig, certificate: Path, mode: str, allowed: bool, gets_it: bool, proposed: str
) -> None:
    heard = bytearray()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_ask_for_clear_password, args=(listener, proposed, heard, tls))
        thread.start()
        with pytest.raises(ServerError if gets_it else ConfigError, match="1045" if gets_it else "not verified"):
            await side.open(
                make_config(
                    host="127.0.0.1",
                    port=listener.getsockname()[1],
                    password="hunter2",
                    ssl_mode=mode,
                    ssl_ca=certificate if mode.startswith("VERIFY") else None,
                    cleartext_password=allowed,
                    connect_timeout_s=5,
                )
            )
        await asyncio.to_thread(thread.join)
    assert (b"hunter2" in heard) == gets_it


def _ask_for_clear_password(
    listener: socket.socket, proposed: str, heard: bytearray, tls: ssl.SSLContext | None = None
) -> None:
    flags = 0x00FF_FFFF & ~(1 << 11) | (tls is not None) << 11  # all capabilities; TLS only with a context
    greeting = (
        b"\x0a8.0.36\0\x01\0\0\0"
        + b"a" * 8
        + b"\0"
        + (flags & 0xFFFF).to_bytes(2, "little")
        + b"\xff\x02\0"
        + (flags >> 16).to_bytes(2, "little")
        + b"\x15"
        + bytes(10)
        + b"b" * 12
        + b"\0"
        + proposed.encode()
        + b"\0"
    )
    sock, _ = listener.accept()
    with sock:
        sock.settimeout(5)
        sock.sendall(len(greeting).to_bytes(3, "little") + b"\0" + greeting)
        with suppress(OSError):  # the client may refuse and disconnect at any time
            if tls is None:
                _switch_to_clear_password(sock, 2, heard)
                return
            heard += sock.recv(_TLS_REQUEST_BYTES)
            with tls.wrap_socket(sock, server_side=True) as private:
                _switch_to_clear_password(private, 3, heard)


_TLS_REQUEST_BYTES = 36


def _switch_to_clear_password(sock: socket.socket, number: int, heard: bytearray) -> None:
    heard += sock.recv(65536)
    switch = b"\xfemysql_clear_password\0"
    refusal = b"\xff" + (1045).to_bytes(2, "little") + b"#28000no"
    sock.sendall(len(switch).to_bytes(3, "little") + bytes((number,)) + switch)
    heard += sock.recv(65536)
    sock.sendall(len(refusal).to_bytes(3, "little") + bytes((number + 2,)) + refusal)
