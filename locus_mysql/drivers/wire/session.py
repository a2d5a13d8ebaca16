"""Checks and settings of a new session: the server's version, SQL mode, time zone, isolation level, character set."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...config import ConnectionOptions
from ...dialect.server_roles import READ_ONLY
from ...dialect.statement import Statement
from ...dialect.variants import Variant, variant_of
from ...errors import UnsupportedServer
from ..interface import Result

#: The first version that has the row alias of INSERT … ON DUPLICATE KEY UPDATE. The collation
#: ``utf8mb4_0900_bin`` came earlier, with 8.0.17.
_OLDEST = (8, 0, 19)

#: Modes that make MySQL refuse what it cannot store exactly. NO_BACKSLASH_ESCAPES and ANSI_QUOTES must stay
#: off, as `literals` relies on it.
_SQL_MODE = (
    "STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)

#: The largest ``max_execution_time``, in milliseconds.
MOST_SELECT_MS = 2**32 - 1

#: READ COMMITTED: no gap locks, so savers of different threads do not wait for each other.
_SETTINGS = (
    "SET @@SESSION.sql_mode = %s, @@SESSION.time_zone = '+00:00', @@SESSION.autocommit = 1,"
    " @@SESSION.transaction_isolation = 'READ-COMMITTED'"
)

_NAMES = Statement("SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin")
#: OceanBase reports this version of MySQL, unless it is configured to report another.
AMBIGUOUS = "5.7.25"

#: Asks a server of that version whether it is OceanBase, in a separate packet.
WHICH = Statement("SELECT VERSION(), @@version_comment")

_ASK = Statement(f"SELECT @@SESSION.max_allowed_packet, {READ_ONLY}")


def setup(config: ConnectionOptions, variant: Variant | None = None) -> tuple[Statement, ...]:
    """The statements that set a new session up, for one packet.

    Args:
        config: The options of the connection.
        variant: The engine's variant of the dialect; None for MySQL.
    """
    if variant is not None:
        return Statement("SET NAMES utf8mb4 COLLATE utf8mb4_bin"), *_settings_of(config, variant), _ASK
    # Nobody waits for the answer any more after `read_timeout_s`, so the server ends the statement then.
    limit_ms = min(MOST_SELECT_MS, math.ceil((config.select_timeout_s or math.ceil(config.read_timeout_s)) * 1000))
    return _NAMES, Statement(f"{_SETTINGS}, @@SESSION.max_execution_time = %s", (_SQL_MODE, limit_ms)), _ASK


def max_allowed_packet(results: Sequence[Result]) -> int:
    """Return the size in bytes, from the results of `setup`."""
    (row,) = results[-1].rows
    return int(str(row[0]))


def is_read_only(results: Sequence[Result]) -> bool:
    """Check whether the server takes no writes, from the results of `setup`; False if a proxy hides it."""
    (row,) = results[-1].rows
    return str(row[-1]) == "1"


def _settings_of(config: ConnectionOptions, variant: Variant) -> tuple[Statement, ...]:
    limit_s = config.select_timeout_s or config.read_timeout_s + config.write_timeout_s
    return Statement(_SETTINGS, (_SQL_MODE,)), Statement(f"SET {variant.settings}", (math.ceil(limit_s * 1_000_000),))


def variant(results: Sequence[Result]) -> Variant:
    """Return the variant of the dialect for a server whose greeting does not identify it, by the answer to `WHICH`.

    Raises:
        UnsupportedServer: The server is an old MySQL.
    """
    (row,) = results[0].rows
    version, comment = map(str, row)
    found = variant_of(f"{version} {comment}")
    if found is None:
        check_server_version(version)
        raise UnsupportedServer(f"The server's greeting says MySQL {AMBIGUOUS}, its VERSION() {version[:60]!r}.")
    return found


def warning_about(text: str) -> str | None:
    """Return a warning about a server for its user, by the version text of its greeting; None for most servers."""
    if "vitess" not in text.lower():
        return None
    return (
        "the server is Vitess, on which nothing was tested: a keyspace that is not sharded may work, a sharded one "
        "refuses saves, as it supports LAST_INSERT_ID(expr) in SELECT only (docs/scaling.md)"
    )


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
            f"The server is TiDB ({shown}), which lacks statements that are needed here, such as JSON_TABLE and "
            "full-text indexes: see docs/scaling.md. Use MySQL 8.0.19 or later, or OceanBase."
        )
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    if match is None:
        raise UnsupportedServer(
            f"The server calls itself {shown!r}, which is no MySQL version. 8.0.19 or later is needed."
        )
    major, minor, patch = match.groups()
    # Aurora 3 may report 8.0.mysql_aurora.3.x; the oldest is compatible with 8.0.23.
    version_tuple = (int(major), int(minor), _OLDEST[2] if patch is None else int(patch))
    if version_tuple < _OLDEST:
        raise UnsupportedServer(
            f"MySQL {match.group()} is too old; 8.0.19 or later is needed. If a proxy stands before a newer "
            "server, set the version it announces (ProxySQL: mysql-server_version)."
        )
