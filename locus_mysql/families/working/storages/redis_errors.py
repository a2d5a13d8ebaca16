"""Maps errors of redis-py to those of this package."""

from __future__ import annotations

from ....errors import (
    AuthenticationFailed,
    LocusMySQLError,
    PrivilegeMissing,
    SetupError,
    Unavailable,
)

#: Errors by the name of their class in redis-py, whichever of its versions has it.
_REFUSED_LOGINS = {"AuthenticationError", "AuthorizationError", "AuthenticationWrongNumberOfArgsError"}
_AWAY = {
    *("ConnectionError", "TimeoutError", "BusyLoadingError", "MaxConnectionsError", "ReadOnlyError"),
    *("ClusterError", "ClusterDownError", "MasterDownError", "TryAgainError", "SlotNotCoveredError"),
    "RedisClusterException",
}

#: Errors by the first word of their message.
_AWAY_WORDS = (
    *("LOADING", "READONLY", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "MISCONF", "UNBLOCKED"),
    *("MOVED", "ASK"),
)
_LOGIN_WORDS = ("WRONGPASS", "NOAUTH")


def failure(error: Exception, where: str) -> LocusMySQLError:
    """Return the error to raise for an error of redis-py or of the network.

    Args:
        error: The error that was raised.
        where: The address of the Redis server, without secrets.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    words = " ".join(str(error).split()) or type(error).__name__
    if names & _REFUSED_LOGINS or words.startswith(_LOGIN_WORDS):
        return AuthenticationFailed(f"Redis at {where} refused the login: {words}. Check user and password.")
    if "NoPermissionError" in names or "NOPERM" in words:
        return PrivilegeMissing(
            f"Redis at {where} refused a command: {words}. Working memory needs EVALSHA, EVAL, SCAN (to forget a "
            "tenant), and the commands on "
            "strings, hashes, sorted sets, lists and keys, on all keys with its prefix."
        )
    if "OutOfMemoryError" in names or "OOM command not allowed" in words:
        return SetupError(
            f"Redis at {where} has no memory left (maxmemory), so nothing was written. Raise maxmemory, or end "
            "sessions that are not needed. Keep maxmemory-policy at noeviction: others drop sessions, or parts of them."
        )
    if "unknown command" in words.lower():
        return SetupError(
            f"Redis at {where} lacks a command: {words}. Working memory needs Redis 6.2 or later, or Valkey."
        )
    if "WRONGTYPE" in words:
        return LocusMySQLError(
            f"Redis at {where} has keys of another program under the names of a session's keys: {words}. Choose "
            "another prefix."
        )
    away = names & _AWAY or isinstance(error, OSError | TimeoutError) or words.startswith(_AWAY_WORDS)
    if away or "-READONLY" in words:  # as Redis 6.2 reports failures within a script
        return Unavailable(
            f"Redis at {where} did not answer as it should: {words}. Whether the call was carried out is not known. "
            "Check that it is running and can be reached, and try again."
        )
    return LocusMySQLError(
        f"Redis at {where} failed: {words}. Check the log of Redis; if the cause is not clear, report it with the "
        "version of Redis."
    )
