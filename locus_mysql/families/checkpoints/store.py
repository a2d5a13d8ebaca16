"""The versioned store of plain dicts: `CheckpointStore` and `SyncCheckpointStore`."""

from __future__ import annotations

from typing import Any, Unpack

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...dialect.checkpoints.tables import Kind
from ...engine.counters import Counters
from ...engine.operation import Operation
from ...runtime.arguments import check_thread_id
from ...runtime.database import Database, share
from ...runtime.exact_json import check_json_object
from ...runtime.stores import awaited, blocking
from .coding.codec import encode
from .coding.delta import Delta
from .estimates import CountEstimate
from .new_checkpoint import EncodedCheckpoint, NewCheckpoint
from .operations import CheckpointOperations
from .preconditions import Expected, expecting
from .records import (
    CheckpointInfo,
    DiskUsage,
    Health,
    HistoryEntry,
    SearchHit,
    decode_state_text,
)
from .search_text import text_of_dict
from .thread_cache import ThreadKey
from .turns import AsyncTurns, SyncTurns

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
        self._tenant = config.tenant
        dialect = CheckpointDialect(config.table_prefix, kind, search=config.search, search_parser=config.search_parser)
        self.schema = dialect.schema
        self.checkpoints = CheckpointOperations(config, dialect)

    @property
    def tenant(self) -> str:
        """The tenant of the threads."""
        return self._tenant

    def count_in(self, counters: Counters) -> None:
        """See `CountsCache.count_in`."""
        self.checkpoints.context.counters = counters

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
        return (yield from self.checkpoints.saving.save(self._tenant, thread_id, new, expecting(expected)))

    def new(self, data: State, checkpoint_id: str | None, metadata: object) -> NewCheckpoint:
        """Return the checkpoint to save for a state that JSON can represent."""

        def text(delta: Delta) -> tuple[str, bool]:
            return text_of_dict(data, delta)

        encoded = EncodedCheckpoint(encode(data))
        return NewCheckpoint(lambda _: encoded, text, checkpoint_id, metadata)

    def thread_key(self, thread_id: str) -> ThreadKey:
        """Return the key of a thread: its tenant and its id."""
        return self._tenant, check_thread_id(thread_id)

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[State | None]:
        """Return the state of a checkpoint, or of the newest of a thread; None if there is none.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is missing, or its content is not a state. The error names
                the row and the thread.
        """
        found = yield from self.checkpoints.loading.load(self._tenant, thread_id, checkpoint_id)
        return None if found is None else decode_state_text(found.text(), thread_id)

    def exists(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Return whether a thread has this checkpoint, or any."""
        return (yield from self.checkpoints.queries.exists(self._tenant, thread_id, checkpoint_id))

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if there was one."""
        return (yield from self.checkpoints.removing.delete(self._tenant, thread_id, checkpoint_id))

    def list_checkpoints(self, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Return the ids of a thread's checkpoints, newest first."""
        return (yield from self.checkpoints.queries.list_checkpoints(self._tenant, thread_id, limit))

    def history(self, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """Return a thread's checkpoints with id, parent's id, time, stored bytes and metadata; newest first."""
        return (yield from self.checkpoints.queries.history(self._tenant, thread_id, limit))

    def list_threads(self, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Return the ids of threads, most recently saved first.

        Args:
            limit: The maximum number of ids.
            pattern: A glob: ``*`` matches any text, ``?`` one character, anything else itself.
            offset: The number of threads to skip.
        """
        return (yield from self.checkpoints.queries.list_threads(self._tenant, limit, pattern, offset))

    def count(self, pattern: str = "*") -> Operation[int]:
        """Return the number of threads that match a glob."""
        return (yield from self.checkpoints.queries.count(self._tenant, pattern))

    def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints, on the server; False if there is none.

        Raises:
            ThreadExists: The destination has checkpoints; nothing was changed.
        """
        return (yield from self.checkpoints.whole_threads.copy(self._tenant, source_thread_id, dest_thread_id))

    def get_metadata(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[CheckpointInfo | None]:
        """Return id, metadata and time of a checkpoint, or of the newest of a thread; None if there is none."""
        return (yield from self.checkpoints.queries.get_metadata(self._tenant, thread_id, checkpoint_id))

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return checkpoints whose metadata has this top-level key with a value that contains this one, newest first.

        Containment is that of MySQL's ``JSON_CONTAINS``: a list contains each of its elements, and lists of them; an
        object contains objects with some of its pairs; any other value contains equal values.
        """
        return (yield from self.checkpoints.queries.query_by_metadata(self._tenant, key, value, limit))

    def search(self, query: str, limit: int = 10) -> Operation[list[SearchHit]]:
        """Return checkpoints that contain words of a query, best first, the newest of equals first.

        The score, above 0 to 1, depends on which of the words a text holds, not on how often; the rarer a word is among
        the tenant's hits of this query, the more it counts. Words under three letters are not found.
        """
        return (yield from self.checkpoints.queries.search(self._tenant, query, limit))

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Return threads whose newest state has a value under a top-level key, by MySQL's ``JSON_CONTAINS``.

        Reads every thread's newest state until enough are found; for frequent queries, use metadata. States that are
        damaged are left out, with a warning in the log. A thread that is saved while this reads may be missed.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id``, ``updated_at`` and ``data``, most recently saved first.
        """
        return (yield from self.checkpoints.queries.search_data(self._tenant, path, value, limit))

    def list_with_metadata(self, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return the newest checkpoint of each thread, most recently saved first."""
        return (yield from self.checkpoints.queries.list_with_metadata(self._tenant, limit))

    def estimate_count(self, pattern: str = "*") -> Operation[CountEstimate]:
        """Estimate the number of threads that match a glob, from at most 5,000 of them; `count` counts all.

        Up to 5,000 threads are counted exactly, including expired ones. A larger number is the server's estimate for
        the index, multiplied by the fraction of 5,000 threads that match and have not expired: the first in the order
        of ids if the pattern begins with text, else those saved last, which may differ from the others.

        Returns:
            A `CountEstimate`: ``number``, ``at_least`` and ``exact``.
        """
        return (yield from self.checkpoints.estimates.estimate_count(self._tenant, pattern))

    def get_disk_usage(self, thread_id: str | None = None) -> Operation[DiskUsage]:
        """Return the bytes that a thread, or all threads, take on the server, without indexes."""
        return (yield from self.checkpoints.queries.get_disk_usage(self._tenant, thread_id))

    def health_check(self) -> Operation[Health]:
        """Ask the server for its version and time."""
        return (yield from self.checkpoints.queries.health_check())

    def vacuum(self, older_than_days: float = 30) -> Operation[int]:
        """Remove checkpoints older than this many days; returns their number.

        A thread that was not saved since is deleted; others always keep their newest checkpoint. Locks one thread at a
        time, so writers wait for one thread at most.
        """
        return (yield from self.checkpoints.maintenance.vacuum(self._tenant, older_than_days))

    def forget_tenant(self) -> Operation[int]:
        """Delete all threads of the tenant; returns the number of checkpoints."""
        return (yield from self.checkpoints.maintenance.forget_tenant(self._tenant))


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

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(StoreOperations(config), database, owned=owned)

    @awaited(StoreOperations.save)
    def save(self) -> None: ...
    @awaited(StoreOperations.load)
    def load(self) -> None: ...
    @awaited(StoreOperations.exists)
    def exists(self) -> None: ...
    @awaited(StoreOperations.delete)
    def delete(self) -> None: ...
    @awaited(StoreOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...
    @awaited(StoreOperations.history)
    def history(self) -> None: ...
    @awaited(StoreOperations.list_threads)
    def list_threads(self) -> None: ...
    @awaited(StoreOperations.count)
    def count(self) -> None: ...
    @awaited(StoreOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @awaited(StoreOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @awaited(StoreOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @awaited(StoreOperations.search)
    def search(self) -> None: ...
    @awaited(StoreOperations.search_data)
    def search_data(self) -> None: ...
    @awaited(StoreOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @awaited(StoreOperations.estimate_count)
    def estimate_count(self) -> None: ...
    @awaited(StoreOperations.get_disk_usage)
    def get_disk_usage(self) -> None: ...
    @awaited(StoreOperations.health_check)
    def health_check(self) -> None: ...
    @awaited(StoreOperations.vacuum)
    def vacuum(self) -> None: ...
    @awaited(StoreOperations.forget_tenant)
    def forget_tenant(self) -> None: ...


class SyncCheckpointStore(SyncTurns[StoreOperations]):
    """`CheckpointStore` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(StoreOperations(config), database, owned=owned)

    @blocking(StoreOperations.save)
    def save(self) -> None: ...
    @blocking(StoreOperations.load)
    def load(self) -> None: ...
    @blocking(StoreOperations.exists)
    def exists(self) -> None: ...
    @blocking(StoreOperations.delete)
    def delete(self) -> None: ...
    @blocking(StoreOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...
    @blocking(StoreOperations.history)
    def history(self) -> None: ...
    @blocking(StoreOperations.list_threads)
    def list_threads(self) -> None: ...
    @blocking(StoreOperations.count)
    def count(self) -> None: ...
    @blocking(StoreOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @blocking(StoreOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @blocking(StoreOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @blocking(StoreOperations.search)
    def search(self) -> None: ...
    @blocking(StoreOperations.search_data)
    def search_data(self) -> None: ...
    @blocking(StoreOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @blocking(StoreOperations.estimate_count)
    def estimate_count(self) -> None: ...
    @blocking(StoreOperations.get_disk_usage)
    def get_disk_usage(self) -> None: ...
    @blocking(StoreOperations.health_check)
    def health_check(self) -> None: ...
    @blocking(StoreOperations.vacuum)
    def vacuum(self) -> None: ...
    @blocking(StoreOperations.forget_tenant)
    def forget_tenant(self) -> None: ...
