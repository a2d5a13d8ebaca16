"""The password is sent in clear text only to verified servers."""

from __future__ import annotations

import ssl

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from locus_mysql.config import Endpoint, MySQLConfig
from locus_mysql.drivers.login.unencrypted_login import check_plugin, encrypt_password
from locus_mysql.errors import ConfigError


@pytest.mark.parametrize("password", ["", "x", "pä😀", "a password longer than the twenty bytes of a nonce"])
def test_the_server_s_key_opens_the_password(password: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    nonce = bytes(range(1, 21))
    encrypted = encrypt_password(password, nonce + b"\0", pem)
    scheme = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)
    mixed = key.decrypt(encrypted, scheme)
    assert bytes(byte ^ nonce[i % 20] for i, byte in enumerate(mixed)) == password.encode() + b"\0"


HERE = Endpoint("db", 3306)
CLEAR = "mysql_clear_password"


def tls(verify_mode: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = verify_mode
    return context


def test_only_clear_text_is_refused() -> None:
    for plugin in ("caching_sha2_password", "mysql_native_password", "sha256_password", ""):
        check_plugin(plugin, MySQLConfig(), HERE, None)
    with pytest.raises(ConfigError, match=r"db:3306 asks .* no TLS"):
        check_plugin(CLEAR, MySQLConfig(), HERE, None)
    with pytest.raises(ConfigError, match="no TLS"):
        check_plugin(CLEAR, MySQLConfig(cleartext_password=True), HERE, None)
    with pytest.raises(ConfigError, match=r"not verified.*VERIFY_IDENTITY.*cleartext_password"):
        check_plugin(CLEAR, MySQLConfig(), HERE, tls(ssl.CERT_NONE))


def test_a_server_that_is_known_and_one_that_is_allowed_get_it() -> None:
    check_plugin(CLEAR, MySQLConfig(), HERE, tls(ssl.CERT_REQUIRED))
    check_plugin(CLEAR, MySQLConfig(cleartext_password=True), HERE, tls(ssl.CERT_NONE))
    check_plugin(CLEAR, MySQLConfig(), Endpoint("localhost", 3306, "/run/mysqld.sock"), None)
