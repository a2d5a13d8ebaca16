"""The password is sent in clear text only to verified servers."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from locus_mysql.drivers.login import encrypt_password


@pytest.mark.parametrize("password", ["", "x", "pä😀", "a password longer than the twenty bytes of a nonce"])
def test_the_server_s_key_opens_the_password(password: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    nonce = bytes(range(1, 21))
    encrypted = encrypt_password(password, nonce + b"\0", pem)
    scheme = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
    mixed = key.decrypt(encrypted, scheme)
    assert bytes(byte ^ nonce[i % 20] for i, byte in enumerate(mixed)) == password.encode() + b"\0"
