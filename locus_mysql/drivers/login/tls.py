"""TLS as MySQL's own client does it, for every library alike.

The libraries handle TLS differently: PyMySQL 1.1 and aiomysql continue in plain text if the server has none,
asyncmy starts a handshake the server does not expect, Connector/Python's async side cannot check the host
name. So the libraries decide nothing: this module decides before each attempt whether TLS is used and with which
context. `NoTLSOffered` ends an attempt after the server's greeting, before any secret is sent.
"""

from __future__ import annotations

import ssl

from ...config import ConnectionOptions, Endpoint
from ...errors import ConfigError
from ..wire.deadlines import BoundedContext


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
