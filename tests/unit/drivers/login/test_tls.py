"""``ssl_mode`` has the same meaning as in MySQL's own client."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.login import tls_context
from locus_mysql.errors import ConfigError


@pytest.mark.parametrize(
    ("mode", "verify", "check_host"),
    [
        ("PREFERRED", ssl.CERT_NONE, False),
        ("REQUIRED", ssl.CERT_NONE, False),
        ("VERIFY_CA", ssl.CERT_REQUIRED, False),
        ("VERIFY_IDENTITY", ssl.CERT_REQUIRED, True),
    ],
)
def test_certificate_verification_depends_on_the_mode(mode: str, verify: ssl.VerifyMode, check_host: bool) -> None:
    context = tls_context(MySQLConfig(ssl_mode=mode))
    assert (context.verify_mode, context.check_hostname) == (verify, check_host)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_file_that_holds_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing of that kind")
    with pytest.raises(ConfigError, match="ssl_ca cannot be used"):
        tls_context(MySQLConfig(ssl_mode="VERIFY_CA", ssl_ca=file))
    with pytest.raises(ConfigError, match="ssl_cert and ssl_key cannot be used"):
        tls_context(MySQLConfig(ssl_mode="REQUIRED", ssl_cert=file, ssl_key=file))
