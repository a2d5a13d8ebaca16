"""The memory of Locus agents: `MySQLCheckpointer`, its synchronous twin, and how Locus finds them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any, TypeVar, Unpack

from locus.core.protocols import CheckpointerCapabilities
from locus.memory.checkpointer import BaseCheckpointer
from pydantic import SecretStr

from ...config import ENVIRONMENT, Environment, Keywords
from ...engine.logs import CALLS, loggable
from ...errors import ConfigError, LocusMySQLError, ReadOnlyServer
from ...records.turns import AsyncTurns, SyncTurns
from ...runtime.database import Health, Where, share
from ...runtime.stores import awaited_method, blocking_method
from .backend import own_options
from .operations import LocusOperations, OnConflict


def refuse_agents(kind: str, depth: int) -> None:
    """Refuse a blocking call by a coroutine of Locus, which would await a result that is not awaitable.

    An `Agent` accepts any object as its checkpointer and calls no method of it before its first turn. In a coroutine of
    your own, or in a notebook, a blocking call may be intended, so those are not refused.

    Args:
        kind: The class, for the message.
        depth: The number of calls between the caller and this function.

    Raises:
        ConfigError: The caller is a coroutine of the Locus SDK.
    """
    caller = sys._getframe(depth + 1)
    module = caller.f_globals.get("__name__", "")
    if module.partition(".")[0] == "locus" and caller.f_code.co_flags & inspect.CO_COROUTINE:
        raise ConfigError(
            f"{kind} blocks, and Locus awaits its checkpointer. Give the agent a {kind.removeprefix('Sync')}: "
            "agent.run_sync() works with it too."
        )


T = TypeVar("T")


class Checkpointer:
    """What both checkpointers have and neither waits for. The arguments are those of `MySQLCheckpointer`."""

    _operations: LocusOperations

    def __init__(
        self,
        where: Where = ENVIRONMENT,
        *,
        tenant_of: Callable[[str], str] | None = None,
        message_retention: timedelta | None = None,
        stamp_messages: bool | None = None,
        on_conflict: OnConflict = "keep",
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(type(self), where, options)
        operations = LocusOperations(config, tenant_of, message_retention, stamp_messages, on_conflict)
        super().__init__(operations, database, owned=owned)  # type: ignore[call-arg]  # of the store

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """All capabilities; search only if it is configured."""
        return CheckpointerCapabilities(
            search=self._operations.config.search,
            metadata_query=True,
            vacuum=True,
            branching=True,
            ttl=True,
            list_threads=True,
            list_with_metadata=True,
            persistent_checkpoint_ids=True,
        )

    def tenant_for(self, thread_id: str | None = None) -> str:
        """Return the tenant of a call about a thread."""
        return self._operations.tenant_for(thread_id)

    def ddl(self) -> list[str]:
        """Return the statements that create the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


class MySQLCheckpointer(Checkpointer, AsyncTurns[LocusOperations], BaseCheckpointer):
    """Keeps the states of Locus agents in MySQL, with every capability a checkpointer can have.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that contain it.
        message_retention: Drop exchanges older than this at every save, as ``locus.memory.retention`` describes.
        stamp_messages: Stamp each message with the time of its first save, so that `purge_messages` can determine its
            age. Enabled automatically with ``message_retention``; off otherwise, as a stamped message differs from the
            one saved.
        on_conflict: The effect of a save if another process saved to the thread since the run loaded it: ``"keep"``
            saves it as the newest; ``"raise"`` saves nothing and raises `Conflict`; ``"branch"`` saves it, and what the
            run saves later, to a new thread, which the warning `ThreadBranched` and the log name. With the last two, a
            loaded state carries a stamp in its metadata, which is not stored.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        checkpointer = MySQLCheckpointer(dsn="mysql://user:password@localhost/app")
        agent = Agent(model=model, checkpointer=checkpointer)
        await agent.arun("Hello", thread_id="support/42")
        ```
    """

    save = awaited_method(LocusOperations.save)
    load = awaited_method(LocusOperations.load)
    list_checkpoints = awaited_method(LocusOperations.list_checkpoints)
    delete = awaited_method(LocusOperations.delete)
    exists = awaited_method(LocusOperations.exists)
    search = awaited_method(LocusOperations.search)
    query_by_metadata = awaited_method(LocusOperations.query_by_metadata)
    get_metadata = awaited_method(LocusOperations.get_metadata)
    vacuum = awaited_method(LocusOperations.vacuum)
    copy_thread = awaited_method(LocusOperations.copy_thread)
    list_threads = awaited_method(LocusOperations.list_threads)
    list_with_metadata = awaited_method(LocusOperations.list_with_metadata)
    count = awaited_method(LocusOperations.count)
    estimate_count = awaited_method(LocusOperations.estimate_count)
    search_data = awaited_method(LocusOperations.search_data)
    get_disk_usage = awaited_method(LocusOperations.get_disk_usage)
    _health_check = awaited_method(LocusOperations.health_check)
    history = awaited_method(LocusOperations.history)
    forget_tenant = awaited_method(LocusOperations.forget_tenant)
    purge_messages = awaited_method(LocusOperations.purge_messages)

    async def health_check(self, *, raises: bool = False) -> bool:
        """Return whether the server answers, has the tables and takes writes; False rather than an error.

        The reason for False is logged at level WARNING.

        Args:
            raises: Raise the error, which has the remedy, instead.
        """
        try:
            return require_writable(await self._health_check())
        except LocusMySQLError as error:
            return report_unhealthy(error, raises=raises)


