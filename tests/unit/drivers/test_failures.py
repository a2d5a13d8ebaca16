"""Translation of the libraries' exceptions, tested with exceptions of the same shapes."""

from __future__ import annotations

import asyncio
import ssl
import struct

import pytest

from locus_mysql.config import Endpoint
from locus_mysql.drivers.failures import ends_connection, translate
from locus_mysql.drivers.interface import ConnectionLost, ServerError
from locus_mysql.errors import ConfigError, DriverMissing, UnsupportedServer

HERE = Endpoint("db.example", 3306)


class PyMySQLShaped(Exception):
    """An exception with number and text as arguments."""


class ConnectorShaped(Exception):
    """An exception with number and text as attributes."""

    def __init__(self, errno: int, msg: str) -> None:
        super().__init__(errno, msg)
        self.errno = errno
        self.msg = msg


class ReadTimeoutError(ConnectorShaped):
    """Like Connector/Python's exception, which has an error number of the server."""


@pytest.mark.parametrize("shape", [PyMySQLShaped, ConnectorShaped])
@pytest.mark.parametrize("number", [1045, 1062, 1205, 1213, 1317, 3024, 3572, 4092, 6000])
def test_a_number_of_the_server_s_is_a_server_error(shape: type[Exception], number: int) -> None:
    error = translate(shape(number, "in its own words"), HERE)
    assert isinstance(error, ServerError)
    assert (error.errno, error.message) == (number, "in its own words")
    assert not ends_connection(error)


@pytest.mark.parametrize("shape", [PyMySQLShaped, ConnectorShaped])
@pytest.mark.parametrize("number", [2002, 2003, 2006, 2013, 2014, 2055, 1053, 1927, 3169, 4031])
def test_a_number_of_the_client_s_or_a_goodbye_is_a_lost_connection(shape: type[Exception], number: int) -> None:
    error = translate(shape(number, "gone"), HERE)
    assert isinstance(error, ConnectionLost)
    assert not error.connecting
    assert ends_connection(error)


@pytest.mark.parametrize(
    "error",
    [
        OSError(104, "Connection reset by peer"),
        ConnectionRefusedError(111, "Connection refused"),
        BrokenPipeError(32, "Broken pipe"),
        TimeoutError(),
        asyncio.IncompleteReadError(b"secret", 10),
        struct.error("unpack requires a buffer of 4 bytes"),
        AssertionError("Protocol error, expecting EOF"),
        IndexError("secret"),
        ssl.SSLError("unexpected eof"),
        ReadTimeoutError(3024, "timed out"),
        PyMySQLShaped("no number"),
        PyMySQLShaped(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_anything_else_is_a_lost_connection_that_names_the_server(error: Exception) -> None:
    lost = translate(error, HERE, connecting=True)
    assert isinstance(lost, ConnectionLost)
    assert lost.connecting
    assert str(lost).startswith("Cannot connect to MySQL at db.example:3306: ")
    assert "secret" not in str(lost)


def test_a_packet_too_large_ends_the_connection() -> None:
    error = translate(PyMySQLShaped(1153, "Got a packet bigger than 'max_allowed_packet' bytes"), HERE)
    assert isinstance(error, ServerError)
    assert ends_connection(error)


def test_a_certificate_that_is_not_trusted_is_the_configuration_s_fault() -> None:
    refusal = ssl.SSLCertVerificationError(1, "certificate verify failed")
    refusal.verify_message = "self-signed certificate in certificate chain"
    wrapped = PyMySQLShaped(2003, "Can't connect")
    wrapped.__cause__ = refusal
    error = translate(wrapped, HERE, connecting=True)
    assert isinstance(error, ConfigError)
    assert "self-signed certificate" in str(error)


def test_a_missing_cryptography_is_a_missing_package() -> None:
    reason = RuntimeError(
        "'cryptography' package is required for sha256_password or caching_sha2_password auth methods"
    )
    assert isinstance(translate(reason, HERE, connecting=True), DriverMissing)


def test_our_own_exceptions_stay_themselves() -> None:
    for error in (UnsupportedServer("old"), ConnectionLost("gone"), ServerError(1, "no")):
        assert translate(error, HERE) is error


def test_a_chain_that_is_a_ring_ends() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert isinstance(translate(one, HERE), ConnectionLost)
