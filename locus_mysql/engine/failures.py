"""What an error means: whether to try again, and what to tell the caller. Data and pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..drivers.interface import (
    ConnectionLost,
    DriverError,
    PacketTooLarge,
    ReadLimitReached,
    ServerError,
)
from ..errors import (
    AnswerTooLarge,
    AuthenticationFailed,
    DatabaseMissing,
    LocusMySQLError,
    PrivilegeMissing,
    ReadOnlyServer,
    SchemaMismatch,
    SetupError,
    StateTooLarge,
    Unavailable,
)
from .topology import NoPrimary, NotAMember

if TYPE_CHECKING:
    from ..config import ConnectionOptions

# Numbers: https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html
DUPLICATE = 1062

#: The error by which the guards of batches fail where a lock was not taken: "Invalid JSON text".
GUARD_FAILED = 3141

#: Somebody ended the statement with ``KILL QUERY``. It may succeed when it is sent again.
INTERRUPTED = 1317

#: A SELECT ran longer than ``max_execution_time``.
OVERTIME = 3024

#: The transaction was undone. It may succeed when it is tried again.
CONTENTION = frozenset(
    {
        1205,  # lock wait timeout
        1213,  # deadlock
        1412,  # table definition changed
        1613,  # XA: transaction was rolled back by a timeout
        3058,  # user-level lock deadlock
        3101,  # rolled back by the plugin: a group replication conflict
        3572,  # lock not available at once
    }
)

#: The server takes no more connections for the moment.
CROWDED = frozenset({1040, 1203, 1226})

#: The server takes no writes. It may be a replica, or have been the primary before.
READ_ONLY = frozenset({1290, 1792, 1836, 3100})

_AUTHENTICATION = frozenset({1045, 1251, 1698, 1820, 1862, 3118, 3955})
_PRIVILEGE = frozenset({1044, 1142, 1143, 1227, 1370})
_TABLE_MISSING = frozenset({1146})
_LAYOUT = frozenset({1048, 1054, 1136, 1176, 1191, 1364})
_PACKET = frozenset({1153, 1301})


def may_pass(error: DriverError, config: ConnectionOptions) -> bool:
    """Whether what failed with this error may succeed when it is tried again."""
    if isinstance(error, NoPrimary):
        return any(may_pass(reason, config) for reason in error.reasons)
    if isinstance(error, ConnectionLost | NotAMember):
        return True
    if isinstance(error, ServerError):
        if error.errno in READ_ONLY:
            return len(config.endpoints) > 1
        return error.errno in CONTENTION or error.errno in CROWDED or error.errno == INTERRUPTED
    return False


def explain(error: DriverError, config: ConnectionOptions) -> LocusMySQLError:
    """The error to show the caller: what happened, to which thing, and what to do."""
    where = ", ".join(str(endpoint) for endpoint in config.endpoints)
    if isinstance(error, NoPrimary):
        return _explain_all(error, where, config)
    if isinstance(error, NotAMember):
        return Unavailable(f"{_clause(error)}. Try again when it is, or name the other members among hosts=.")
    if isinstance(error, ConnectionLost):
        return Unavailable(
            f"No answer from MySQL at {where}: {_clause(error)}. Check that the server runs and that host, port and "
            f"firewall are right. A server once reached is tried for {config.retry_deadline_s:g} s (retry_deadline_s)."
        )
    if isinstance(error, PacketTooLarge):
        return StateTooLarge(
            f"Saving this needs a packet of {error.size_bytes} bytes; MySQL at {where} accepts {error.limit_bytes}. "
            "Nothing was written. Raise the server's max_allowed_packet (1 GB at most), or make the state smaller."
        )
    if isinstance(error, ReadLimitReached):
        return AnswerTooLarge(
            f"The answer needs more than the {error.limit_bytes:.0f} bytes that may be read from the database at once. "
            "Ask for less, such as for smaller pages."
        )
    if not isinstance(error, ServerError):
        return LocusMySQLError(str(error))
    number, words = error.errno, _clause(error)
    if number in _AUTHENTICATION:
        return AuthenticationFailed(f"MySQL at {where} refused user {config.user!r}: {words}. Check user and password.")
    if number == 1049:
        return DatabaseMissing(
            f"MySQL at {where} has no database {config.database!r}. Make it with: CREATE DATABASE `{config.database}`"
        )
    if number in _PRIVILEGE:
        return PrivilegeMissing(
            f"User {config.user!r} lacks a privilege: {words}. Needed: GRANT SELECT, INSERT, UPDATE, DELETE ON "
            f"`{config.database}`.* TO the user; and CREATE, unless the tables exist or ddl_mode is not 'create'."
        )
    if number in _TABLE_MISSING:
        return SchemaMismatch(
            f"A table is missing in database {config.database!r}: {words}. Make the tables with `python -m locus_mysql "
            "schema`, or use ddl_mode='create'."
        )
    if number in _LAYOUT:
        return SchemaMismatch(
            f"A table in database {config.database!r} does not have the layout that this version uses: {words}. "
            "Compare the tables with `python -m locus_mysql schema`."
        )
    if number in READ_ONLY:
        return ReadOnlyServer(
            f"MySQL at {where} accepts no writes: {words}. Connect to the primary, or name it among hosts=."
        )
    if number in _PACKET:
        return StateTooLarge(f"MySQL refused a packet as too large: {words}. Raise the server's max_allowed_packet.")
    if number in CONTENTION or number in CROWDED:
        return Unavailable(
            f"MySQL at {where} was too busy for {config.retry_deadline_s:g} s: {words}. Try again, or raise "
            "retry_deadline_s."
        )
    if number == INTERRUPTED:
        return Unavailable(
            f"Somebody ended a statement at MySQL at {where}, each time it was sent in {config.retry_deadline_s:g} s: "
            f"{words}. See who runs KILL QUERY there, then try again."
        )
    if number == OVERTIME:
        return Unavailable(
            f"MySQL at {where} ended a SELECT that took too long: {words}. Ask for less, or raise select_timeout_s, or "
            "the server's max_execution_time where that is not set."
        )
    return SetupError(f"MySQL at {where} refused a statement: {words}.")


def _explain_all(error: NoPrimary, where: str, config: ConnectionOptions) -> LocusMySQLError:
    kinds = {type(explain(reason, config)) for reason in error.reasons}
    if kinds == {ReadOnlyServer}:
        return ReadOnlyServer(
            f"No MySQL server at {where} accepts writes: {_clause(error)}. Name the primary among hosts=, or wait "
            "until the group has elected one."
        )
    if len(kinds) == 1 and kinds != {Unavailable}:
        return explain(error.reasons[0], config)
    return Unavailable(
        f"No MySQL server at {where} is a working primary: {_clause(error)}. A server once reached is tried for "
        f"{config.retry_deadline_s:g} s (retry_deadline_s)."
    )


def _clause(error: DriverError) -> str:
    """The error's words, without the full stop, as part of a sentence."""
    return str(error).rstrip(".")
