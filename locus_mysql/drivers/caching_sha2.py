"""The full login of ``caching_sha2_password`` without TLS: the server's public key encrypts the password.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html
PyMySQL, aiomysql and asyncmy do it themselves; Connector/Python does not.
"""

from __future__ import annotations

FULL_LOGIN = b"\x04"
REQUEST_PUBLIC_KEY = b"\x02"
_NONCE_BYTES = 20


def encrypt_password(password: str, nonce: bytes, public_key: bytes) -> bytes:
    """The password as the server expects it.

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
