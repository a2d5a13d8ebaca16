"""The versioned store of plain dicts: `CheckpointStore` and `SyncCheckpointStore`."""

from __future__ import annotations

from typing import Any, Unpack

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Operation
from ...records.leases import Turns
from ...records.turns import AsyncTurns, SyncTurns
from ...runtime.arguments import check_thread_id, tenant_of
from ...runtime.database import Database, Health, Where, ask_health, share
from ...runtime.exact_json import check_json_object
from ...runtime.stores import awaited_method, blocking_method
from .coding.codec import encode
from .coding.delta import Delta
from .estimates import CountEstimate, Estimates
from .loading import Loading
from .maintenance import Removing, ThreadMaintenance
from .preconditions import Expected, expecting
from .queries import Queries, text_of_dict
from .records import (
    CheckpointInfo,
    DiskUsage,
    EncodedCheckpoint,
    HistoryEntry,
    NewCheckpoint,
    SearchHit,
    decode_state_text,
)
from .saving import Saving
from .statements.tables import CheckpointDialect, Kind, ThreadKey, checkpoint_dialect
from .thread_cache import Context
from .whole_threads import WholeThreads


class CheckpointOperations:
    """The operations of one store, as generators that do no I/O. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The tables.
    """

    def __init__(self, config: MySQLConfig, dialect: CheckpointDialect) -> None:
        self.context = context = Context(config, dialect)
        self.loading = Loading(context)
        self.maintenance = ThreadMaintenance(context)
        self.saving = Saving(context, self.loading, self.maintenance)
        self.removing = Removing(context)
        self.queries = Queries(context)
        self.estimates = Estimates(context)
        self.whole_threads = WholeThreads(context)


State = dict[str, Any]


