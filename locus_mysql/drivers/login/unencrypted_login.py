"""Which servers may get the password in clear text, and how to log in over connections that can be intercepted.

Without TLS and without a Unix socket, the password is never sent in clear text. MySQL's own client refuses that, but
the libraries do not: Connector/Python sends it at the first login of a user with ``caching_sha2_password``, and all but
its blocking side send it to a server that asks for ``mysql_clear_password``.
"""

from __future__ import annotations

import ssl

from ...config import ConnectionOptions, Endpoint
from ...errors import ConfigError

CACHING_SHA2 = "caching_sha2_password"
_CLEAR = "mysql_clear_password"

#: The server's request for the password itself, and the client's request for the server's public key.
#: https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
FULL_LOGIN = b"\x04"
REQUEST_PUBLIC_KEY = b"\x02"
_NONCE_BYTES = 20

#: The longest password that fits into a key of 2048 bits with the padding that the protocol demands and a closing NUL.
MAX_RSA_PASSWORD_BYTES = 2048 // 8 - 42 - 1


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
