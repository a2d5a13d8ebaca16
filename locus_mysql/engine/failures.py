"""The meaning of a driver's errors: whether to try again, and the error for the caller. Data and pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dialect.variants import NO_TABLE_YET
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
    ConfigError,
    DatabaseMissing,
    LocusMySQLError,
    PrivilegeMissing,
    ReadOnlyServer,
    SchemaMismatch,
    SetupError,
    StateTooLarge,
    Unavailable,
)
from .cluster.topology import LeadsToSecondary, NoPrimary, NotAMember
from .passwords import NoPassword

if TYPE_CHECKING:
    from ..config import ConnectionOptions

# Numbers: https://dev.mysql.com/doc/mysql-errors/9.0/en/server-error-reference.html. Those below 120 (EE_) are of
# mysys, MySQL's own library for files and memory, and those from 120 to 999 (HA_) of storage engines: perror explains.
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

#: A table is full, or it or its file does not exist. If the name begins with `_TEMPORARY`, the server made the table
#: for a statement, and lacks memory or disk space for it.
_TABLE_FULL, _NO_FILE, NO_TABLE = 1114, 1017, 1146
_TEMPORARY = "#sql"

#: A SELECT ran longer than ``max_execution_time``.
OVERTIME = 3024

#: A statement waited too long for a lock, and was rolled back.
LOCK_WAIT_TIMEOUT = 1205

#: The server accepts no writes. It may be a replica, or a former primary. Where only ``innodb_read_only`` is set, as on
#: a reader of Aurora, MySQL answers changes of rows with 1015 ("Table is read only"), and DDL with 1874.
READ_ONLY = frozenset({1015, 1036, 1290, 1792, 1836, 1874, 1881, 3100})

#: Group Replication gave up while it waited for the group's decision on a COMMIT, because the server was leaving the
#: group, or was expelled. The transaction is rolled back here, and yet the other members may have committed it.
GIVEN_UP = frozenset({3100, 3101})

#: MySQL Router refuses a packet of several statements, at a port that splits reads from writes or shares connections.
NO_SEVERAL_STATEMENTS = 4501


class ErrorClass(NamedTuple):
    """Errors of the server that mean the same for the caller. The table in docs/troubleshooting.md lists them.

    Args:
        name: The first column of that table.
        numbers: The errors.
        kind: The exception to raise.
        text: Its message, with places for the server's message and for options.
        passes: Whether the batch may succeed when it is repeated.
    """

    name: str
    numbers: frozenset[int]
    kind: type[LocusMySQLError]
    text: str
    passes: bool = False


_CONTENTION = ErrorClass(
    "locks of other sessions",
    # deadlock, changed definition or row, XA and pending exclusive locks, rollback by a plugin (a conflict in the
    # group), NOWAIT, cloning
    frozenset({LOCK_WAIT_TIMEOUT, 1020, 1213, 1412, 1613, 1614, 1689, 3058, 3101, 3572, 3633}),
    Unavailable,
    "MySQL at {where} was too busy{during}: {message}. Try again, or raise retry_deadline_s.",
    passes=True,
)

#: The disk or the memory is full, a file cannot be written, or temporary tables, undo logs, locks or transactions are
#: exhausted. The failed statement may have been a COMMIT, of which nobody knows how far it came.
_RESOURCES = ErrorClass(
    "disk, memory, temporary tables",
    frozenset(range(1, 120))
    | {128, 135, 136, 147, 177, 189, 194}
    | {1004, 1005, 1013, 1016, 1018, 1021, 1024, 1026, 1030, 1037, _TABLE_FULL, 1180, 1206, 1534, 1593, 1598, 1637}
    | {1810, 1811, 1878, 3015, 3019, 3044, 3675, 3985},
    Unavailable,
    "MySQL at {where} lacked disk space, memory or files{during}: {message}. See its disks, its tmpdir "
    "and its error log, then try again.",
    passes=True,
)

#: All other errors become a `SetupError`: most mean that a statement is wrong for this server.
ERROR_CLASSES = (
    _CONTENTION,
    ErrorClass(
        "too many connections, or no memory or thread for one",
        frozenset({1040, 1041, 1135, 1203, 1226, 4081, 4082}),
        Unavailable,
        _CONTENTION.text,
        passes=True,
    ),
    ErrorClass(
        "offline mode, starting, or a member of a group that is changing its primary",
        frozenset({3032, 3168, 3781, 3782, 3783, 3796, 3797, 3798, 3799, 4094}),
        Unavailable,
        "MySQL at {where} served no calls{during}: {message}. Try again when it does.",
        passes=True,
    ),
    _RESOURCES,
    ErrorClass(
        "`KILL QUERY`",
        frozenset({INTERRUPTED}),
        Unavailable,
        "A statement was killed at MySQL at {where}, each time it was sent{during}: {message}. See who "
        "runs KILL QUERY there, then try again.",
        passes=True,
    ),
    ErrorClass(
        "`max_execution_time`",
        frozenset({OVERTIME}),
        Unavailable,
        "MySQL at {where} ended a SELECT that took too long: {message}. Ask for less, or raise select_timeout_s.",
    ),
    ErrorClass(
        "user or password refused",
        # 1524, 4055: its plugin is not loaded, or wants a registration; 1820, 1862: expired; 3118, 3955: locked
        frozenset({1045, 1251, 1524, 1698, 1820, 1862, 3118, 3955, 4055, 4296, 4297}),
        AuthenticationFailed,
        "MySQL at {where} refused user {user!r}: {message}. Check user and password, and ssl_mode if the account "
        "requires TLS.",
    ),
    ErrorClass(
        "this host refused",
        frozenset({1042, 1043, 1129, 1130}),
        AuthenticationFailed,
        "MySQL at {where} refuses connections of this host: {message}. Let its administrator admit the host to user "
        "{user!r}; one that is blocked after errors is unblocked by TRUNCATE TABLE performance_schema.host_cache.",
    ),
    ErrorClass(
        "`require_secure_transport`",
        frozenset({3159}),
        ConfigError,
        "MySQL at {where} admits connections with TLS only, and ssl_mode is {ssl_mode}: {message}. Set ssl_mode to "
        "REQUIRED, VERIFY_CA or VERIFY_IDENTITY.",
    ),
    ErrorClass(
        "`init_connect`",
        frozenset({1184}),
        SetupError,
        "MySQL at {where} closes each connection of user {user!r}, as a statement of its variable init_connect fails: "
        "{message}. Its error log names the statement. Let its administrator correct init_connect.",
    ),
    ErrorClass(
        "no database",
        frozenset({1049}),
        DatabaseMissing,
        "MySQL at {where} has no database {database!r}. Make it with: CREATE DATABASE `{database}`",
    ),
    ErrorClass(
        "no privilege",
        frozenset({1044, 1142, 1143, 1227, 1370, 3879, 4208}),
        PrivilegeMissing,
        "User {user!r} lacks a privilege: {message}. Needed: GRANT SELECT, INSERT, UPDATE, DELETE ON `{database}`.* TO "
        "the user; and CREATE, for memU's tables REFERENCES too, unless the tables exist or ddl_mode is not 'create'. "
        "`python -m locus_mysql grants` prints it.",
    ),
    ErrorClass(
        "no table",
        frozenset({NO_TABLE, 1051, NO_TABLE_YET}),
        SchemaMismatch,
        "A table is missing in database {database!r}: {message}. Make the tables with `python -m locus_mysql schema`, "
        "or use ddl_mode='create'.",
    ),
    ErrorClass(
        "tables of another layout",
        # columns and indexes, full-text indexes, partitions, generated columns, views, foreign keys, checks, and
        # columns that became too narrow
        frozenset({1048, 1054, 1136, 1176, 1191, 1264, 1283, 1347, 1356, 1364, 1366, 1406, 1449, 1451, 1452, 1526})
        | {1764, 3105, 3819},
        SchemaMismatch,
        "A table in database {database!r} does not have the layout that this version uses: {message}. Compare the "
        "tables with `python -m locus_mysql schema`.",
    ),
    ErrorClass(
        "tables that are damaged, or whose files are missing",
        frozenset(
            {126, 127, 180, 195, 197, _NO_FILE, 1032, 1033, 1034, 1035, 1194, 1195, 1712, 1812, 1814, 1817, 1877, 3185}
        ),
        SetupError,
        "MySQL at {where} cannot read a table of its own: {message}. See its error log; CHECK TABLE names what is "
        "damaged. Repair it, or restore it from a backup.",
    ),
    ErrorClass(
        "no writes",
        READ_ONLY,
        ReadOnlyServer,
        "MySQL at {where} accepts no writes: {message}. Connect to the primary, or name it among hosts=.",
    ),
    ErrorClass(
        "a database that is read only",
        frozenset({3989}),
        ReadOnlyServer,
        "Database {database!r} accepts no writes: {message}. Its administrator can change that with: "
        "ALTER DATABASE `{database}` READ ONLY = 0",
    ),
    ErrorClass(
        "a port of MySQL Router that splits reads from writes",
        frozenset({NO_SEVERAL_STATEMENTS}),
        SetupError,
        "MySQL Router at {where} splits reads from writes or shares connections there: {message}. Loads there may be "
        "stale. Use its port for writes (6446 by default), without connection_sharing; or only read, with "
        "read_only=True and pipeline=False.",
    ),
    ErrorClass(
        "packets beyond `max_allowed_packet`",
        frozenset({1153, 1162, 1301}),
        StateTooLarge,
        "MySQL refused a packet as too large: {message}. Raise the server's max_allowed_packet.",
    ),
    ErrorClass(
        "rows and transactions beyond other limits",
        frozenset({139, 181, 1118, 1197, 1705, 1713}),
        StateTooLarge,
        "MySQL at {where} cannot store as much at once: {message}. Raise its limit, or make the state smaller.",
    ),
    ErrorClass(
        "searches beyond `innodb_ft_result_cache_limit`",
        frozenset({188, 191}),
        SetupError,
        "MySQL at {where} cannot search for this: {message}. Search for fewer or rarer words, or raise the server's "
        "innodb_ft_result_cache_limit.",
    ),
    ErrorClass(
        "`binlog_format=STATEMENT`",
        frozenset({1665}),
        SetupError,
        "MySQL at {where} logs statements, which READ COMMITTED does not allow: {message}. Set its binlog_format to "
        "ROW or MIXED.",
    ),
)
_CLASS_OF = {number: one for one in ERROR_CLASSES for number in one.numbers}


def may_pass(error: DriverError, config: ConnectionOptions, *, creates_tables: bool = False) -> bool:
    """Check whether a batch that failed with this error may succeed when it is repeated.

    Args:
        error: The error.
        config: The options, with the servers.
        creates_tables: Whether the tables exist, because this process creates them if they are missing.
    """
    if isinstance(error, NoPrimary):
        return any(may_pass(reason, config) for reason in error.reasons)
    if isinstance(error, ConnectionLost | NotAMember | LeadsToSecondary | NoPassword):
        return True
    if not isinstance(error, ServerError):
        return False
    if error.errno in READ_ONLY:
        return len(config.endpoints) > 1
    if error.errno == NO_TABLE_YET:
        return creates_tables
    found = _class_of(error)
    return found is not None and found.passes


def leaves_fate_unknown(error: DriverError) -> bool:
    """Check whether the batch that failed with this error may have been executed, or may still be."""
    if isinstance(error, ConnectionLost):
        return not error.connecting
    if isinstance(error, LeadsToSecondary):
        return error.gave_up
    if not isinstance(error, ServerError):
        return False
    return was_interrupted(error) or error.errno in GIVEN_UP or _class_of(error) is _RESOURCES


def was_interrupted(error: DriverError) -> bool:
    """Check whether the statement was ended from outside (``KILL QUERY``). A COMMIT may have been executed then."""
    return isinstance(error, ServerError) and _meaning(error) == INTERRUPTED


def lacks_temporary_table(error: ServerError) -> bool:
    """Check whether the server lacked room for a temporary table that it made for a statement.

    It fails so if other sessions use up the memory of all temporary tables (``temptable_max_ram``), and a statement
    reads one at several places, as a recursive CTE does: https://bugs.mysql.com/bug.php?id=112704
    """
    return error.errno in {_TABLE_FULL, _NO_FILE, NO_TABLE} and _TEMPORARY in error.message


def _meaning(error: ServerError) -> int:
    """Return the error's number, or the one that says what its message says."""
    if error.errno == _UNKNOWN and error.message.startswith(_KILLED_UPDATE):
        return INTERRUPTED
    return _TABLE_FULL if lacks_temporary_table(error) else error.errno


