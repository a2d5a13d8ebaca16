"""Reads sessions in Redis and commits changes to them, as generators that do no I/O; ``redis.lua`` is the other end.

The keys of a session begin with its name, and its braces put them into one slot of a cluster:

- (itself): a hash with ``stamp``, ``expires``, ``ttl``, and ``head``, the rest of the session's own data as JSON
- ``:entries``: a hash with the size, version, last use, expiry and value of entries, by kind and name; deleted ones too
- ``:notes``: a sorted set of the numbers of notes
- ``:checkpoints``: a hash with the descriptions of checkpoints, as JSON, by id
- ``:history``: a hash with earlier versions of entries, by kind, version, the stamp up to which it is valid, and name
- ``:token:…``: the outcomes of a call, as JSON, by the call's token; it outlives the session
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from ....errors import AuthenticationFailed, LocusMySQLError, PrivilegeMissing, SetupError, Unavailable
from .. import calls
from ..content import DELETED_KNOWN_US, NEVER_US, NOTE, TASK, VARIABLE, Entry, Head, Session, StoredCheckpoint
from ..session import Work
from .optimistic import (
    EXPIRING,
    NAMES,
    NAMES_AT_FIRST,
    VALUES,
    Commit,
    Loaded,
    Need,
    OptimisticOperations,
    outcomes_of,
)

#: Types of texts that redis-py accepts.
Argument: TypeAlias = bytes | str | int

#: A command of Redis, or of the script: its name, the end of the key's name, and further arguments.
Command: TypeAlias = tuple[Argument, ...]

#: Size, version, last use and expiry of an entry, before its value; an expiry of 0 is none.
_ABOUT = Struct(">IQQQ")

#: The number of fields that one command writes or reads at most.
_AT_ONCE = 500

#: A tenant or id that is longer than this in the name of a key is replaced by a digest.
_READABLE = 80

_SPECIAL_IN_GLOBS = re.compile(r"[*?^\[\]\\-]")

#: The fields of a session's own data that are JSON.
_HEAD = tuple(one.name for one in fields(Head) if one.name not in {"sid", "stamp", "expires_us", "ttl_us"})


#: The program that Redis runs for each call, and its digest.
SCRIPT = Path(__file__).with_name("redis.lua").read_text(encoding="utf-8")
DIGEST = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class Sleep(NamedTuple):
    """Wait for some seconds."""

    seconds: float


class Scan(NamedTuple):
    """Find the names of all keys that match a pattern. The generator is sent them."""

    pattern: str


#: A step: a command of Redis, whose answer is sent to the generator, or one of these.
Step: TypeAlias = Command | Sleep | Scan


class RedisOperations(OptimisticOperations):
    """Sessions in Redis.

    Args:
        prefix: The prefix of all keys' names.
        where: The address of the server, for errors.
        library: redis-py.
    """

    #: The notes of a session are removed one by one.
    clears_all_notes = False

    def __init__(self, prefix: str, where: str, library: Any) -> None:
        super().__init__()
        self._prefix, self._where = prefix, where
        self._no_script = library.exceptions.NoScriptError
        self._failures = (library.RedisError, OSError, TimeoutError)

    def sweep(self, limit: int) -> Generator[Any, Any, int]:
        """Do nothing: Redis itself removes expired keys."""
        return 0
        yield

    def forget_tenant(self, tenant: str) -> Generator[Any, Any, int]:
        """See `Storage`. Scans the names of all keys of the database, some at a time (``SCAN``)."""
        removed = 0
        try:
            names = yield Scan(pattern_of(self._prefix, tenant))
        except LocusMySQLError:
            raise
        except self._failures as error:
            raise failure(error, self._where) from error
        for key in {session for name in names if (session := session_of(name)) is not None}:
            removed += (yield from self._evaluate(key, ENDING))[2][0]
        return removed

    def _evaluate(self, key: bytes | str, arguments: list[Argument]) -> Generator[Any, Any, list[Any]]:
        """Run the script for the session with this first key, and return its answer."""
        try:
            try:
                answer: list[Any] = yield ("EVALSHA", DIGEST, 1, key, *arguments)
            except self._no_script:
                answer = yield ("EVAL", SCRIPT, 1, key, *arguments)
        except LocusMySQLError:  # no connection was free
            raise
        except self._failures as error:
            raise failure(error, self._where) from error
        return answer

    def pause(self, seconds: float) -> Generator[Any, Any, None]:
        """Wait."""
        yield Sleep(seconds)

    def find(self, call: calls.Call) -> Generator[Any, Any, list[int] | None]:
        """Return the recorded outcomes of a call's commands; None if it was not carried out."""
        _, (found,) = yield from self._read(call.address, [("GET", f":token:{call.token.hex()}")])
        return None if found is None else json.loads(found)

    def load(self, address: calls.Address, need: Need, *, fills: bool, renews: bool) -> Generator[Any, Any, Loaded]:
        """Read a session."""
        session = Session(address.session_id, Head(), whole=need.whole)
        commands, takers = zip(*_reads(session, need, fills=fills), strict=True)
        renewal: list[Command] = [("RENEW", "")] if renews else []
        now_us, results = yield from self._read(address, [*renewal, *commands])
        for take, result in zip(takers, results[len(renewal) :], strict=True):
            take(result)
        return Loaded(session if session.head.stamp else None, now_us)

    def commit(self, session: Session | None, work: Work) -> Generator[Any, Any, Commit]:
        """Write the changes of a call, all or none, if the session still is as it was read."""
        head = work.head
        commands: list[Command]
        if work.ended:
            commands = [("DEL", suffix) for suffix in ("", *_SUFFIXES)]
        else:
            commands = [_head_command(head)]
            grows = work.found is None or head.size_bytes > work.found.head.size_bytes
            if not grows and head.checkpoints <= work.session.head.checkpoints:
                commands.insert(0, ("HDEL", "", ""))  # after a write that needs no memory, Redis refuses none
            if work.found is None:
                commands += [("DEL", suffix) for suffix in _SUFFIXES]
            commands += _entry_commands(work)
        kept: Argument = "" if work.ended or head.expires_us is None else -(-head.expires_us // 1_000)
        stamp = 0 if work.found is None else work.found.head.stamp
        guard: list[Argument] = [
            work.call.token.hex(),
            stamp,
            work.valid_until_us if work.found is not None else NEVER_US,
            json.dumps(outcomes_of(work)),
            kept,
        ]
        key = key_of(self._prefix, work.call.address)
        now_us, outcome, *_ = yield from self._evaluate(key, [*guard, *_flat(commands)])
        self.clock.learn(now_us)
        return {b"done": Commit.DONE, b"outdated": Commit.OUTDATED, b"repeated": Commit.REPEATED}[outcome]

    def _read(self, address: calls.Address, commands: Sequence[Command]) -> Generator[Any, Any, tuple[int, list[Any]]]:
        key = key_of(self._prefix, address)
        now_us, _, results = yield from self._evaluate(key, ["", "", "", "", "", *_flat(commands)])
        self.clock.learn(now_us)
        return now_us, results


_SUFFIXES = (":entries", ":notes", ":checkpoints", ":history")


def _reads(session: Session, need: Need, *, fills: bool) -> Iterator[tuple[Command, Callable[[Any], None]]]:
    """Yield the commands that read what is needed, each with a function that adds its result to the session."""
    valued = need.whole or need.variables == VALUES
    session.complete = valued or need.variables in {EXPIRING, NAMES}
    session.listed = need.checkpoints or bool(need.contents)

    def head(answer: list[Any]) -> None:
        stamp, expires, ttl, rest = answer
        if stamp is not None:
            session.head = Head(stamp=int(stamp), expires_us=_number(expires), ttl_us=_number(ttl))
            session.head = replace(session.head, **dict(zip(_HEAD, json.loads(rest), strict=True)))

    def entries(stored: Iterable[tuple[str, bytes | None]]) -> None:
        for field, entry in stored:
            if entry is not None:
                session.add(int(field[0]), field[1:], _entry(entry))

    def named(keys: Sequence[str], answer: list[Any]) -> None:
        entries(zip(keys, answer, strict=True))

    def every(answer: list[Any]) -> None:
        found = ((field.decode(), entry) for field, entry in _pairs(answer).items())
        entries(one for one in found if need.whole or int(one[0][0]) != NOTE)

    def first(answer: list[Any]) -> None:
        cursor, found = answer
        session.complete = int(cursor) == 0
        every(found)

    def checkpoints(answer: list[Any]) -> None:
        found = (StoredCheckpoint.of(*json.loads(text)) for text in _pairs(answer).values())
        session.checkpoints = sorted(found, key=lambda one: one.stamp)

    def history(answer: list[Any]) -> None:
        earlier, wanted = _pairs(answer), need.contents
        session.checkpoints = [
            session.with_content(one, _earlier(one, earlier)) if one.info.checkpoint_id in wanted else one
            for one in session.checkpoints
        ]

    yield ("HMGET", "", "stamp", "expires", "ttl", "head"), head
    values = [] if valued else [_field(VARIABLE, key) for key in sorted(need.values)]
    values += [_field(TASK, "")] if need.task and not need.whole else []
    sizes = [] if session.complete else [_field(VARIABLE, key) for key in sorted(need.sizes - need.values)]
    for command, names in (("HMGET", values), ("SIZES", sizes)):
        for some in _portions(names):
            yield (command, ":entries", *some), partial(named, some)
    if session.complete:
        yield ("HGETALL" if valued else "ALLSIZES", ":entries"), every
    elif fills:
        yield ("SOMESIZES", ":entries", NAMES_AT_FIRST), first
    if need.notes:
        yield (
            ("NOTES", ":notes", need.notes),
            lambda answer: entries((field.decode(), entry) for field, entry in _pairs(answer).items()),
        )
    if session.listed:
        yield ("HGETALL", ":checkpoints"), checkpoints
    if need.contents:
        yield ("HGETALL", ":history"), history


def _entry(stored: bytes) -> Entry:
    size_bytes, version, used, expires_us = _ABOUT.unpack_from(stored)
    return Entry(stored[_ABOUT.size :] or None, size_bytes, version, used, expires_us or None)


def _stored(entry: Entry) -> bytes:
    return _ABOUT.pack(entry.size_bytes, entry.version, entry.used, entry.expires_us or 0) + (entry.value or b"")


def _earlier(checkpoint: StoredCheckpoint, history: dict[bytes, bytes]) -> Iterator[tuple[int, str, Entry]]:
    """Yield the earlier versions of entries that were valid beyond a checkpoint."""
    for field, stored in history.items():
        if int(field[1:21]) <= checkpoint.stamp < int(field[21:41]):
            yield int(field[:1]), field[41:].decode(), _entry(stored)


def _head_command(head: Head) -> Command:
    expires = "" if head.expires_us is None else head.expires_us
    ttl = "" if head.ttl_us is None else head.ttl_us
    rest = json.dumps([getattr(head, name) for name in _HEAD])
    return ("HSET", "", "stamp", head.stamp, "expires", expires, "ttl", ttl, "head", rest)


def _entry_commands(work: Work) -> list[Command]:
    """Return the commands that write entries and checkpoints."""
    changes = work.changes()
    commands: list[Command] = []
    for kind, name, until in changes.keep:
        before = work.session.entries[kind][name]
        commands.append(("KEEP", "", _field(kind, name), _copy(kind, name, before.version, until)))
    for kind, name, entry, until in changes.history:
        commands.append(("HSET", ":history", _copy(kind, name, entry.version, until), _stored(entry)))
    oldest_us = work.now_us - DELETED_KNOWN_US
    forgotten = [_field(VARIABLE, name) for name, stamp in work.session.deleted.items() if stamp <= oldest_us]
    removed = [_field(NOTE, name) for name in changes.drops]
    commands += [("HDEL", ":entries", *some) for some in _portions([*forgotten, *removed])]
    commands += [("ZREM", ":notes", *some) for some in _portions(changes.drops)]
    commands += [("ZADD", ":notes", int(name), name) for kind, name, _ in changes.puts if kind == NOTE]
    puts = [text for kind, name, entry in changes.puts for text in (_field(kind, name), _stored(entry))]
    commands += [("HSET", ":entries", *some) for some in _portions(puts)]
    for name, _ in changes.uses:
        about = _stored(work.changed[VARIABLE][name]._replace(value=None))
        commands.append(("USE", ":entries", _field(VARIABLE, name), about))
    for checkpoint in changes.created:
        commands.append(("HSET", ":checkpoints", checkpoint.columns[0], json.dumps(checkpoint.columns)))
    if changes.removed:
        commands.append(("HDEL", ":checkpoints", *changes.removed))
        commands.append(("PRUNE", ":history", *(f"{one.stamp:020}" for one in work.checkpoints)))
    return commands


def _field(kind: int, name: str) -> str:
    return f"{kind}{name}"


def _copy(kind: int, name: str, version: int, until: int) -> str:
    return f"{kind}{version:020}{until:020}{name}"


def _flat(commands: Iterable[Command]) -> Iterator[Argument]:
    for command in commands:
        yield len(command)
        yield from command


def _portions(texts: Sequence[Any]) -> list[Sequence[Any]]:
    return [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]


def _pairs(answer: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(answer[::2], answer[1::2], strict=True))


def _number(text: bytes | None) -> int | None:
    return int(text) if text else None


@lru_cache(maxsize=4_096)
def key_of(prefix: str, address: calls.Address) -> str:
    """Return the name of a session's first key; the names of its other keys begin with it.

    Redis Cluster places keys by the text in braces. Quoted ids contain neither braces nor colons, so different
    addresses have different names.
    """
    return f"{prefix}:{{{_named(address.tenant)}:{_named(address.session_id)}}}"


def pattern_of(prefix: str, tenant: str) -> str:
    """Return a Redis glob that matches all keys of a tenant's sessions."""
    literal = _SPECIAL_IN_GLOBS.sub(r"\\\g<0>", prefix)
    return f"{literal}:{{{_named(tenant)}:*"


def session_of(key: bytes) -> bytes | None:
    """Return the first key of the session of a key; None for a token, which outlives the session."""
    first, brace, rest = key.partition(b"}")
    return None if rest.startswith(b":token:") else first + brace


def _named(text: str) -> str:
    named = quote(text, safe="")
    return named if len(named) <= _READABLE else f"#{hashlib.sha256(named.encode()).hexdigest()}"


#: The arguments of the script that removes a session. Its first result is whether the session was there.
ENDING: list[Argument] = ["", "", "", "", "", *_flat(("DEL", suffix) for suffix in ("", *_SUFFIXES))]


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