class StoreOperations:
    """The store's operations, for one tenant, with states as dicts.

    Args:
        config: The options.
        kind: The kind of states, which selects the tables.
    """

    def __init__(self, config: MySQLConfig, kind: Kind = "dicts") -> None:
        self.config = config
        self.kind = kind
        dialect = checkpoint_dialect(
            config.table_prefix, kind, search=config.search, search_parser=config.search_parser
        )
        self.schema = dialect.schema
        self.checkpoints = CheckpointOperations(config, dialect)

    @property
    def tenant(self) -> str:
        """The tenant of the call's threads."""
        return tenant_of(self.config)

    def tenant_for(self, thread_id: str | None) -> str:
        """Return the tenant of a call about a thread, or about all threads."""
        return self.tenant

    @property
    def turns(self) -> Turns:
        """The turns on its threads."""
        return self.checkpoints.context.turns

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        self.checkpoints.context.attach(database)

    def save(
        self,
        thread_id: str,
        data: State,
        checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        expected: Expected = None,
    ) -> Operation[str]:
        """Store a state as the newest checkpoint of a thread.

        Args:
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            data: A dict of JSON values. What is loaded is equal to it, in the same order.
            checkpoint_id: 1 to 128 characters. A random one if None. If the thread has it, it moves to this state.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.
            expected: The id of the checkpoint that must be the thread's newest, `NO_CHECKPOINT` if there must be none;
                otherwise nothing is saved.

        Returns:
            The checkpoint's id.

        Raises:
            Conflict: The thread's newest checkpoint is not the one expected; the error names both.
            TurnLost: The `turn` that encloses the call is over.
            InvalidInput: An argument cannot be stored exactly.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        check_json_object(data, "The state")
        new = self.new(data, checkpoint_id, metadata)
        return (yield from self.checkpoints.saving.save(tenant_of(self.config), thread_id, new, expecting(expected)))

    def new(self, data: State, checkpoint_id: str | None, metadata: object) -> NewCheckpoint:
        """Return the checkpoint to save for a state that JSON can represent."""

        def text(delta: Delta) -> tuple[str, bool]:
            return text_of_dict(data, delta)

        encoded = EncodedCheckpoint(encode(data))
        return NewCheckpoint(lambda _: encoded, text, checkpoint_id, metadata)

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread: its tenant and its id."""
        return ThreadKey(self.tenant_for(thread_id), check_thread_id(thread_id))

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[State | None]:
        """Return the state of a checkpoint, or of the newest of a thread; None if there is none.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is missing, or its content is not a state. The error names
                the row and the thread.
        """
        found = yield from self.checkpoints.loading.load(self.tenant_for(thread_id), thread_id, checkpoint_id)
        return None if found is None else decode_state_text(found.text(), thread_id)

    def exists(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Return whether a thread has this checkpoint, or any."""
        return (yield from self.checkpoints.queries.exists(self.tenant_for(thread_id), thread_id, checkpoint_id))

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if there was one."""
        return (yield from self.checkpoints.removing.delete(self.tenant_for(thread_id), thread_id, checkpoint_id))

    def list_checkpoints(self, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Return the ids of a thread's checkpoints, newest first."""
        return (yield from self.checkpoints.queries.list_checkpoints(self.tenant_for(thread_id), thread_id, limit))

    def history(self, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """Return a thread's checkpoints with id, parent's id, time, stored bytes and metadata; newest first."""
        return (yield from self.checkpoints.queries.history(self.tenant_for(thread_id), thread_id, limit))

    def list_threads(self, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Return the ids of threads, most recently saved first.

        Args:
            limit: The maximum number of ids.
            pattern: A glob: ``*`` matches any text, ``?`` one character, anything else itself.
            offset: The number of threads to skip.
        """
        return (yield from self.checkpoints.queries.list_threads(self.tenant, limit, pattern, offset))

    def count(self, pattern: str = "*") -> Operation[int]:
        """Return the number of threads that match a glob."""
        return (yield from self.checkpoints.queries.count(self.tenant, pattern))

    def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints, on the server; False if there is none.

        Raises:
            ThreadExists: The destination has checkpoints; nothing was changed.
        """
        tenant = self.tenant_for(source_thread_id)
        return (yield from self.checkpoints.whole_threads.copy(tenant, source_thread_id, dest_thread_id))

    def get_metadata(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[CheckpointInfo | None]:
        """Return id, metadata and time of a checkpoint, or of the newest of a thread; None if there is none."""
        return (yield from self.checkpoints.queries.get_metadata(self.tenant_for(thread_id), thread_id, checkpoint_id))

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return checkpoints whose metadata has this top-level key with a value that contains this one, newest first.

        Containment is that of MySQL's ``JSON_CONTAINS``: a list contains each of its elements, and lists of them; an
        object contains objects with some of its pairs; any other value contains equal values.
        """
        return (yield from self.checkpoints.queries.query_by_metadata(self.tenant, key, value, limit))

    def search(self, query: str, limit: int = 10) -> Operation[list[SearchHit]]:
        """Return checkpoints that contain words of a query, best first, the newest of equals first.

        The score, above 0 to 1, depends on which of the words a text holds, not on how often; the rarer a word is among
        the tenant's hits of this query, the more it counts. Words under three letters are not found.
        """
        return (yield from self.checkpoints.queries.search(self.tenant, query, limit))

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Return threads whose newest state has a value under a top-level key, by MySQL's ``JSON_CONTAINS``.

        Reads every thread's newest state until enough are found; for frequent queries, use metadata. States that are
        damaged are left out, with a warning in the log. A thread that is saved while this reads may be missed.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id``, ``updated_at`` and ``data``, most recently saved first.
        """
        return (yield from self.checkpoints.queries.search_data(self.tenant, path, value, limit))

    def list_with_metadata(self, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return the newest checkpoint of each thread, most recently saved first."""
        return (yield from self.checkpoints.queries.list_with_metadata(self.tenant, limit))

    def estimate_count(self, pattern: str = "*") -> Operation[CountEstimate]:
        """Estimate the number of threads that match a glob, from at most 5,000 of them; `count` counts all.

        Up to 5,000 threads are counted exactly, including expired ones. A larger number is the server's estimate for
        the index, multiplied by the fraction of 5,000 threads that match and have not expired: the first in the order
        of ids if the pattern begins with text, else those saved last, which may differ from the others.

        Returns:
            A `CountEstimate`: ``number``, ``at_least`` and ``exact``.
        """
        return (yield from self.checkpoints.estimates.estimate_count(self.tenant, pattern))

    def get_disk_usage(self, thread_id: str | None = None) -> Operation[DiskUsage]:
        """Return the bytes that a thread, or all threads, take on the server, without indexes."""
        return (yield from self.checkpoints.queries.get_disk_usage(self.tenant_for(thread_id), thread_id))

    def health_check(self) -> Operation[Health]:
        """Ask the server for its version and time."""
        return (yield from ask_health())

    def vacuum(self, older_than_days: float = 30) -> Operation[int]:
        """Remove checkpoints older than this many days; returns their number.

        A thread that was not saved since is deleted; others always keep their newest checkpoint. Locks one thread at a
        time, so writers wait for one thread at most.
        """
        return (yield from self.checkpoints.maintenance.vacuum(self.tenant, older_than_days))

    def forget_tenant(self) -> Operation[int]:
        """Delete all threads of the tenant; returns the number of checkpoints."""
        return (yield from self.checkpoints.maintenance.forget_tenant(self.tenant))


class CheckpointStore(AsyncTurns[StoreOperations]):
    """Versioned states of threads, as plain dicts, in MySQL. Every save is a checkpoint that can be loaded again.

    Args:
        where: A `Database` shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        async with CheckpointStore(dsn="mysql://user:password@localhost/app") as store:
            first = await store.save("thread-1", {"step": 1})
            await store.save("thread-1", {"step": 2})
            assert await store.load("thread-1") == {"step": 2}
            assert await store.load("thread-1", first) == {"step": 1}
        ```
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(StoreOperations(config), database, owned=owned)

    save = awaited_method(StoreOperations.save)
    load = awaited_method(StoreOperations.load)
    exists = awaited_method(StoreOperations.exists)
    delete = awaited_method(StoreOperations.delete)
    list_checkpoints = awaited_method(StoreOperations.list_checkpoints)
    history = awaited_method(StoreOperations.history)
    list_threads = awaited_method(StoreOperations.list_threads)
    count = awaited_method(StoreOperations.count)
    copy_thread = awaited_method(StoreOperations.copy_thread)
    get_metadata = awaited_method(StoreOperations.get_metadata)
    query_by_metadata = awaited_method(StoreOperations.query_by_metadata)
    search = awaited_method(StoreOperations.search)
    search_data = awaited_method(StoreOperations.search_data)
    list_with_metadata = awaited_method(StoreOperations.list_with_metadata)
    estimate_count = awaited_method(StoreOperations.estimate_count)
    get_disk_usage = awaited_method(StoreOperations.get_disk_usage)
    health_check = awaited_method(StoreOperations.health_check)
    vacuum = awaited_method(StoreOperations.vacuum)
    forget_tenant = awaited_method(StoreOperations.forget_tenant)


class SyncCheckpointStore(SyncTurns[StoreOperations]):
    """`CheckpointStore` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(StoreOperations(config), database, owned=owned)

    save = blocking_method(StoreOperations.save)
    load = blocking_method(StoreOperations.load)
    exists = blocking_method(StoreOperations.exists)
    delete = blocking_method(StoreOperations.delete)
    list_checkpoints = blocking_method(StoreOperations.list_checkpoints)
    history = blocking_method(StoreOperations.history)
    list_threads = blocking_method(StoreOperations.list_threads)
    count = blocking_method(StoreOperations.count)
    copy_thread = blocking_method(StoreOperations.copy_thread)
    get_metadata = blocking_method(StoreOperations.get_metadata)
    query_by_metadata = blocking_method(StoreOperations.query_by_metadata)
    search = blocking_method(StoreOperations.search)
    search_data = blocking_method(StoreOperations.search_data)
    list_with_metadata = blocking_method(StoreOperations.list_with_metadata)
    estimate_count = blocking_method(StoreOperations.estimate_count)
    get_disk_usage = blocking_method(StoreOperations.get_disk_usage)
    health_check = blocking_method(StoreOperations.health_check)
    vacuum = blocking_method(StoreOperations.vacuum)
    forget_tenant = blocking_method(StoreOperations.forget_tenant)
