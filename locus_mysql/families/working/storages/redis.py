"""Sessions in Redis or Valkey: `RedisStorage`."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Coroutine, Generator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ....drivers.wire.sockets import abort_transport
from ....engine.at_fork import reset_at_fork
from ....engine.operation import drive_awaited, drive_blocking
from ....errors import ConfigError, DriverMissing, PoolTimeout
from ....extras import install_command
from .interface import FairLock, SessionLocks, TwoSided
from .redis_operations import RedisOperations, Scan, Sleep, Step, failure

T = TypeVar("T")

#: The number of names of keys that Redis scans at a time, for those of a tenant.
SCANNED_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class _Own:
    """A client that a storage opened for one event loop, and its free connections."""

    client: Any
    slots: FairLock


class RedisStorage(TwoSided):
    """Keeps sessions in Redis 6.2 or later, or in Valkey. Every step is one Lua script.

    A read is one round trip, and so is a write to a session to which this process wrote last; otherwise a write reads
    the session first.

    How durable acknowledged writes are depends on Redis' settings. With ``appendonly yes`` and ``appendfsync always``
    none is lost when Redis or its machine fails; with ``everysec``, those of the last second or two; without
    ``appendonly``, those since the last snapshot. A replica that takes over may lack the primary's last writes. With
    another ``maxmemory-policy`` than ``noeviction``, Redis drops sessions, or parts of them, when it is full. Redis
    itself removes sessions that expire.

    Args:
        where: A URL (``redis://``, ``rediss://``, ``unix://``; ``valkey://`` and ``valkeys://`` mean the first two), or
            a client of redis-py: ``redis.asyncio.Redis``, ``redis.Redis``, or either ``RedisCluster``; it must not
            decode responses. A given client serves only its own side, and an asynchronous one only its own event loop.
        other: A client for the other side, if ``where`` is a client.
        prefix: The prefix of all keys' names; without braces.
        timeout_s: The timeout of connecting, and of waiting for an answer.
        max_connections: The maximum number of connections of each event loop, and of the blocking side; further calls
            wait.
        cluster: Whether the URL is that of a node of a Redis Cluster.
        options: Further options of redis-py's clients, for clients that are opened here.

    Raises:
        DriverMissing: redis-py is not installed.
        ConfigError: The URL or an option is wrong.
    """

    def __init__(
        self,
        where: Any,
        other: Any = None,
        *,
        prefix: str = "locus",
        timeout_s: float = 5.0,
        max_connections: int = 50,
        cluster: bool = False,
        **options: Any,
    ) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigError(
                f"The prefix {prefix!r} cannot be used for keys in Redis: give at least one character, and no braces."
            )
        self._library = _library()
        self._timeout_s = timeout_s
        self._max_connections = max_connections
        self._cluster = cluster
        self._options = options
        # redis-py accepts only Redis' URL schemes, for Valkey too.
        self._url = re.sub("^valkey(s?)://", r"redis\1://", where) if isinstance(where, str) else None
        self._awaited: Any = None
        self._blocking: Any = None
        self._owns_blocking = self._url is not None
        self._own: WeakKeyDictionary[asyncio.AbstractEventLoop, _Own] = WeakKeyDictionary()
        self._abandoned: list[object] = []
        self._lock = threading.Lock()
        self._slots = FairLock(max_connections)
        if self._url is None:
            self._take(where, other)
            given = self._awaited or self._blocking
            self._where = _shown(given)
        else:
            if other is not None:
                raise ConfigError("Give RedisStorage a URL, or clients, but not both.")
            self._where = "its URL"
            self._where = _shown(self._open(awaited=True))
        self._operations = RedisOperations(prefix, self._where, self._library)
        super().__init__(self._operations, SessionLocks())
        reset_at_fork(self)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> RedisStorage:
        """A storage that opens its own clients; the options are those of the class."""
        return cls(url, **options)

    def _run(self, steps: Generator[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return drive_awaited(steps, self._do)

    def _run_blocking(self, steps: Generator[Any, Any, T]) -> T:
        return drive_blocking(steps, self._do_blocking)

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
            return None
        if self._url is None:
            return await self._send(self._given(self._awaited, "asynchronous"), step)
        own = self._of_this_loop()
        try:
            await own.slots.wait(self._timeout_s)
        except TimeoutError:
            raise self._no_slot() from None
        try:
            return await self._send(own.client, step)
        finally:
            own.slots.release()

    async def _send(self, client: Any, step: Any) -> Any:
        if isinstance(step, Scan):
            return [key async for key in client.scan_iter(match=step.pattern, count=SCANNED_AT_ONCE)]
        return await client.execute_command(*step)

    def _do_blocking(self, step: Step) -> Any:
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
            return None
        if self._url is None:
            return self._send_blocking(self._given(self._blocking, "blocking"), step)
        slots = self._slots
        try:
            slots.wait_blocking(self._timeout_s)
        except TimeoutError:
            raise self._no_slot() from None
        try:
            return self._send_blocking(self._blocking or self._open_blocking(), step)
        finally:
            slots.release()

    def _send_blocking(self, client: Any, step: Any) -> Any:
        if isinstance(step, Scan):
            return list(client.scan_iter(match=step.pattern, count=SCANNED_AT_ONCE))
        return client.execute_command(*step)

    async def aclose(self) -> None:
        """Close the connections that the asynchronous side opened. The next call opens new ones."""
        here = asyncio.get_running_loop()
        with self._lock:
            own = list(self._own.items())
            self._own.clear()
        for loop, one in own:
            if loop is here:
                await one.client.aclose()
            elif loop.is_closed():
                _abort(one.client, loop)
            else:
                loop.call_soon_threadsafe(_abort, one.client, loop)

    def close(self) -> None:
        """Close the connections that the blocking side opened. The next call opens new ones."""
        if self._owns_blocking and self._blocking is not None:
            client, self._blocking = self._blocking, None
            client.close()

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's connections and locks alone; a lock may be held for ever."""
        self._abandoned.append(self._own)
        self._own = WeakKeyDictionary()
        self._locks = SessionLocks()
        self._lock = threading.Lock()
        self._slots = FairLock(self._max_connections)
        if self._owns_blocking:
            self._abandoned.append(self._blocking)
            self._blocking = None

    def _no_slot(self) -> PoolTimeout:
        return PoolTimeout(
            f"All {self._max_connections} connections to Redis at {self._where} were in use for {self._timeout_s:g} s. "
            "Raise max_connections, or make fewer calls at once."
        )

    def _take(self, *clients: Any) -> None:
        """Use given clients."""
        for client in clients:
            if client is None:
                continue
            if isinstance(client, (self._library.asyncio.Redis, self._library.asyncio.RedisCluster)):
                self._awaited = client
            elif isinstance(client, (self._library.Redis, self._library.RedisCluster)):
                self._blocking = client
            else:
                raise ConfigError(
                    f"RedisStorage takes a URL, or clients of redis-py, and was given {type(client).__name__}."
                )
            if client.get_encoder().decode_responses:
                raise ConfigError(
                    "The given client of Redis decodes responses, which damages binary values. Create it with "
                    "decode_responses=False."
                )

    def _given(self, client: Any, side: str) -> Any:
        if client is None:
            raise ConfigError(f"RedisStorage was given no {side} client of redis-py. Give one too, or a URL.")
        return client

    def _open(self, *, awaited: bool) -> Any:
        """Open a client."""
        library = self._library.asyncio if awaited else self._library
        kind = library.RedisCluster if self._cluster else library.Redis
        # The server may have closed an idle connection: then the call is repeated once, and recognised by its token.
        # Not after a timeout, which would take twice as long then.
        retry_of = self._library.asyncio.retry.Retry if awaited else self._library.retry.Retry
        options: dict[str, Any] = {
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": self._timeout_s,
            "retry": retry_of(self._library.backoff.NoBackoff(), 1, (self._library.ConnectionError,)),
            **({} if self._cluster else {"max_connections": self._max_connections}),
            **self._options,
        }
        if options.get("decode_responses"):
            raise ConfigError("RedisStorage keeps bytes: leave out decode_responses.")
        try:
            client = kind.from_url(self._url, **options)
            if not self._cluster:  # connections are opened later, and would reject options only then
                client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
        except (self._library.RedisError, OSError) as error:
            raise failure(error, self._where) from error
        except (ValueError, TypeError) as error:
            # Not `error` itself where it quotes the URL, which may hold a password.
            words = str(error) if isinstance(error, TypeError) else "it must be as redis://user:password@host:port/0"
            raise ConfigError(f"The URL of Redis, or an option, is wrong: {words}.") from None
        if client.get_encoder().decode_responses:
            raise ConfigError("RedisStorage keeps bytes: leave decode_responses out of its URL.")
        return client

    def _open_blocking(self) -> Any:
        with self._lock:
            if self._blocking is None:
                self._blocking = self._open(awaited=False)
            return self._blocking

    def _of_this_loop(self) -> _Own:
        """The running loop's client. Clients of closed loops are dropped."""
        loop = asyncio.get_running_loop()
        own = self._own.get(loop)
        if own is None:
            with self._lock:
                for other, stale in list(self._own.items()):
                    if other.is_closed():
                        _abort(stale.client, other)
                        del self._own[other]
                own = self._own[loop] = _Own(self._open(awaited=True), FairLock(self._max_connections))
        return own


def _library() -> Any:
    """redis-py."""
    if find_spec("redis") is None:
        raise DriverMissing(f"The library of RedisStorage, redis-py, is not installed. Run {install_command('redis')}.")
    import redis
    import redis.asyncio
    import redis.asyncio.retry
    import redis.backoff
    import redis.retry

    return redis


def _connections(client: Any) -> list[Any]:
    """All connections of an asynchronous client."""
    nodes = getattr(getattr(client, "nodes_manager", None), "nodes_cache", None)
    if nodes is not None:
        return [one for node in nodes.values() for one in getattr(node, "_connections", ())]
    pool = client.connection_pool
    return [*getattr(pool, "_available_connections", ()), *getattr(pool, "_in_use_connections", ())]


def _abort(client: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Drop a client's connections at once, also when its event loop is closed."""
    for connection in _connections(client):
        writer = getattr(connection, "_writer", None)
        if writer is not None:
            abort_transport(writer.transport, loop)
            connection._writer = connection._reader = None


def _shown(client: Any) -> str:
    """The address of a client, without a password."""
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        nodes = client.get_nodes() or getattr(getattr(client, "nodes_manager", None), "startup_nodes", {}).values()
        return ", ".join(sorted(f"{node.host}:{node.port}" for node in nodes)) or "its cluster"
    options = pool.connection_kwargs
    return str(options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")
