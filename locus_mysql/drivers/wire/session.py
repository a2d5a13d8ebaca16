"""What comes before a connection's first statement: a check of the server's version, and the session's settings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...config import ConnectionOptions
from ...dialect.statement import Statement
from ...errors import UnsupportedServer
from ..interface import Result, Session

#: The first version that has the row alias of INSERT … ON DUPLICATE KEY UPDATE. The collation
#: ``utf8mb4_0900_bin`` came earlier, with 8.0.17.
_OLDEST = (8, 0, 19)

#: Modes that make MySQL refuse what it cannot store exactly. NO_BACKSLASH_ESCAPES and ANSI_QUOTES must stay
#: off, as `literals` relies on it.
_SQL_MODE = (
    "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)

#: The most that ``max_execution_time`` takes, in milliseconds.
MOST_SELECT_MS = 2**32 - 1

#: READ COMMITTED: no gap locks, so savers of different threads do not wait for each other.
_SETTINGS = (
    "SET @@SESSION.sql_mode = %s, @@SESSION.time_zone = '+00:00', @@SESSION.autocommit = 1,"
    " @@SESSION.transaction_isolation = 'READ-COMMITTED'"
)

_NAMES = Statement("SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin")
_ASK = Statement("SELECT @@SESSION.max_allowed_packet, CONNECTION_ID(), @@server_uuid")


def setup(config: ConnectionOptions) -> tuple[Statement, ...]:
    """The statements that set a new session up, for one packet.

    Args:
        config: Of the connection.
    """
    if config.select_timeout_s is None:
        return _NAMES, Statement(_SETTINGS, (_SQL_MODE,)), _ASK
    limit_ms = min(MOST_SELECT_MS, math.ceil(config.select_timeout_s * 1000))
    return _NAMES, Statement(f"{_SETTINGS}, @@SESSION.max_execution_time = %s", (_SQL_MODE, limit_ms)), _ASK


def max_allowed_packet(results: Sequence[Result]) -> int:
    """The size in bytes that `setup` has read."""
    (row,) = results[-1].rows
    return int(str(row[0]))


def session_of(results: Sequence[Result]) -> Session | None:
    """Which session `setup` was carried out in; None if a proxy did not say."""
    (row,) = results[-1].rows
    return Session(int(str(row[1])), str(row[2])) if len(row) > 2 and row[1] and row[2] else None


def check_server_version(text: str) -> None:
    """Refuse a server by the version text of its greeting, before it is sent anything.

    Raises:
        UnsupportedServer: It is MariaDB, TiDB, or a MySQL before 8.0.19.
    """
    shown = text[:60]
    lowered = text.lower()
    if "mariadb" in lowered:
        version = lowered.removeprefix("5.5.5-").split("-")[
            0
        ]  # 5.5.5- is there for old replicas; it is not the version
        raise UnsupportedServer(
            f"MariaDB {version} is not MySQL: it lacks the collation and the JSON indexes needed here. "
            "Use MySQL 8.0.19 or later."
        )
    if "tidb" in lowered:
        raise UnsupportedServer(
            f"The server is TiDB ({shown}), on which this package is not tested. Use MySQL 8.0.19 or later."
        )
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    if match is None:
        raise UnsupportedServer(
            f"The server calls itself {shown!r}, which is no MySQL version. 8.0.19 or later is needed."
        )
    major, minor, patch = match.groups()
    # Aurora 3 may call itself 8.0.mysql_aurora.3.x; the oldest is compatible with 8.0.23.
    version_tuple = (int(major), int(minor), _OLDEST[2] if patch is None else int(patch))
    if version_tuple < _OLDEST:
        raise UnsupportedServer(
            f"MySQL {match.group()} is too old; 8.0.19 or later is needed. If a proxy stands before a newer "
            "server, set the version it announces (ProxySQL: mysql-server_version)."
        )
