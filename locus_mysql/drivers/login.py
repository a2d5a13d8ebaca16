"""Logging in, the same for every library: TLS, who may get the password in clear text, and imports of libraries.

TLS is used as MySQL's own client uses it. The libraries handle it differently: PyMySQL 1.1 and aiomysql continue in
plain text if the server has none, asyncmy starts a handshake that the server does not expect, Connector/Python's async
side cannot check the host name. So `tls_attempts` decides before each attempt whether TLS is used and with which
context. `NoTLSOffered` ends an attempt after the server's greeting, before any secret is sent.

Without TLS and without a Unix socket, the password is never sent in clear text (`check_plugin`). The libraries do not
refuse that as MySQL's own client does: Connector/Python sends it at the first login of a user with
``caching_sha2_password``, and all but its blocking side send it to a server that asks for ``mysql_clear_password``.

The modules of client libraries import each other in circles. If two threads enter such a circle at different modules,
as the asynchronous and the blocking side of Connector/Python do, each waits for the other's module; Python then lets
one of them use an incomplete module, and its first connection fails. So one thread at a time imports (`imported_once`).
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Callable
from typing import TypeVar

from ..config import ConnectionOptions, Endpoint
from ..errors import ConfigError
from .wire.sockets import BoundedContext

T = TypeVar("T")

CACHING_SHA2 = "caching_sha2_password"
_CLEAR = "mysql_clear_password"

#: The server's request for the password itself, and the client's request for the server's public key.
#: https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
FULL_LOGIN = b"\x04"
REQUEST_PUBLIC_KEY = b"\x02"
_NONCE_BYTES = 20

#: The longest password that fits into a key of 2048 bits with the padding that the protocol demands and a closing NUL.
MAX_RSA_PASSWORD_BYTES = 2048 // 8 - 42 - 1

#: Held by the thread that imports a library.
_lock = threading.RLock()


class NoTLSOffered(Exception):
    """The greeting of the server offers no TLS; the connection is dropped unused."""


def tls_attempts(config: ConnectionOptions, endpoint: Endpoint) -> tuple[ssl.SSLContext | None, ...]:
    """The contexts to try, in order; ``None`` is plain text. The next is tried only after `NoTLSOffered`.

    Raises:
        ConfigError: A certificate or key file cannot be used.
    """
    if config.ssl_mode == "DISABLED":
        return (None,)
    if config.ssl_mode == "PREFERRED":
        return (None,) if endpoint.unix_socket else (tls_context(config), None)
    return (tls_context(config),)


def tls_context(config: ConnectionOptions) -> ssl.SSLContext:
    """The context for the configured ``ssl_mode`` and files."""
    context = BoundedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = config.ssl_mode == "VERIFY_IDENTITY"
    if config.ssl_mode not in {"VERIFY_CA", "VERIFY_IDENTITY"}:
        context.verify_mode = ssl.CERT_NONE
    elif config.ssl_ca is None:
        context.load_default_certs()
    # The certificates that MySQL generates lack extensions that RFC 5280 requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    option = "ssl_ca"
    try:
        if config.ssl_ca is not None:
            context.load_verify_locations(config.ssl_ca)
        option = "ssl_cert and ssl_key"
        if config.ssl_cert is not None:
            context.load_cert_chain(config.ssl_cert, config.ssl_key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise ConfigError(f"{option} cannot be used: {reason}. Give PEM files.") from None
    return context


def no_tls(config: ConnectionOptions, endpoint: Endpoint) -> ConfigError:
    """Return the error to raise when every attempt ended with `NoTLSOffered`."""
    return ConfigError(
        f"ssl_mode is {config.ssl_mode}, but the server at {endpoint} offers no TLS. Switch TLS on in the "
        "server, or use ssl_mode DISABLED on a network you trust."
    )


def check_plugin(plugin: str, config: ConnectionOptions, endpoint: Endpoint, tls: ssl.SSLContext | None) -> None:
    """Refuse a server that asks for the password in clear text, unless the server is verified.

    It is verified over a Unix socket, and where TLS has checked its certificate. With ``cleartext_password`` any TLS is
    accepted.

    Args:
        plugin: The authentication plugin that the server proposes or asks for.
        config: The options, with ``cleartext_password``.
        endpoint: Where the server is.
        tls: The context in use; None without TLS.

    Raises:
        ConfigError: The password could be read in transit, or by an impostor of the server.
    """
    if plugin != _CLEAR or endpoint.unix_socket is not None:
        return
    asks = f"The server at {endpoint} asks for the password in clear text"
    if tls is None:
        raise ConfigError(f"{asks}, and the connection has no TLS. Use TLS.")
    if tls.verify_mode != ssl.CERT_REQUIRED and not config.cleartext_password:
        raise ConfigError(
            f"{asks}, and its certificate is not verified. Set ssl_mode to VERIFY_IDENTITY or VERIFY_CA with ssl_ca; "
            "or cleartext_password=True, if you trust the network."
        )


def encrypt_password(password: str, nonce: bytes, public_key: bytes) -> bytes:
    """Return the password as a full login of ``caching_sha2_password`` sends it.

    Args:
        password: In clear text.
        nonce: The nonce of the server's greeting, or of its request for this login.
        public_key: The server's RSA key (PEM).

    Raises:
        ImportError: The package ``cryptography`` is not installed.
    """
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    clear = password.encode() + b"\0"
    pad = (nonce[:_NONCE_BYTES] * (len(clear) // _NONCE_BYTES + 1))[: len(clear)]
    mixed = bytes(one ^ other for one, other in zip(clear, pad, strict=True))
    key = serialization.load_pem_public_key(public_key)
    if not isinstance(key, rsa.RSAPublicKey):
        raise TypeError("the server's public key is not an RSA key")
    scheme = padding.OAEP(
        mgf=padding.MGF1(algorithm=hashes.SHA1()),  # noqa: S303 - the protocol demands SHA-1
        algorithm=hashes.SHA1(),  # noqa: S303 - the protocol demands SHA-1
        label=None,
    )
    return key.encrypt(mixed, scheme)


def imported_once(make: Callable[[], T]) -> Callable[[], T]:
    """Keep what a function returns, which imports a library. No two threads run such functions at the same time."""
    made: list[T] = []

    def get() -> T:
        if not made:
            with _lock:
                if not made:
                    made.append(make())
        return made[0]

    return get


if hasattr(os, "register_at_fork"):
    # A child that is forked during an import would wait for it forever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
