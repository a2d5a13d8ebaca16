"""Logging in where others may read along: no TLS, no Unix socket. The password never travels in clear text.

MySQL's own client refuses to send it so, and the libraries do not: Connector/Python sends it at the first login of a
user with ``caching_sha2_password``, and all but its blocking side send it to a server that asks for
``mysql_clear_password``.
"""

from __future__ import annotations

from ..errors import ConfigError

CACHING_SHA2 = "caching_sha2_password"

#: What the server sends when it needs the password itself, and the client to get its public key.
#: https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
FULL_LOGIN = b"\x04"
REQUEST_PUBLIC_KEY = b"\x02"
_NONCE_BYTES = 20


def check_plugin(plugin: str) -> None:
    """Refuse a server that asks for the password in clear text.

    Raises:
        ConfigError: It does.
    """
    if plugin == "mysql_clear_password":
        raise ConfigError("The server asks for the password in clear text, and the connection has no TLS. Use TLS.")


def encrypt_password(password: str, nonce: bytes, public_key: bytes) -> bytes:
    """The password as a full login of ``caching_sha2_password`` sends it.

    Args:
        password: In clear text.
        nonce: What the server sent with its greeting, or when it asked for this login.
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
        mgf=padding.MGF1(algorithm=hashes.SHA1()),  # noqa: S303 - the protocol says SHA-1
        algorithm=hashes.SHA1(),  # noqa: S303 - the protocol says SHA-1
        label=None,
    )
    return key.encrypt(mixed, scheme)
