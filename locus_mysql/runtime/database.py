"""Connections and process caches that stores share: `Database`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack, cast, runtime_checkable

from pydantic import SecretStr

from ..config import (
    ENVIRONMENT,
    NAMES_SERVER,
    ConnectionOptions,
    Environment,
    Keywords,
    MySQLConfig,
    StoreKeywords,
    StoreOptions,
    check_dsn,
    refuse_unused,
)
from ..dialect.server_roles import HEALTH
from ..drivers.interface import find_driver
from ..engine.at_fork import Forked, reset_at_fork
from ..engine.execution import AsyncEngine, SyncEngine
from ..engine.logs import Counters, PoolState
from ..engine.loops import settled
from ..engine.operation import Operation, fetch
from ..errors import ConfigError
from ..lru_cache import LRUCache
from .metrics import families_of
from .server_rows import aware
from .telemetry import Telemetry

#: Names of caches whose look-ups are counted: newest states of threads, and embeddings.
STATES, EMBEDDINGS = "states", "embeddings"


@dataclass(frozen=True, slots=True)
class Stats:
    """The pools of a `Database` at one moment, and its counters, which only grow.

    Args:
        open: Connections that are open, or being opened, in all pools.
        in_use: Open connections that calls use now.
        waiting: Calls that wait for a connection.
        opened: Connections opened so far.
        lost: Connections dropped so far because they, or their server, failed.
        round_trips: Packets that were sent, answered or not. Those of calls under way are not counted.
        retries: Batches sent again, after a lost connection, a deadlock or a lock wait.
        cache_hits: Loads of a newest state that used a cached state, which is the newest one or a base of it.
        cache_misses: Other loads of a newest state. A load by an id counts only if the cached state has that id.
        vector_cache_hits: Searches by meaning that used cached embeddings of the namespaces.
        vector_cache_misses: Other searches by meaning, except those among few embeddings, which need no cache.
        sent_bytes: Bytes of commands, before TLS; logins are not counted.
        received_bytes: Bytes of answers, likewise.
        synchronous: The pool of the synchronous stores.
        asynchronous: The pools of the asynchronous stores, one for each event loop that has made a call.
    """

    open: int
    in_use: int
    waiting: int
    opened: int
    lost: int
    round_trips: int
    retries: int
    cache_hits: int
    cache_misses: int
    vector_cache_hits: int
    vector_cache_misses: int
    sent_bytes: int
    received_bytes: int
    synchronous: PoolState = field(default_factory=PoolState)
    asynchronous: tuple[PoolState, ...] = ()


def stats_of(counters: Counters, blocking: SyncEngine | None, awaited: AsyncEngine | None) -> Stats:
    """Return the statistics of a database, from those of its engines that exist."""
    (synchronous,) = (PoolState(),) if blocking is None else blocking.pools()
    asynchronous = () if awaited is None else awaited.pools()
    pools = (synchronous, *asynchronous)
    return Stats(
        open=sum(pool.open for pool in pools),
        in_use=sum(pool.in_use for pool in pools),
        waiting=sum(pool.waiting for pool in pools),
        opened=counters.opened,
        lost=counters.lost,
        round_trips=counters.total.round_trips,
        retries=counters.retries,
        cache_hits=counters.looked_up(STATES, hit=True),
        cache_misses=counters.looked_up(STATES, hit=False),
        vector_cache_hits=counters.looked_up(EMBEDDINGS, hit=True),
        vector_cache_misses=counters.looked_up(EMBEDDINGS, hit=False),
        sent_bytes=counters.total.sent_bytes,
        received_bytes=counters.total.received_bytes,
        synchronous=synchronous,
        asynchronous=asynchronous,
    )


class Health(TypedDict):
    """The result of a health check."""

    ok: bool
    server_version: str
    read_only: bool
    server_time: datetime


def ask_health() -> Operation[Health]:
    """Ask the server for its version, its time, and whether it accepts writes. One round trip."""
    (server,) = yield from fetch(HEALTH)
    return Health(
        ok=True, server_version=server.version, read_only=bool(server.read_only), server_time=aware(server.time)
    )


C = TypeVar("C", bound=Forked)

#: What `Database.forget` returns: `Receipt` of the families, a layer above.
Receipt: TypeAlias = Any


@runtime_checkable
class EmptiedCache(Protocol):
    """A cache that can be emptied."""

    def clear(self) -> None:
        """Remove all entries."""


class Database:
    """One pool of connections for any number of stores, asynchronous and synchronous ones, in one MySQL database.

    The stores share its process caches too, so that a store may be made for each request.

    Each event loop has its own pool, and the threads of synchronous stores share one. The first connection is opened at
    the first call. A forked process may use the database too: it opens its own connections, and has its own caches.

    Args:
        where: A DSN, or a `MySQLConfig`; or give its options as keywords. If none of these names the server,
            ``LOCUS_MYSQL_DSN`` and the other variables are read, as by `MySQLConfig.from_env`. Options of stores that
            are given here are the defaults of the stores that use this database.
        options: Options of `MySQLConfig`.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.

    Example:
        ```python
        async with Database("mysql://user:password@localhost/app", driver="asyncmy") as db:
            checkpointer = MySQLCheckpointer(db, tenant="acme")
            store = CheckpointStore(db, keep_checkpoints=20)
            await store.save("thread-1", {"step": 1})
        ```
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Environment = ENVIRONMENT, **options: Unpack[Keywords]
    ) -> None:
        self.config = configure(where, options)
        self.counters = Counters()
        self.telemetry = Telemetry(self.config)
        #: The recently used states of all stores; the parts of families share its limit.
        self.states: LRUCache[Any] = LRUCache(self.config.cache_bytes)
        self._caches: dict[Hashable, Forked] = {}
        reset_at_fork(self)

    def reset_in_child(self) -> None:
        """After a fork: leave the parent's connections alone, and use no lock that one of its threads may hold."""
        engines = vars(self)  # not the properties, which would create an engine
        engines_made = [engines[name] for name in ("synchronous", "asynchronous") if name in engines]
        for one in (self.counters, self.telemetry, self.states, *engines_made, *self._caches.values()):
            one.reset_in_child()

    #: Whether this is the transaction of a program; see `using`.
    in_transaction: ClassVar[bool] = False

    def cache(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return a process cache, which all stores of this database share.

        Args:
            key: Its name, and everything on which the meaning of its entries depends except their own keys, such as the
                tables' prefix and the encryption.
            make: Makes the cache, at the first call.
        """
        found = self._caches.get(key)
        return cast(C, self._caches.setdefault(key, make()) if found is None else found)

    def registry(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return an object with what calls of this process hold now; like `cache`, but transactions share it too."""
        return self.cache(key, make)

    def embeddings(self, limit_bytes: int) -> LRUCache[Any]:
        """Return the cache of embeddings with this limit, which all stores with the same limit share."""
        return self.cache(("embeddings", limit_bytes), lambda: LRUCache(limit_bytes))

    def empty_caches(self) -> None:
        """Remove what the caches of its stores hold of the stored data."""
        for one in (self.states, *self._caches.values()):
            if isinstance(one, EmptiedCache):
                one.clear()

    async def health_check(self) -> Health:
        """Ask the server for its version, its time, and whether it accepts writes. One round trip.

        Raises:
            LocusMySQLError: The server did not answer.
        """
        return await self.asynchronous.run(ask_health())

    def health_check_blocking(self) -> Health:
        """The same without an event loop."""
        return self.synchronous.run(ask_health())

    async def forget(self, **options: Any) -> Receipt:
        """Remove all that is stored of a customer, in all families whose tables exist, and return a receipt.

        Each owner, such as a thread, is removed with its parts in one transaction. Expired ones are removed too. It may
        be stopped at any time, and called again. Stop writing for the customer first. Empties the process caches.

        Args:
            options: ``tenant`` for all of a tenant; or ``owners``: globs of the names of owners, for all families, as
                ``"u-17/*"``, or by family, as ``{"graphs": "u-17/*", "memories": "users/u-17/*"}``. With ``dry_run``,
                owners are only listed. ``by`` names who asks for it; ``earlier`` is the receipt of a call that was
                stopped; ``progress`` is called with the receipt after each few owners.

        Raises:
            InvalidInput: Neither a tenant nor owners were given, or there is no such family.

        Example:
            ```python
            receipt = await database.forget(tenant="acme", by="ticket 4711")
            print(receipt.families["graphs"].owners)
            ```
        """
        forgetting: Any = import_module("..families.forgetting", __package__)
        return cast("Receipt", await forgetting.forget(self, **options))

    def forget_blocking(self, **options: Any) -> Receipt:
        """The same without an event loop."""
        forgetting: Any = import_module("..families.forgetting", __package__)
        return cast("Receipt", forgetting.forget_blocking(self, **options))

    @classmethod
    def embedded(cls, folder: str | Path, **options: Unpack[Keywords]) -> Self:
        """Return a database whose server this process starts, with its data in a folder. Needs the extra ``embedded``.

        Args:
            folder: The folder. It is created at the first call. One process at a time can use it.
            options: Options of `MySQLConfig`, except those of the server's address.

        Raises:
            ConfigError: An option is unknown, wrong, or contradicts another.

        Example:
            ```python
            with Database.embedded("agent-memory") as db:
                store = SyncCheckpointStore(db)
                store.save("thread-1", {"step": 1})
            ```
        """
        options["embedded"] = folder
        return cls(**options)

    @cached_property
    def asynchronous(self) -> AsyncEngine:
        """Runs the operations of asynchronous stores."""
        engine = AsyncEngine(self.config, self.counters)
        self.telemetry.watch(engine)
        return engine

    @cached_property
    def synchronous(self) -> SyncEngine:
        """Runs the operations of synchronous stores."""
        engine = SyncEngine(self.config, self.counters)
        self.telemetry.watch(engine)
        return engine

    def using(self, connection: object) -> Transaction:
        """Return a place for stores that write in the transaction open on a connection; the caller commits it.

        Nothing is repeated, cached or created there. The caches of this database are not used. A call that is refused
        undoes only what it did itself. A `using` ends with its transaction: later calls raise `TransactionLost`. Make
        one for each transaction. Without SQLAlchemy, calls in a later transaction may not be noticed.

        Args:
            connection: A connection to the same database, of mysql-connector, PyMySQL, aiomysql or asyncmy, or
                SQLAlchemy's. For asynchronous stores its library must be asynchronous, for synchronous ones blocking.

        Raises:
            ConfigError: It is no such connection.
        """
        return Transaction(self, connection)

    def check_driver(self, store: str, *, blocks: bool, other: str | None) -> None:
        """Report now, and not at the first call, that a store cannot work with the driver.

        Args:
            store: The name of its class.
            blocks: Whether its methods block.
            other: The name of the class with the other kind of methods, if there is one.

        Raises:
            DriverMissing: The driver's library is not installed.
            ConfigError: The driver has no synchronous side, or the connection of a transaction is of the other kind.
        """
        driver = find_driver(self.config.driver)
        if blocks and not getattr(driver, "blocks", True):
            raise ConfigError(
                f"Driver {self.config.driver!r} has no synchronous side. Use driver='pymysql' or 'mysql-connector', or "
                f"{other}."
            )

    def stats(self) -> Stats:
        """Current pool usage, and counters since creation or the last fork. Calls no server."""
        engines = vars(self)  # not the properties, which would create an engine
        return stats_of(self.counters, engines.get("synchronous"), engines.get("asynchronous"))

    def collect(self) -> Iterator[Any]:
        """Yield `stats` as metrics for Prometheus: a `Database` is a collector of ``prometheus_client``."""
        return families_of(self.stats(), self.config.pool_size)

    def close(self) -> None:
        """Close the connections of synchronous stores; the next call of one opens new ones."""
        self.synchronous.close()

    async def aclose(self) -> None:
        """Close all connections, also if the task is cancelled meanwhile; the next call opens new ones."""
        self.synchronous.close()
        await settled(self.asynchronous.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Database({description_of(self.config)})"


class Transaction(Database):
    """Runs the calls of stores in the transaction open on a program's connection: `Database.using` makes it.

    Args:
        database: Its options hold here too.
        connection: The connection.
    """

    in_transaction = True

    def __init__(self, database: Database, connection: object) -> None:
        from ..drivers.borrowed import Borrowed  # most programs lend no connection
        from ..engine.transaction import TransactionExecution

        self.config, self.counters, self.telemetry = database.config, Counters(), database.telemetry
        self._database = database
        self.states, self._caches = LRUCache(0), {}
        self._borrowed = Borrowed(connection)
        self._execution = TransactionExecution(self.config, self.counters, self._borrowed, self.empty_caches)

    def registry(self, key: Hashable, make: Callable[[], C]) -> C:
        """Return an object with what calls of this process hold now; like `cache`, but transactions share it too."""
        return self._database.registry(key, make)

    def check_driver(self, store: str, *, blocks: bool, other: str | None) -> None:
        """Check that the store's methods block if the connection's do; see `Database.check_driver`."""
        if blocks is not self._borrowed.blocks:
            own, its = ("blocks", "is asynchronous") if blocks else ("is asynchronous", "blocks")
            raise ConfigError(
                f"{store} {own}, and the connection {its}: use {f'{other}, or ' if other else ''}another connection."
            )

    @cached_property
    def asynchronous(self) -> AsyncEngine:
        """Runs the operations of asynchronous stores."""
        return AsyncEngine(self.config, self.counters, self._execution)

    @cached_property
    def synchronous(self) -> SyncEngine:
        """Runs the operations of synchronous stores."""
        return SyncEngine(self.config, self.counters, self._execution)

    def close(self) -> None:
        """Do nothing: the program closes its connection."""

    async def aclose(self) -> None:
        """Do nothing: the program closes its connection."""


#: Where a store's rows are.
Where: TypeAlias = str | SecretStr | MySQLConfig | Database | Environment


def share(store: type | None, where: Where, options: Keywords) -> tuple[Database, MySQLConfig, bool]:
    """Return the database of a store, its options, and whether the store opened the database and must close it.

    A `Database` and a `MySQLConfig` may be made for several stores, so each store ignores the options in them that it
    does not use.

    Args:
        store: The class of the store; None for what uses the options of all stores.
        where: The first argument of the store.
        options: Its keywords.

    Raises:
        ConfigError: An option is unknown, wrong, contradicts another, or has no effect on the store.
    """
    if isinstance(where, Database):
        refuse_unused(store or object, options.keys() & StoreOptions.model_fields.keys())
        shared: StoreKeywords = options  # options of a connection are refused with advice
        # A copy, so that the `tenant_scope` of a store holds for this store only.
        return where, where.config.for_store(**shared) if options else where.config.model_copy(), False
    database = Database(where, **options)
    if not isinstance(where, MySQLConfig):
        implied = {"search"} if database.config.encryption is not None else set[str]()
        refuse_unused(store or object, database.config.model_fields_set - implied)
    return database, database.config, True


def description_of(config: ConnectionOptions) -> str:
    """Return the servers, the database and the driver, without secrets."""
    where = ", ".join(str(endpoint) for endpoint in config.endpoints)
    return f"{where}/{config.database}, driver={config.driver!r}"


def configure(where: object, options: Keywords) -> MySQLConfig:
    """Return the options in a DSN, a `MySQLConfig` or keywords, or those of the environment.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
    """
    check_dsn(where)
    if isinstance(where, MySQLConfig):
        if options:
            raise ConfigError("Give either a MySQLConfig or options, not both.")
        return where
    if isinstance(where, str | SecretStr):
        if "dsn" in options:
            raise ConfigError("The DSN is given twice, as first argument and as dsn=; give it once.")
        options["dsn"] = where
        return MySQLConfig(**options)
    if not isinstance(where, Environment):
        raise ConfigError(
            f"The first argument must be a DSN such as 'mysql://user:password@host/database', a MySQLConfig or a "
            f"Database, not {type(where).__name__}. Give options as keywords: **options."
        )
    return MySQLConfig(**options) if options.keys() & NAMES_SERVER else MySQLConfig.from_env(**options)