class SyncMySQLCheckpointer(Checkpointer, SyncTurns[LocusOperations]):
    """`MySQLCheckpointer` without an event loop: the same methods, blocking. Safe to share between threads.

    For code of your own: a Locus `Agent` needs a `MySQLCheckpointer`, also for ``run_sync``. The arguments are those of
    `MySQLCheckpointer`.
    """

    save = blocking_method(LocusOperations.save)
    load = blocking_method(LocusOperations.load)
    list_checkpoints = blocking_method(LocusOperations.list_checkpoints)
    delete = blocking_method(LocusOperations.delete)
    exists = blocking_method(LocusOperations.exists)
    search = blocking_method(LocusOperations.search)
    query_by_metadata = blocking_method(LocusOperations.query_by_metadata)
    get_metadata = blocking_method(LocusOperations.get_metadata)
    vacuum = blocking_method(LocusOperations.vacuum)
    copy_thread = blocking_method(LocusOperations.copy_thread)
    list_threads = blocking_method(LocusOperations.list_threads)
    list_with_metadata = blocking_method(LocusOperations.list_with_metadata)
    count = blocking_method(LocusOperations.count)
    estimate_count = blocking_method(LocusOperations.estimate_count)
    search_data = blocking_method(LocusOperations.search_data)
    get_disk_usage = blocking_method(LocusOperations.get_disk_usage)
    _health_check = blocking_method(LocusOperations.health_check)
    history = blocking_method(LocusOperations.history)
    forget_tenant = blocking_method(LocusOperations.forget_tenant)
    purge_messages = blocking_method(LocusOperations.purge_messages)

    def _run(self, operation: Generator[Any, Any, T]) -> T:
        refuse_agents(type(self).__name__, 2)  # the method's frame is between
        return super()._run(operation)

    def health_check(self, *, raises: bool = False) -> bool:
        """Return whether the server answers, has the tables and takes writes; False rather than an error.

        The reason for False is logged at level WARNING.

        Args:
            raises: Raise the error, which has the remedy, instead.
        """
        try:
            return require_writable(self._health_check())
        except LocusMySQLError as error:
            return report_unhealthy(error, raises=raises)


def mysql_checkpointer(
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
    user: str | None = None,
    password: str | None = None,
    dsn: str | SecretStr | Environment = ENVIRONMENT,
    **options: Any,
) -> MySQLCheckpointer:
    """Return a checkpointer. Accepts the keywords of Locus' built-in factory and those of `MySQLCheckpointer`.

    Args:
        host: Host of the server; ``localhost`` if left out.
        port: Its port; 3306 if left out.
        database: The database; ``locus`` if left out.
        user: The user; ``root`` if left out.
        password: The password.
        dsn: All of these as ``mysql://user:password@host:port/database``.
        options: Options of `MySQLCheckpointer`. ``max_pool_size`` is understood as ``pool_size``.

    Raises:
        ConfigError: An option is unknown, wrong, or contradicts another.
    """
    address = {
        "host": host,
        "port": port,
        "database": database,
        "user": user,
        "password": password,
    }
    given: dict[str, Any] = {name: value for name, value in address.items() if value is not None}
    if not isinstance(dsn, Environment):
        given["dsn"] = dsn
    return MySQLCheckpointer(**given, **own_options(options))


def register() -> None:
    """Make Locus' ``get_checkpointer("mysql")`` and ``get_checkpointer("mysql:database")`` return this checkpointer."""
    from locus.memory.registry import register_checkpointer

    def factory(config_hint: str | None = None, **options: Any) -> MySQLCheckpointer:
        if config_hint:
            options.setdefault("database", config_hint)
        return mysql_checkpointer(**options)

    register_checkpointer("mysql", factory)


def require_writable(health: Health) -> bool:
    """Return True if a server that answered accepts writes.

    Raises:
        ReadOnlyServer: It does not.
    """
    if health["read_only"]:
        raise ReadOnlyServer("The server takes no writes (it is read-only). Connect to the primary.")
    return True


def report_unhealthy(error: LocusMySQLError, *, raises: bool) -> bool:
    """Log the reason of a failed health check, and return False."""
    CALLS.warning("A health check failed: %s.", loggable(error))
    if raises:
        raise error
    return False
