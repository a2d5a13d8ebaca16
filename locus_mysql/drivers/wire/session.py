"""Checks and settings of a new session: the server's version, the variables that change what statements do."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

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

#: Variables that change what statements do, and their values in each session: the server's own values, `init_connect`
#: and parameter groups do not matter then. Every account may set them, on every supported version of every engine.
#: docs/operations.md says why each is set.
SETTINGS = {
    "sql_mode": f"'{_SQL_MODE}'",
    "time_zone": "'+00:00'",
    "timestamp": "0",  # the clock
    "autocommit": "1",
    "transaction_isolation": "'READ-COMMITTED'",
    "transaction_read_only": "0",
    "sql_select_limit": f"{2**63 - 1}",  # OceanBase takes no larger one
    "sql_safe_updates": "0",
    "sql_auto_is_null": "0",
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "group_concat_max_len": "1048576",
    "lc_messages": "'en_US'",
    "cte_max_recursion_depth": "1000000",
}

_AT_MOST = "CAST(LEAST(@@SESSION.{}, {}) AS UNSIGNED)"

#: More of them, on MySQL only.
SETTINGS_OF_MYSQL = {
    # No lock outlives its client by more than about a minute: these limits, in seconds, end the waits of a session
    # whose client has vanished, and `engine.group_commit.BEGIN` those of an open transaction.
    "innodb_lock_wait_timeout": _AT_MOST.format("innodb_lock_wait_timeout", 50),
    "lock_wait_timeout": _AT_MOST.format("lock_wait_timeout", 50),
    "net_read_timeout": _AT_MOST.format("net_read_timeout", 60),
    "net_write_timeout": _AT_MOST.format("net_write_timeout", 60),
    "completion_type": "0",
    "sql_big_selects": "1",
    "use_secondary_engine": "OFF",
    "tmp_table_size": "67108864",
    "range_optimizer_max_mem_size": "8388608",
    # With English stop words, the parser ngram leaves out each pair of letters with an "a" or "i", as in Miami. What
    # counts is the session that makes an index.
    "innodb_ft_enable_stopword": "0",
    # Without derived_merge, each look into information_schema reads all columns of all tables of the server. Before
    # 8.0.22 there are no flags but this one.
    "optimizer_switch": "CONCAT('derived_merge=on' /*!80022 , ',subquery_to_derived=off,hypergraph_optimizer=off' */)",
}

_NAMES = Statement("SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin")

#: Ends a transaction that `init_connect` began: a write of one statement would be acknowledged and never committed. It
#: follows the settings, since with another `completion_type` a transaction follows, or the connection is closed.
_END = Statement("ROLLBACK")

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
        limit_s = config.select_timeout_s or config.read_timeout_s + config.write_timeout_s
        limits = {**variant.settings, variant.limit_us: str(math.ceil(limit_s * 1_000_000))}
        return Statement("SET NAMES utf8mb4 COLLATE utf8mb4_bin"), _set({**SETTINGS, **limits}), _ASK
    # Nobody waits for the answer any more after `read_timeout_s`, so the server ends the statement then.
    limit_ms = min(MOST_SELECT_MS, math.ceil((config.select_timeout_s or math.ceil(config.read_timeout_s)) * 1000))
    settings = _set({**SETTINGS, **SETTINGS_OF_MYSQL, "max_execution_time": str(limit_ms)})
    return _NAMES, settings, _END, _ASK


def _set(settings: Mapping[str, str]) -> Statement:
    """Return the statement that sets variables of the session."""
    return Statement("SET " + ", ".join(f"@@SESSION.{name} = {value}" for name, value in settings.items()))


def max_allowed_packet(results: Sequence[Result]) -> int:
    """Return the size in bytes, from the results of `setup`."""
    (row,) = results[-1].rows
    return int(str(row[0]))


def is_read_only(results: Sequence[Result]) -> bool:
    """Check whether the server takes no writes, from the results of `setup`; False if a proxy hides it."""
    (row,) = results[-1].rows
    return str(row[-1]) == "1"


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
            "full-text indexes: see docs/servers.md. Use MySQL 8.0.19 or later, or OceanBase."
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