def _class_of(error: ServerError) -> ErrorClass | None:
    return _CLASS_OF.get(_meaning(error))


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
            f"tried {_patience(config)}."
        )
    if isinstance(error, LeadsToSecondary):
        return ReadOnlyServer(
            f"{_clause(error)}. It is a secondary of a group, or a reader of Aurora, where loads may be stale: nothing "
            "was read or written. Connect to the primary, or to the port of MySQL Router for writes (6446 by default); "
            "or only read, with read_only=True."
        )
    if isinstance(error, ConnectionLost) and error.of_client:
        return Unavailable(
            f"{_clause(error)}. This is an error of the client library, or of this package with it, and not of the "
            "network: see whether another driver= or another version of the library works, and report it."
        )
    if isinstance(error, ConnectionLost):
        return Unavailable(
            f"No answer from MySQL at {where}: {_clause(error)}. Check that the server runs and that host, port and "
            f"firewall are right. A server once reached is tried {_patience(config)}."
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
    found = _class_of(error)
    kind = SetupError if found is None else found.kind
    text = "MySQL at {where} refused a statement: {message}." if found is None else found.text
    return kind(
        text.format(
            where=where,
            message=_clause(error),
            user=config.user,
            database=config.database,
            during=f" for {config.retry_deadline_s:g} s" if config.retry_deadline_s else "",
            ssl_mode=config.ssl_mode,
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
        f"No MySQL server at {where} is a working primary: {_clause(error)}. A server once reached is tried "
        f"{_patience(config)}."
    )


def _patience(config: ConnectionOptions) -> str:
    return f"for {config.retry_deadline_s:g} s (retry_deadline_s)" if config.retry_deadline_s else "once"


def _clause(error: DriverError) -> str:
    """The error's message without the full stop, as part of a sentence."""
    return str(error).rstrip(".")
