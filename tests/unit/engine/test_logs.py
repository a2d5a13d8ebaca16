"""Content of errors in log messages."""

from __future__ import annotations

import pytest

from locus_mysql.config import MySQLConfig
from locus_mysql.drivers.interface import ConnectionLost, PacketTooLarge, ServerError
from locus_mysql.engine.cluster.topology import NoPrimary, NotAMember
from locus_mysql.engine.failures import explain
from locus_mysql.engine.logs import loggable, loggable_setup
from locus_mysql.errors import CorruptCheckpoint, SetupError, Unavailable


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ServerError(1062, "Duplicate entry 'acme-support/42' for key 'PRIMARY'"), "error 1062"),
        (ConnectionLost("Lost MySQL at db:3306: timed out."), "Lost MySQL at db:3306: timed out"),
        (ConnectionLost("Lost it: (1062, \"Duplicate entry 'secret\" for key 'a'"), "Lost it: (1062,"),
        (ConnectionLost("Lost it: the server's word: 'secret"), "Lost it: the server's word:"),
        (ConnectionLost("a line\nand \x1b[31manother"), "a line and  [31manother"),
        (NotAMember("MySQL at db:3306 is cut off from its group."), "MySQL at db:3306 is cut off from its group"),
        (NoPrimary([ServerError(1290, "secret"), ConnectionLost("No answer.")]), "error 1290; No answer"),
        (PacketTooLarge(10, 5), "A statement of 10 bytes exceeds max_allowed_packet, 5 bytes"),
        (CorruptCheckpoint("thread 'secret'"), "CorruptCheckpoint"),
        (KeyError("secret"), "KeyError"),
    ],
)  # fmt: skip
def test_log_messages_contain_no_data(error: Exception, words: str) -> None:
    assert loggable(error) == words


def test_log_messages_contain_the_cause_of_our_own_errors() -> None:
    error = Unavailable("thread 'secret'")
    error.__cause__ = ServerError(1213, "secret")
    assert loggable(error) == "Unavailable (error 1213)"


def test_a_long_reason_is_cut() -> None:
    assert len(loggable(ConnectionLost("a" * 10_000))) == 300


def test_the_log_of_a_setup_error_has_the_advice_but_not_the_server_s_message() -> None:
    config = MySQLConfig(host="db", database="app", user="ann")
    for number, words in ((1142, "INSERT command denied to 'SECRET'."), (1366, "Incorrect string value: 'SECRET'")):
        cause = ServerError(number, words)
        error = explain(cause, config)
        assert isinstance(error, SetupError)
        assert "SECRET" in str(error)
        error.__cause__ = cause
        assert f"error {number}" in loggable_setup(error)
        assert "SECRET" not in loggable_setup(error)
    assert loggable_setup(SetupError("Make the tables.")) == "Make the tables."
    error = SetupError("SECRET")
    error.__cause__ = ConnectionLost("cut")
    assert loggable_setup(error) == "SetupError (cut)"
