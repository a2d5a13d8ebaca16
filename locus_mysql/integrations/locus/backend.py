"""Locus' storage-backend interface over plain dicts: `MySQLBackend` and `SyncMySQLBackend`."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, Unpack, cast, runtime_checkable

from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...engine.operation import Operation
from ...errors import ConfigError
from ...families.checkpoints.pages import CountEstimate
from ...families.checkpoints.preconditions import Expected
from ...families.checkpoints.store import State, StoreOperations
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, SyncStore, awaited, blocking
from .built_in import as_glob, as_returned, own_options

Where: TypeAlias = str | SecretStr | MySQLConfig | Database | None


class BackendKeywords(Keywords, total=False):
    """The options as keywords, for type checkers, with the built-in backend's name for one of them."""

    max_pool_size: int


@runtime_checkable
class AgentsState(Protocol):
    """Protocol of a Locus agent's state, so that Locus need not be imported."""

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the state as a dict of JSON values."""


class BackendOperations(StoreOperations):
    """The backend's operations: those of the store, with one current state for each thread id.

    Args:
        config: The options; ``keep_checkpoints`` is 1 here.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config.model_copy(update={"keep_checkpoints": 1}), "current")

    def save(
        self,
        thread_id: str | AgentsState,
        data: State | AgentsState | str,
        checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        expected: Expected = None,
    ) -> Operation[str]:
        """Store the current state of a thread id, replacing the previous one.

        Args:
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            data: A dict of JSON values, or an agent's state, stored as its ``to_checkpoint()``. Also in the order of
                Locus' checkpointers: ``save(state, thread_id)``.
            checkpoint_id: 1 to 128 characters. A random one if None.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.
            expected: The id of the checkpoint that must be the newest, `NO_CHECKPOINT` if there must be none; otherwise
                nothing is saved.

        Returns:
            The checkpoint's id.

        Raises:
            Conflict: The newest checkpoint is not the expected one; the error names both.
            InvalidInput: An argument cannot be stored exactly.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        if isinstance(thread_id, AgentsState):
            thread_id, data = cast("tuple[str, AgentsState]", (data, thread_id))
        if isinstance(data, AgentsState):
            data = data.to_checkpoint()
        return (yield from super().save(thread_id, cast(State, data), checkpoint_id, metadata, expected=expected))

    def load(self, thread_id: str) -> Operation[State | None]:  # type: ignore[override]  # there is one state only
        """Return the current state of a thread id; None if there is none."""
        return (yield from super().load(thread_id))

    def exists(self, thread_id: str) -> Operation[bool]:  # type: ignore[override]  # there is one state only
        """Return whether a thread id has a state."""
        return (yield from super().exists(thread_id))

    def delete(self, thread_id: str) -> Operation[bool]:  # type: ignore[override]  # there is one state only
        """Delete the state of a thread id; True if there was one."""
        return (yield from super().delete(thread_id))

    def get_metadata(self, thread_id: str) -> Operation[dict[str, Any] | None]:  # type: ignore[override]  # as above
        """Return checkpoint id, metadata and time of a thread id's state; None if there is none."""
        info = yield from super().get_metadata(thread_id)
        return None if info is None else as_returned(info)

    def list_threads(self, pattern: str = "*", limit: int = 100, offset: int = 0) -> Operation[list[str]]:  # type: ignore[override]  # the order of Locus' built-in backend
        """Return ids that match a pattern, most recently saved first.

        Args:
            pattern: A glob (``*`` and ``?``); or for LIKE, as the built-in backend takes it, which is one with ``%``
                and without ``*`` and ``?``.
            limit: The maximum number of results.
            offset: The number of ids to skip.
        """
        return (yield from super().list_threads(limit, as_glob(pattern), offset))

    def count(self, pattern: str = "*") -> Operation[int]:
        """Return the number of ids that match a pattern, as in `list_threads`."""
        return (yield from super().count(as_glob(pattern)))

    def estimate_count(self, pattern: str = "*") -> Operation[CountEstimate]:
        """Estimate the number of ids that match a pattern; see `CheckpointStore.estimate_count`."""
        return (yield from super().estimate_count(as_glob(pattern)))

    def search(self, query: str, limit: int = 10) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]  # times as text
        """Return ids whose states contain words of a query, best first; see `CheckpointStore.search`."""
        return [as_returned(hit) for hit in (yield from super().search(query, limit))]

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Return ids whose state has a value under a top-level key; see `CheckpointStore.search_data`."""
        return [as_returned(one) for one in (yield from super().search_data(path, value, limit))]

    def list_with_metadata(self, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]  # times as text
        """Return every id with its metadata and time, most recently saved first."""
        return [as_returned(info) for info in (yield from super().list_with_metadata(limit))]

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]  # with states
        """Return ids whose metadata has this key with a value that contains this one, each with its state as ``data``.

        Newest first; see `CheckpointStore.query_by_metadata`.
        """
        found = yield from self.checkpoints.queries.states_by_metadata(self.tenant, key, value, limit)
        return [{**as_returned(info), "data": state} for info, state in found]


class MySQLBackend(AsyncStore[BackendOperations]):
    """One current state for each thread id, as plain dicts, in MySQL: the interface of Locus' storage backends.

    It works under Locus' ``StorageBackendAdapter``, but for agents `MySQLCheckpointer` is the better choice.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords. Or a host, as
            the built-in backend takes it.
        address: What follows the host there: port, database, user, password and DSN.
        options: Options of `MySQLConfig`; with a `Database`, those of a store. ``max_pool_size`` is ``pool_size``.
    """

    def __init__(
        self, where: Where = None, *address: str | int | SecretStr, **options: Unpack[BackendKeywords]
    ) -> None:
        database, config, owned = _share(where, address, options)
        super().__init__(BackendOperations(config), database, owned=owned)

    @awaited(BackendOperations.save)
    def save(self) -> None: ...
    @awaited(BackendOperations.load)
    def load(self) -> None: ...
    @awaited(BackendOperations.exists)
    def exists(self) -> None: ...
    @awaited(BackendOperations.delete)
    def delete(self) -> None: ...
    @awaited(BackendOperations.list_threads)
    def list_threads(self) -> None: ...
    @awaited(BackendOperations.count)
    def count(self) -> None: ...
    @awaited(BackendOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @awaited(BackendOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @awaited(BackendOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @awaited(BackendOperations.search)
    def search(self) -> None: ...
    @awaited(BackendOperations.search_data)
    def search_data(self) -> None: ...
    @awaited(BackendOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @awaited(BackendOperations.estimate_count)
    def estimate_count(self) -> None: ...
    @awaited(BackendOperations.vacuum)
    def vacuum(self) -> None: ...


class SyncMySQLBackend(SyncStore[BackendOperations]):
    """`MySQLBackend` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords. Or a host, as
            the built-in backend takes it.
        address: What follows the host there: port, database, user, password and DSN.
        options: Options of `MySQLConfig`; with a `Database`, those of a store. ``max_pool_size`` is ``pool_size``.
    """

    def __init__(
        self, where: Where = None, *address: str | int | SecretStr, **options: Unpack[BackendKeywords]
    ) -> None:
        database, config, owned = _share(where, address, options)
        super().__init__(BackendOperations(config), database, owned=owned)

    @blocking(BackendOperations.save)
    def save(self) -> None: ...
    @blocking(BackendOperations.load)
    def load(self) -> None: ...
    @blocking(BackendOperations.exists)
    def exists(self) -> None: ...
    @blocking(BackendOperations.delete)
    def delete(self) -> None: ...
    @blocking(BackendOperations.list_threads)
    def list_threads(self) -> None: ...
    @blocking(BackendOperations.count)
    def count(self) -> None: ...
    @blocking(BackendOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @blocking(BackendOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @blocking(BackendOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @blocking(BackendOperations.search)
    def search(self) -> None: ...
    @blocking(BackendOperations.search_data)
    def search_data(self) -> None: ...
    @blocking(BackendOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @blocking(BackendOperations.estimate_count)
    def estimate_count(self) -> None: ...
    @blocking(BackendOperations.vacuum)
    def vacuum(self) -> None: ...


def _share(
    where: Where, address: tuple[str | int | SecretStr, ...], options: BackendKeywords
) -> tuple[Database, MySQLConfig, bool]:
    """Like `share`, but also for the arguments of the built-in backend."""
    given = own_options(options)
    if isinstance(where, str) and "://" not in where:
        address = (where, *address)
        where = None
    elif address:
        raise ConfigError("After a DSN, a MySQLConfig or a Database, pass options as keywords.")
    names = ("host", "port", "database", "user", "password", "dsn")
    if len(address) > len(names):
        raise ConfigError(f"Only six arguments are positional: {', '.join(names)}. Pass others as keywords.")
    for name, value in zip(names, address, strict=False):
        if name in given:
            raise ConfigError(f"{name} is given twice, by position and as a keyword; give it once.")
        if value is not None:
            given[name] = value
    return share(where, cast(Keywords, given))
