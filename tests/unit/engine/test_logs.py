"""What of an error may stand in a log."""

from __future__ import annotations

import pytest

from locus_mysql.drivers.interface import ConnectionLost, PacketTooLarge, ServerError
from locus_mysql.engine.logs import told
from locus_mysql.engine.topology import NoPrimary, NotAMember
from locus_mysql.errors import CorruptCheckpoint, Unavailable


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
def test_no_data_is_told(error: Exception, words: str) -> None:
    assert told(error) == words


def test_the_cause_of_our_own_errors_is_told() -> None:
    error = Unavailable("thread 'secret'")
    error.__cause__ = ServerError(1213, "secret")
    assert told(error) == "Unavailable (error 1213)"


def test_a_long_reason_is_cut() -> None:
    assert len(told(ConnectionLost("a" * 10_000))) == 300
