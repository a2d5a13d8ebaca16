"""Reads sessions in Redis and commits changes to them, as generators that do no I/O; ``redis.lua`` is the other end.

The keys of a session begin with its name, and its braces put them into one slot of a cluster:

- (itself): a hash with ``stamp``, ``expires``, ``ttl``, and ``head``, the rest of the session's own data as JSON
- ``:entries``: a hash with the sizes, versions, uses and expiries of entries, by kind and name; deleted ones too
- ``:values``: a hash with their values
- ``:notes``: a sorted set of the numbers of notes
- ``:checkpoints``: a hash with the descriptions of checkpoints, as JSON, by id
- ``:history``: a hash with earlier versions of entries, by kind, version, the stamp up to which it is valid, and name
- ``:token:…``: the outcomes of a call, as JSON, by the call's token; it outlives the session
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from ....errors import LocusMySQLError
from .. import calls
from ..content import DELETED_KNOWN_US, NEVER_US, NOTE, TASK, VARIABLE, Entries, Entry, Head, Session, StoredCheckpoint
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
from .redis_errors import failure

#: Types of texts that redis-py accepts.
Argument: TypeAlias = bytes | str | int

#: A command of Redis, or of the script: its name, the end of the key's name, and further arguments.
Command: TypeAlias = tuple[Argument, ...]

#: Size, version, last use and expiry of an entry; an expiry of 0 is none.
_ABOUT = Struct(">IQQQ")

#: The number of fields that one command writes or reads at most.
_AT_ONCE = 500

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
        """See `OptimisticOperations`."""
        yield Sleep(seconds)

    def find(self, call: calls.Call) -> Generator[Any, Any, list[int] | None]:
        """See `OptimisticOperations`."""
        _, (found,) = yield from self._read(call.address, [("GET", f":token:{call.token.hex()}")])
        return None if found is None else json.loads(found)

    def load(self, address: calls.Address, need: Need, *, fills: bool, renews: bool) -> Generator[Any, Any, Loaded]:
        """See `OptimisticOperations`."""
        reading = _Reading(address, need)
        commands = reading.commands(fills=fills)
        renewal: list[Command] = [("RENEW", "")] if renews else []
        now_us, results = yield from self._read(address, [*renewal, *commands])
        return Loaded(reading.session(results[len(renewal) :], now_us), now_us)

    def commit(self, session: Session | None, work: Work) -> Generator[Any, Any, Commit]:
        """See `OptimisticOperations`."""
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


_SUFFIXES = (":entries", ":values", ":notes", ":checkpoints", ":history")


class _Reading:
    """The commands that read what is needed of a session, and the session in their results."""

    def __init__(self, address: calls.Address, need: Need) -> None:
        self._address, self._need = address, need
        self._values = [] if need.whole or need.variables == VALUES else sorted(need.values)
        self._all = need.whole or need.variables in {EXPIRING, NAMES, VALUES}
        self._fields: list[str] = []
        self._valued = 0
        self._scans = False

    def commands(self, *, fills: bool) -> list[Command]:
        """Return the commands."""
        need = self._need
        commands: list[Command] = [("HMGET", "", "stamp", "expires", "ttl", "head")]
        self._fields = [_field(VARIABLE, key) for key in self._values]
        if need.task and not need.whole:
            self._fields.append(_field(TASK, ""))
        self._valued = len(self._fields)
        if not self._all:
            self._fields += [_field(VARIABLE, key) for key in sorted(need.sizes - need.values)]
        for some in _portions(self._fields):
            commands.append(("HMGET", ":entries", *some))
        for some in _portions(self._fields[: self._valued]):
            commands.append(("HMGET", ":values", *some))
        self._scans = fills and not self._all
        if self._all:
            commands.append(("HGETALL", ":entries"))
        elif self._scans:
            commands.append(("HSCAN", ":entries", 0, "COUNT", NAMES_AT_FIRST))
        if need.whole or need.variables == VALUES:
            commands.append(("HGETALL", ":values"))
        if need.notes:
            commands.append(("NOTES", ":notes", need.notes))
        if need.checkpoints or need.contents:
            commands.append(("HGETALL", ":checkpoints"))
        if need.contents:
            commands.append(("HGETALL", ":history"))
        return commands

    def session(self, results: list[Any], now_us: int) -> Session | None:
        """Return the session; None if there is none."""
        need, answers = self._need, iter(results)
        stamp, expires, ttl, rest = next(answers)
        if stamp is None:
            return None
        head = Head(stamp=int(stamp), expires_us=_number(expires), ttl_us=_number(ttl))
        head = replace(head, **dict(zip(_HEAD, json.loads(rest), strict=True)))
        listed = need.checkpoints or bool(need.contents)
        session = Session(self._address.session_id, head, whole=need.whole, listed=listed)
        session.complete = self._all
        about = [one for _ in _portions(self._fields) for one in next(answers)]
        values = [one for _ in _portions(self._fields[: self._valued]) for one in next(answers)]
        values += [None] * (len(about) - len(values))
        for field, one, value in zip(self._fields, about, values, strict=True):
            if one is not None:
                _add(session, field, one, value)
        found: dict[bytes, bytes] = {}
        if self._all:
            found = _pairs(next(answers))
        elif self._scans:
            cursor, pairs = next(answers)
            session.complete = int(cursor) == 0
            found = _pairs(pairs)
        valued = _pairs(next(answers)) if need.whole or need.variables == VALUES else {}
        for key, one in found.items():
            if need.whole or not key.startswith(b"3"):
                _add(session, key.decode(), one, valued.get(key))
        if need.notes:
            notes = next(answers)
            for key, one, value in zip(notes[::3], notes[1::3], notes[2::3], strict=True):
                _add(session, key.decode(), one, value)
        if listed:
            checkpoints = [_checkpoint(name.decode(), text) for name, text in _pairs(next(answers)).items()]
            history = _pairs(next(answers)) if need.contents else {}
            session.checkpoints = [
                replace(one, content=_content(session, one, history))
                if one.info.checkpoint_id in need.contents
                else one
                for one in sorted(checkpoints, key=lambda one: one.stamp)
            ]
        return session


def _add(session: Session, field: str, about: bytes, value: bytes | None) -> None:
    """Add an entry to a session. An entry that is known with its value stays."""
    kind, name, entry = int(field[0]), field[1:], _entry(about, value)
    held = session.entries[kind]
    before = held.get(name)
    if before is not None and before.value is not None:
        return
    if kind == VARIABLE and not entry.size_bytes:
        session.deleted[name] = entry.version
    else:
        held[name] = entry


def _entry(about: bytes, value: bytes | None) -> Entry:
    size_bytes, version, used, expires_us = _ABOUT.unpack(about)
    return Entry(value, size_bytes, version, used, expires_us or None)


def _about(entry: Entry) -> bytes:
    return _ABOUT.pack(entry.size_bytes, entry.version, entry.used, entry.expires_us or 0)


def _content(session: Session, checkpoint: StoredCheckpoint, history: dict[bytes, bytes]) -> Entries:
    """Return the entries that a checkpoint contains, of a session that is whole."""
    content: Entries = {VARIABLE: {}, TASK: {}, NOTE: {}}
    for kind, entries in session.entries.items():
        for name, entry in entries.items():
            if entry.size_bytes and entry.version <= checkpoint.stamp and _live_at(entry, checkpoint.at_us):
                content[kind][name] = entry
    for field, stored in history.items():
        kind, version, valid_until, name = int(field[:1]), int(field[1:21]), int(field[21:41]), field[41:].decode()
        entry = _entry(stored[: _ABOUT.size], stored[_ABOUT.size :])
        if version <= checkpoint.stamp < valid_until and _live_at(entry, checkpoint.at_us):
            content[kind][name] = entry
    return content


def _live_at(entry: Entry, at_us: int) -> bool:
    return entry.expires_us is None or entry.expires_us > at_us


def _checkpoint(checkpoint_id: str, text: bytes) -> StoredCheckpoint:
    stamp, label, at_us, *counts = json.loads(text)
    created_at = _EPOCH + timedelta(microseconds=at_us)
    return StoredCheckpoint(calls.CheckpointInfo(checkpoint_id, label, created_at, *counts), stamp, at_us)


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
        stored = _about(entry) + (entry.value or b"")
        commands.append(("HSET", ":history", _copy(kind, name, entry.version, until), stored))
    oldest_us = work.now_us - DELETED_KNOWN_US
    forgotten = [_field(VARIABLE, name) for name, stamp in work.session.deleted.items() if stamp <= oldest_us]
    removed = [_field(NOTE, name) for name in changes.drops]
    commands += [("HDEL", ":entries", *some) for some in _portions([*forgotten, *removed])]
    commands += [("ZREM", ":notes", *some) for some in _portions(changes.drops)]
    removed += [_field(kind, name) for kind, name, entry in changes.puts if entry.value is None]
    commands += [("HDEL", ":values", *some) for some in _portions(removed)]
    about: list[Argument] = []
    values: list[Argument] = []
    for kind, name, entry in changes.puts:
        about += _field(kind, name), _about(entry)
        if entry.value is not None:
            values += _field(kind, name), entry.value
        if kind == NOTE:
            commands.append(("ZADD", ":notes", int(name), name))
    for name, _ in changes.uses:
        about += _field(VARIABLE, name), _about(work.changed[VARIABLE][name])
    commands += [("HSET", ":entries", *some) for some in _portions(about)]
    commands += [("HSET", ":values", *some) for some in _portions(values)]
    for checkpoint in changes.created:
        info = checkpoint.info
        text = json.dumps(
            [checkpoint.stamp, info.label, checkpoint.at_us, info.keys, info.scratchpad_entries, info.size_bytes]
        )
        commands.append(("HSET", ":checkpoints", info.checkpoint_id, text))
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
