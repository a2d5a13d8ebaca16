"""Locus' storage-backend interface over plain dicts: `MySQLBackend` and `SyncMySQLBackend`, as its built-in backend."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol, Unpack, cast, runtime_checkable

from pydantic import SecretStr

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Operation
from ...errors import ConfigError
from ...families.checkpoints.estimates import CountEstimate
from ...families.checkpoints.preconditions import Expected
from ...families.checkpoints.store import State, StoreOperations
from ...runtime.database import Where, share
from ...runtime.stores import AsyncStore, SyncStore, awaited_method, blocking_method

#: Options that have no counterpart, and what to use here.
_OTHER_OPTIONS = {
    "table_name": "use table_prefix=, which names both tables",
    "min_pool_size": "connections are opened when needed; leave it out",
    "charset": "text is always utf8mb4; leave it out",
    "collation": "ids are always compared by code point; leave it out",
    "autocommit": "transactions are managed here; leave it out",
    "use_pure": "choose the client library with driver=",
}


class BackendKeywords(Keywords, total=False):
    """The options as keywords, for type checkers, with the built-in backend's name for one of them."""

    max_pool_size: int


@runtime_checkable
class AgentsState(Protocol):
    """Protocol of a Locus agent's state, so that Locus need not be imported."""

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the state as a dict of JSON values."""


class OperationsOfLocus(StoreOperations):
    """The store's operations as Locus' contracts have them: with times as text."""

    def get_metadata(  # type: ignore[override]  # times as text, as in the others
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> Operation[dict[str, Any] | None]:
        """Return id, metadata and time of a checkpoint, or of a thread's newest; None if there is none."""
        info = yield from super().get_metadata(thread_id, checkpoint_id)
        return None if info is None else as_returned(info)

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]
        """Return checkpoints whose metadata has this top-level key with a value that contains this one, newest first.

        Searches the ``metadata`` argument of saves, not the metadata of an agent's run, which is part of the state.
        Containment is that of MySQL's ``JSON_CONTAINS``: a list contains each of its elements, and lists of them; an
        object contains objects with some of its pairs; any other value contains equal values.
        """
        return [as_returned(one) for one in (yield from super().query_by_metadata(key, value, limit))]

    def search(self, query: str, limit: int = 10) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]
        """Return checkpoints that contain words of a query, best first; see `CheckpointStore.search`."""
        return [as_returned(one) for one in (yield from super().search(query, limit))]

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Return threads whose newest state has a value under a top-level key; see `CheckpointStore.search_data`."""
        return [as_returned(one) for one in (yield from super().search_data(path, value, limit))]

    def list_with_metadata(self, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]
        """Return the newest checkpoint of each thread, most recently saved first."""
        return [as_returned(one) for one in (yield from super().list_with_metadata(limit))]


class BackendOperations(OperationsOfLocus):
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
        return (yield from super().get_metadata(thread_id))

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

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]
        """Return ids whose metadata has this key with a value that contains this one, each with its state as ``data``.

        Newest first; see `CheckpointStore.query_by_metadata`.
        """
        found = yield from self.checkpoints.queries.states_by_metadata(self.tenant, key, value, limit)
        return [{**as_returned(info), "data": state} for info, state in found]


class _Backend:
    """The constructor of both backends. The arguments are those of `MySQLBackend`."""

    def __init__(
        self, where: Where = ENVIRONMENT, *address: str | int | SecretStr, **options: Unpack[BackendKeywords]
    ) -> None:
        given = own_options(options)
        if isinstance(where, str) and "://" not in where:
            address = (where, *address)
            where = ENVIRONMENT
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
        database, config, owned = share(type(self), where, cast(Keywords, given))
        super().__init__(BackendOperations(config), database, owned=owned)  # type: ignore[call-arg]  # of the store


class MySQLBackend(_Backend, AsyncStore[BackendOperations]):
    """One current state for each thread id, as plain dicts, in MySQL: the interface of Locus' storage backends.

    It works under Locus' ``StorageBackendAdapter``, but for agents `MySQLCheckpointer` is the better choice.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords. Or a host, as
            the built-in backend takes it.
        address: What follows the host there: port, database, user, password and DSN.
        options: Options of `MySQLConfig`; with a `Database`, those of a store. ``max_pool_size`` is ``pool_size``.
    """

    save = awaited_method(BackendOperations.save)
    load = awaited_method(BackendOperations.load)
    exists = awaited_method(BackendOperations.exists)
    delete = awaited_method(BackendOperations.delete)
    list_threads = awaited_method(BackendOperations.list_threads)
    count = awaited_method(BackendOperations.count)
    copy_thread = awaited_method(BackendOperations.copy_thread)
    get_metadata = awaited_method(BackendOperations.get_metadata)
    query_by_metadata = awaited_method(BackendOperations.query_by_metadata)
    search = awaited_method(BackendOperations.search)
    search_data = awaited_method(BackendOperations.search_data)
    list_with_metadata = awaited_method(BackendOperations.list_with_metadata)
    estimate_count = awaited_method(BackendOperations.estimate_count)
    vacuum = awaited_method(BackendOperations.vacuum)


class SyncMySQLBackend(_Backend, SyncStore[BackendOperations]):
    """`MySQLBackend` without an event loop: the same methods, blocking. Safe to share between threads.

    The arguments are those of `MySQLBackend`.
    """

    save = blocking_method(BackendOperations.save)
    load = blocking_method(BackendOperations.load)
    exists = blocking_method(BackendOperations.exists)
    delete = blocking_method(BackendOperations.delete)
    list_threads = blocking_method(BackendOperations.list_threads)
    count = blocking_method(BackendOperations.count)
    copy_thread = blocking_method(BackendOperations.copy_thread)
    get_metadata = blocking_method(BackendOperations.get_metadata)
    query_by_metadata = blocking_method(BackendOperations.query_by_metadata)
    search = blocking_method(BackendOperations.search)
    search_data = blocking_method(BackendOperations.search_data)
    list_with_metadata = blocking_method(BackendOperations.list_with_metadata)
    estimate_count = blocking_method(BackendOperations.estimate_count)
    vacuum = blocking_method(BackendOperations.vacuum)


def own_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the built-in backend's options as options of `MySQLConfig`.

    Raises:
        ConfigError: One has no counterpart.
    """
    for name, advice in _OTHER_OPTIONS.items():
        if name in options:
            raise ConfigError(f"{name}: {advice}.")
    own = dict(options)
    if "max_pool_size" in own:
        own.setdefault("pool_size", own.pop("max_pool_size"))
        own.pop("max_pool_size", None)
    return own


def as_returned(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict in the form of Locus' own backends: times as ISO 8601 text."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()}


def as_glob(pattern: str) -> str:
    """Return a pattern for LIKE, which Locus' SQL backends accept, as a glob; a possible glob is returned unchanged.

    One with ``%`` and neither ``*`` nor ``?`` is for LIKE. ``_`` alone is not evidence, because many ids contain it.
    """
    if not isinstance(pattern, str) or "%" not in pattern or {"*", "?"} & {*pattern}:
        return pattern
    glob, characters = [], iter(pattern)
    for character in characters:
        if character == "\\":
            glob.append(next(characters, "\\"))
        else:
            glob.append({"%": "*", "_": "?"}.get(character, character))
    return "".join(glob)
