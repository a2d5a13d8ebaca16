"""The statements that begin and end the transaction of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dialect import Statement
from ..drivers.interface import DriverError
from .commands import CommandGenerator

if TYPE_CHECKING:
    from .pool import ServerConnection

#: The server ends a session whose transaction waits for the client's next packet for longer, in seconds. After an
#: error, a transaction is open until the client sends ROLLBACK. Without this limit, the locks of a client that has
#: vanished silently would stay for ``wait_timeout``, 8 hours by default.
IDLE_IN_TRANSACTION_S = 20

# MySQL has no limit for idle transactions, and `wait_timeout` is also the limit of idle pooled connections. So each
# transaction sets it at its beginning and its end. It begins and ends by `autocommit`, which one SET changes as well:
# processor time of the server for one UPDATE in a transaction 51 µs, instead of 43 without a limit, and 59 if SET
# statements stand beside START TRANSACTION and COMMIT.
BEGIN = Statement(f"SET autocommit=0,wait_timeout={IDLE_IN_TRANSACTION_S}")
COMMIT = Statement("SET autocommit=1,wait_timeout=DEFAULT")
ROLLBACK = Statement("ROLLBACK")


def roll_back(primary: ServerConnection, *after: Statement) -> CommandGenerator[None]:
    """Undo the open transaction, and execute statements after it; drop the connection if that fails."""
    try:
        yield from primary.execute((ROLLBACK, COMMIT, *after))  # COMMIT resets `autocommit` and the limit
    except DriverError:  # the transaction may still be open, and must not be continued by another call
        primary.connection.abort()
