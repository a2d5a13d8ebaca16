"""The meaning of a driver's errors: whether to try again, and the error for the caller. Data and pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
from .passwords import NoPassword
from .topology import LeadsToSecondary, NoPrimary, NotAMember

if TYPE_CHECKING:
    from ..config import ConnectionOptions

# Numbers: https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html
DUPLICATE = 1062

#: The error with which guards of batches fail if a lock was not taken: "Invalid JSON text".
GUARD_FAILED = 3141

#: Another session ended the statement with ``KILL QUERY``. It may succeed when repeated.
INTERRUPTED = 1317

#: "Unknown error", which MySQL also sends for other reasons. With `_KILLED_UPDATE`, it means `INTERRUPTED`.
_UNKNOWN = 1105

#: The beginning of the server's message where KILL QUERY ends a multi-table UPDATE or DELETE that is changing its rows:
#: it stops without an error of its own. Seen with MySQL 9.7, once in some hundred KILL QUERY. It is not translated.
_KILLED_UPDATE = "An error occurred in multi-table "

#: A SELECT ran longer than ``max_execution_time``.
OVERTIME = 3024

#: A statement waited too long for a lock, and was rolled back.
LOCK_WAIT_TIMEOUT = 1205

#: The transaction was rolled back. It may succeed when it is repeated.
CONTENTION = frozenset(
    {
        LOCK_WAIT_TIMEOUT,
        1213,  # deadlock
        1412,  # table definition changed
        1613,  # XA: transaction was rolled back by a timeout
        3058,  # user-level lock deadlock
        3101,  # rolled back by the plugin: a group replication conflict
        3572,  # lock not available at once
    }
)

#: The server temporarily accepts no more connections.
CROWDED = frozenset({1040, 1203, 1226})

#: The server accepts no writes. It may be a replica, or a former primary. Where only ``innodb_read_only`` is set, as on
#: a reader of Aurora, MySQL answers changes of rows with 1015 ("Table is read only"), and DDL with 1874.
READ_ONLY = frozenset({1015, 1290, 1792, 1836, 1874, 3100})

#: Group Replication gave up while it waited for the group's decision on a COMMIT, because the server was leaving the
#: group, or was expelled. The transaction is rolled back here, and yet the other members may have committed it.
GIVEN_UP = frozenset({3100, 3101})

#: MySQL Router refuses a packet of several statements, at a port that splits reads from writes or shares connections.
NO_SEVERAL_STATEMENTS = 4501


class _Explanation(NamedTuple):
    """The meaning of some errors of the server for the caller.

    Args:
        numbers: The errors.
        kind: The exception to raise.
        text: Its message, with places for the server's message and for options.
    """

    numbers: frozenset[int]
    kind: type[LocusMySQLError]
    text: str


#: All other errors become a `SetupError`.
_EXPLANATIONS = (
    _Explanation(
        frozenset({1045, 1251, 1698, 1820, 1862, 3118, 3955}),
        AuthenticationFailed,
        "MySQL at {where} refused user {user!r}: {message}. Check user and password.",
    ),
    _Explanation(
        frozenset({1049}),
        DatabaseMissing,
        "MySQL at {where} has no database {database!r}. Make it with: CREATE DATABASE `{database}`",
    ),
    _Explanation(
        frozenset({1044, 1142, 1143, 1227, 1370}),
        PrivilegeMissing,
        "User {user!r} lacks a privilege: {message}. Needed: GRANT SELECT, INSERT, UPDATE, DELETE ON `{database}`.* TO "
        "the user; and CREATE, unless the tables exist or ddl_mode is not 'create'.",
    ),
    _Explanation(
        frozenset({1146}),
        SchemaMismatch,
        "A table is missing in database {database!r}: {message}. Make the tables with `python -m locus_mysql schema`, "
        "or use ddl_mode='create'.",
    ),
    _Explanation(
        frozenset({1048, 1054, 1136, 1176, 1191, 1364}),
        SchemaMismatch,
        "A table in database {database!r} does not have the layout that this version uses: {message}. Compare the "
        "tables with `python -m locus_mysql schema`.",
    ),
    _Explanation(
        READ_ONLY,
        ReadOnlyServer,
        "MySQL at {where} accepts no writes: {message}. Connect to the primary, or name it among hosts=.",
    ),
    _Explanation(
        frozenset({NO_SEVERAL_STATEMENTS}),
        SetupError,
        "MySQL Router at {where} splits reads from writes or shares connections there: {message}. Loads there may be "
        "stale. Use its port for writes (6446 by default), without connection_sharing; or only read, with "
        "reads='inspect' and pipeline=False.",
    ),
    _Explanation(
        frozenset({1153, 1301}),
        StateTooLarge,
        "MySQL refused a packet as too large: {message}. Raise the server's max_allowed_packet.",
    ),
    _Explanation(
        CONTENTION | CROWDED,
        Unavailable,
        "MySQL at {where} was too busy for {deadline_s:g} s: {message}. Try again, or raise retry_deadline_s.",
    ),
    _Explanation(
        frozenset({INTERRUPTED}),
        Unavailable,
        "A statement was killed at MySQL at {where}, each time it was sent in {deadline_s:g} s: {message}. See who "
        "runs KILL QUERY there, then try again.",
    ),
    _Explanation(
        frozenset({OVERTIME}),
        Unavailable,
        "MySQL at {where} ended a SELECT that took too long: {message}. Ask for less, or raise select_timeout_s, or "
        "the server's max_execution_time where that is not set.",
    ),
)


def may_pass(error: DriverError, config: ConnectionOptions) -> bool:
    """Check whether a batch that failed with this error may succeed when it is repeated."""
    if isinstance(error, NoPrimary):
        return any(may_pass(reason, config) for reason in error.reasons)
    if isinstance(error, ConnectionLost | NotAMember | LeadsToSecondary | NoPassword):
        return True
    if isinstance(error, ServerError):
        if error.errno in READ_ONLY:
            return len(config.endpoints) > 1
        return error.errno in CONTENTION or error.errno in CROWDED or was_interrupted(error)
    return False


def leaves_fate_unknown(error: DriverError) -> bool:
    """Check whether the batch that failed with this error may have been executed, or may still be."""
    if isinstance(error, ConnectionLost):
        return not error.connecting
    if isinstance(error, LeadsToSecondary):
        return error.gave_up
    return was_interrupted(error) or (isinstance(error, ServerError) and error.errno in GIVEN_UP)


def was_interrupted(error: DriverError) -> bool:
    """Check whether the statement was ended from outside (``KILL QUERY``). A COMMIT may have been executed then."""
    if not isinstance(error, ServerError):
        return False
    return error.errno == INTERRUPTED or (error.errno == _UNKNOWN and error.message.startswith(_KILLED_UPDATE))


def explain(error: DriverError, config: ConnectionOptions) -> LocusMySQLError:
    """Return the error for the caller, which names the failure, the affected object, and the remedy."""
    where = ", ".join(str(endpoint) for endpoint in config.endpoints)
    if isinstance(error, NoPrimary):
        return _explain_all(error, where, config)
    if isinstance(error, NotAMember):
        return Unavailable(f"{_clause(error)}. Try again when it is, or name the other members among hosts=.")
    if isinstance(error, NoPassword):
        return Unavailable(
            f"{_clause(error)}. It is called for each new connection to MySQL at {where}. A server once reached is "
            f"tried for {config.retry_deadline_s:g} s (retry_deadline_s)."
        )
    if isinstance(error, LeadsToSecondary):
        return ReadOnlyServer(
            f"{_clause(error)}. It is a secondary of a group, or a reader of Aurora, where loads may be stale: nothing "
            "was read or written. Connect to the primary, or to the port of MySQL Router for writes (6446 by default); "
            "or only read, with reads='inspect'."
        )
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
    if isinstance(error, ServerError):
        return _explain_number(error, where, config)
    return LocusMySQLError(str(error))


def _explain_number(error: ServerError, where: str, config: ConnectionOptions) -> LocusMySQLError:
    number = INTERRUPTED if was_interrupted(error) else error.errno
    kind, text = next(
        ((explanation.kind, explanation.text) for explanation in _EXPLANATIONS if number in explanation.numbers),
        (SetupError, "MySQL at {where} refused a statement: {message}."),
    )
    return kind(
        text.format(
            where=where,
            message=_clause(error),
            user=config.user,
            database=config.database,
            deadline_s=config.retry_deadline_s,
        )
    )


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
    """The error's message without the full stop, as part of a sentence."""
    return str(error).rstrip(".")
