"""The memory of Locus agents: `MySQLCheckpointer`, its synchronous twin, and how Locus finds them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

from locus.core.messages import Role
from locus.core.protocols import CheckpointerCapabilities
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.retention import oldest_message_time, trim_messages
from pydantic import SecretStr

from ...checkpoints.coding.delta import Delta
from ...checkpoints.new import Encoded, NewCheckpoint
from ...checkpoints.operations import CheckpointOperations
from ...checkpoints.records import HistoryEntry
from ...checkpoints.rows import as_sql_time
from ...checkpoints.searchable import joined
from ...config import Keywords, MySQLConfig
from ...database.arguments import check_limit, check_thread_id
from ...database.database import Database, share
from ...database.methods import awaited, blocking
from ...database.stores import AsyncStore, SyncStore
from ...database.tenancy import Tenancy
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...engine.operation import Operation
from ...errors import ConfigError, CorruptCheckpoint, InvalidInput, LocusMySQLError
from .retention import FirstSaved
from .state_texts import decode_state, encode_agent

_LOG = logging.getLogger(__name__)

#: Where a Locus run lists the saves of its turn that the turn's last save will supersede and delete. From
#: ``locus.agent.runtime_loop.ITERATION_CHECKPOINTS_KEY`` of locus-sdk 3.0.1. Should another version use another name,
#: those saves would be stored as lasting ones.
ITERATION_CHECKPOINTS_KEY = "_locus_iteration_checkpoints"

#: Options of Locus' built-in factory, and what to use here.
_BUILT_IN_OPTIONS = {
    "table_name": "use table_prefix=, which names both tables",
    "min_pool_size": "connections are opened when needed; leave it out",
    "charset": "text is always utf8mb4; leave it out",
    "collation": "ids are always compared by code point; leave it out",
    "autocommit": "transactions are managed here; leave it out",
    "use_pure": "choose the client library with driver=",
}


class LocusOperations:
    """The checkpointer's operations: those of checkpoints, with Locus' states in and out and a tenant for each call.

    Args:
        config: The options.
        tenant_of: Tells the tenant from a thread id.
        message_retention: Exchanges older than this are dropped at every save.
        stamp_messages: Whether messages are stamped with the time of their first save.
    """

    def __init__(
        self,
        config: MySQLConfig,
        tenant_of: Callable[[str], str] | None,
        message_retention: timedelta | None,
        stamp_messages: bool | None,
    ) -> None:
        if message_retention is not None and message_retention <= timedelta(0):
            raise ConfigError("message_retention must be positive.")
        if message_retention is not None and stamp_messages is False:
            raise ConfigError("message_retention needs stamps; leave stamp_messages out.")
        self.config = config
        self.tenancy = Tenancy(config.tenant, tenant_of)
        self.message_retention = message_retention
        self.stamps = message_retention is not None or bool(stamp_messages)
        dialect = CheckpointDialect(config.table_prefix, search=config.search, search_parser=config.search_parser)
        self.schema = dialect.schema
        self.checkpoints = CheckpointOperations(config, dialect)
        self._first_saved = FirstSaved()

    def prepare(self, state: AgentState, now: datetime | None = None) -> AgentState:
        """A state as a save writes it: stamped and trimmed, if retention is in use."""
        if not self.stamps:
            return state
        now = now or datetime.now(UTC)
        state = self._first_saved.stamp(state, now)
        if self.message_retention is not None:
            state, _ = trim_messages(state, now - self.message_retention)
        return state

    def save(
        self,
        state: AgentState,
        thread_id: str,
        checkpoint_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Operation[str]:
        """Save an agent's state as the newest checkpoint of a thread. One round trip.

        Args:
            state: The state; what is loaded is equal to it.
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            checkpoint_id: 1 to 128 characters. A random one if None. If the thread has it, it moves to this state.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.

        Returns:
            The checkpoint's id.

        Raises:
            InvalidInput: An argument cannot be stored exactly.
            TenantUnknown: ``tenant_of`` named no tenant.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        check_thread_id(thread_id)
        tenant = self.tenancy.of(thread_id)
        superseded = state.metadata.get(ITERATION_CHECKPOINTS_KEY)
        provisional = checkpoint_id is not None and isinstance(superseded, list) and checkpoint_id in superseded
        state = self.prepare(state)
        new = self._new(state, checkpoint_id, metadata, provisional=provisional)
        return (yield from self.checkpoints.save(tenant, thread_id, new))

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[AgentState | None]:
        """The state of a checkpoint, or of a thread's newest; None if there is none. One round trip.

        Raises:
            CorruptCheckpoint: A row of it was changed or is gone, or it is not an agent's state. Names the thread.
        """
        check_thread_id(thread_id)
        found = yield from self.checkpoints.load(self.tenancy.of(thread_id), thread_id, checkpoint_id)
        if found is None:
            return None
        if "messages" not in [log.name for log in found.logs]:  # else Locus would make an empty state of it
            raise CorruptCheckpoint(f"What thread {thread_id!r} holds is not the state of an agent.")
        return decode_state(found.text(), thread_id)

    def list_checkpoints(self, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Ids of a thread's checkpoints, newest first."""
        check_thread_id(thread_id)
        return (yield from self.checkpoints.list_checkpoints(self.tenancy.of(thread_id), thread_id, limit))

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if there was one. Other checkpoints stay whole."""
        check_thread_id(thread_id)
        return (yield from self.checkpoints.delete(self.tenancy.of(thread_id), thread_id, checkpoint_id))

    def exists(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Whether a thread has this checkpoint, or any."""
        check_thread_id(thread_id)
        return (yield from self.checkpoints.exists(self.tenancy.of(thread_id), thread_id, checkpoint_id))

    def search(self, query: str, limit: int = 10) -> Operation[list[dict[str, Any]]]:
        """Checkpoints whose messages hold words of a query, best first, the newest of equals first.

        A text belongs to the checkpoint that added it; system messages are left out, of long messages the first 10,000
        characters count. Words under three letters and MySQL's stop words are not found. What an unfinished turn said
        is found once the turn is finished. The score says which of the words a text holds, not how often; the rarer a
        word is among the tenant's hits of this query, the more it counts.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id``, ``score``, ``snippet`` and ``created_at``.
        """
        hits = yield from self.checkpoints.search(self.tenancy.of(), query, limit)
        return [dict(hit) for hit in hits]

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Checkpoints whose metadata holds ``key: value`` at the top level, newest first; any JSON value."""
        found = yield from self.checkpoints.query_by_metadata(self.tenancy.of(), key, value, limit)
        return [dict(info) for info in found]

    def get_metadata(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[dict[str, Any] | None]:
        """Id, metadata and time of a checkpoint, or of a thread's newest; None if there is none."""
        check_thread_id(thread_id)
        info = yield from self.checkpoints.get_metadata(self.tenancy.of(thread_id), thread_id, checkpoint_id)
        return None if info is None else {**info}

    def vacuum(self, older_than_days: float = 30) -> Operation[int]:
        """Remove the tenant's checkpoints older than this many days; returns how many.

        A thread not saved to since goes whole; of others the newest checkpoint always stays. Runs thread by thread, so
        writers wait for one thread at most.
        """
        return (yield from self.checkpoints.vacuum(self.tenancy.of(), older_than_days))

    def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints, on the server; False if there is none.

        Raises:
            ThreadExists: The destination has checkpoints; nothing was changed.
            InvalidInput: The two threads belong to different tenants.
        """
        check_thread_id(source_thread_id)
        check_thread_id(dest_thread_id)
        tenant = self.tenancy.of(source_thread_id)
        if self.tenancy.of(dest_thread_id) != tenant:
            raise InvalidInput("A thread cannot be copied to another tenant.")
        return (yield from self.checkpoints.copy_thread(tenant, source_thread_id, dest_thread_id))

    def list_threads(self, limit: int = 100, pattern: str = "*") -> Operation[list[str]]:
        """Ids of threads that match a glob (``*`` and ``?``), most recently saved first."""
        return (yield from self.checkpoints.list_threads(self.tenancy.of(), limit, pattern))

    def list_with_metadata(self, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """The newest checkpoint of each thread, most recently saved first."""
        found = yield from self.checkpoints.list_with_metadata(self.tenancy.of(), limit)
        return [dict(info) for info in found]

    def count(self, pattern: str = "*") -> Operation[int]:
        """How many threads match a glob."""
        return (yield from self.checkpoints.count(self.tenancy.of(), pattern))

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Threads whose newest state holds a value under a top-level field, as MySQL's ``JSON_CONTAINS`` tells it.

        Reads every thread's newest state until enough are found; for what is asked often, use metadata. States that are
        damaged are left out, with a warning in the log.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id`` and ``data``, most recently saved first.
        """
        return (yield from self.checkpoints.search_data(self.tenancy.of(), path, value, limit))

    def get_disk_usage(self, thread_id: str | None = None) -> Operation[int]:
        """Bytes that a thread, or all the tenant's threads, take on the server, indexes left out."""
        usage = yield from self.checkpoints.get_disk_usage(self.tenancy.of(thread_id), thread_id)
        return usage["total_bytes"]

    def health_check(self) -> Operation[bool]:
        """Whether the server answers and takes writes."""
        health = yield from self.checkpoints.health_check()
        return not health["read_only"]

    def history(self, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """A thread's checkpoints: id, parent's id, time, stored bytes and metadata; newest first."""
        check_thread_id(thread_id)
        return (yield from self.checkpoints.history(self.tenancy.of(thread_id), thread_id, limit))

    def forget_tenant(self) -> Operation[int]:
        """Delete all threads of the current tenant; returns how many checkpoints there were."""
        return (yield from self.checkpoints.forget_tenant(self.tenancy.of()))

    def purge_messages(
        self, older_than: timedelta, *, thread_id: str | None = None, batch: int = 100
    ) -> Operation[int]:
        """Drop exchanges older than this from the tenant's checkpoints, also where nobody saves any more.

        Every state that holds one is rewritten in place: ids, order, times and metadata stay. A thread is changed in
        one transaction, or begun again if it is saved to meanwhile. Only messages stamped by a save are old: see
        ``stamp_messages``.

        Args:
            older_than: The age past which an exchange is dropped.
            thread_id: Only this thread.
            batch: Threads looked up at a time.

        Returns:
            How many messages were dropped, over all checkpoints: one that three of them held counts three times.

        Raises:
            CorruptCheckpoint: The one thread asked for has a damaged row, and was left as it is. Of all threads, such
                are passed over with a warning in the log.
        """
        if older_than <= timedelta(0):
            raise InvalidInput("older_than must be positive.")
        batch = check_limit(batch, "batch", 1)
        cutoff = datetime.now(UTC) - older_than
        if thread_id is not None:
            check_thread_id(thread_id)
            return (yield from self._purge_thread(self.tenancy.of(thread_id), thread_id, cutoff))
        tenant = self.tenancy.of()
        dropped = 0
        after = ""
        while True:
            page = yield from self.checkpoints.threads_with_old_messages(tenant, cutoff, after, batch)
            for found in page:
                after = found
                try:
                    dropped += yield from self._purge_thread(tenant, found, cutoff)
                except CorruptCheckpoint as error:
                    _LOG.warning("Old messages of a thread were not dropped: %s", error)
            if len(page) < batch:
                return dropped

    def _purge_thread(self, tenant: str, thread_id: str, cutoff: datetime) -> Operation[int]:
        dropped: dict[str, int] = {}

        def trim(checkpoint_id: str, text: bytes) -> NewCheckpoint:
            state, count = trim_messages(decode_state(text, thread_id), cutoff)
            # Asked again after an answer was lost, it finds nothing left to drop.
            dropped[checkpoint_id] = max(count, dropped.get(checkpoint_id, 0))
            new = self._new(state, None, None, provisional=False)
            oldest = oldest_message_time(state)
            # An exchange that cannot be dropped does not make the thread come up again and again.
            moment = as_sql_time(oldest) if oldest is not None and oldest >= cutoff else None
            return NewCheckpoint(new.encode, new.search_text, oldest_at=moment)

        yield from self.checkpoints.rewrite_thread(tenant, thread_id, trim)
        return sum(dropped.values())

    def _new(
        self,
        state: AgentState,
        checkpoint_id: str | None,
        metadata: dict[str, Any] | None,
        *,
        provisional: bool,
    ) -> NewCheckpoint:
        def encode(memo: object) -> Encoded:
            return encode_agent(state, memo)

        def text(delta: Delta) -> tuple[str, bool]:
            return text_of_messages(state, delta)

        oldest = oldest_message_time(state) if self.stamps else None
        moment = None if oldest is None else as_sql_time(oldest)
        return NewCheckpoint(encode, text, checkpoint_id, metadata, provisional, moment)


class MySQLCheckpointer(AsyncStore[LocusOperations], BaseCheckpointer):
    """Keeps the states of Locus agents in MySQL, with every capability a checkpointer can have.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that carry it.
        message_retention: Drop exchanges older than this at every save, as ``locus.memory.retention`` describes.
        stamp_messages: Stamp each message with the time of its first save, so that `purge_messages` can tell its age.
            On by itself with ``message_retention``; off otherwise, as a stamped message differs from the one saved.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.

    Example:
        ```python
        checkpointer = MySQLCheckpointer(dsn="mysql://user:password@localhost/app")
        agent = Agent(model=model, checkpointer=checkpointer)
        await agent.arun("Hello", thread_id="support/42")
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        tenant_of: Callable[[str], str] | None = None,
        message_retention: timedelta | None = None,
        stamp_messages: bool | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        operations = LocusOperations(config, tenant_of, message_retention, stamp_messages)
        super().__init__(operations, database, owned=owned)

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """All of them; search only if it is configured."""
        return _capabilities(self.config)

    save = awaited(LocusOperations.save)
    load = awaited(LocusOperations.load)
    list_checkpoints = awaited(LocusOperations.list_checkpoints)
    delete = awaited(LocusOperations.delete)
    exists = awaited(LocusOperations.exists)
    search = awaited(LocusOperations.search)
    query_by_metadata = awaited(LocusOperations.query_by_metadata)
    get_metadata = awaited(LocusOperations.get_metadata)
    vacuum = awaited(LocusOperations.vacuum)
    copy_thread = awaited(LocusOperations.copy_thread)
    list_threads = awaited(LocusOperations.list_threads)
    list_with_metadata = awaited(LocusOperations.list_with_metadata)
    count = awaited(LocusOperations.count)
    search_data = awaited(LocusOperations.search_data)
    get_disk_usage = awaited(LocusOperations.get_disk_usage)
    _health_check = awaited(LocusOperations.health_check)
    history = awaited(LocusOperations.history)
    forget_tenant = awaited(LocusOperations.forget_tenant)
    purge_messages = awaited(LocusOperations.purge_messages)

    async def health_check(self) -> bool:
        """Whether the server answers, has the tables and takes writes; False rather than an error."""
        try:
            return await self._health_check()
        except LocusMySQLError:
            return False

    def tenant_scope(self, tenant: str) -> AbstractContextManager[None]:
        """Every call inside the block, and inside tasks begun in it, belongs to this tenant."""
        return self._operations.tenancy.scope(tenant)

    def tenant_for(self, thread_id: str | None = None) -> str:
        """The tenant a call about a thread would belong to."""
        return self._operations.tenancy.of(thread_id)

    def ddl(self) -> list[str]:
        """The statements that make the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


class SyncMySQLCheckpointer(SyncStore[LocusOperations]):
    """`MySQLCheckpointer` without an event loop: the same methods, blocking. Safe to share between threads.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: As for `MySQLCheckpointer`.
        message_retention: As for `MySQLCheckpointer`.
        stamp_messages: As for `MySQLCheckpointer`.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        tenant_of: Callable[[str], str] | None = None,
        message_retention: timedelta | None = None,
        stamp_messages: bool | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        operations = LocusOperations(config, tenant_of, message_retention, stamp_messages)
        super().__init__(operations, database, owned=owned)

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """All of them; search only if it is configured."""
        return _capabilities(self.config)

    save = blocking(LocusOperations.save)
    load = blocking(LocusOperations.load)
    list_checkpoints = blocking(LocusOperations.list_checkpoints)
    delete = blocking(LocusOperations.delete)
    exists = blocking(LocusOperations.exists)
    search = blocking(LocusOperations.search)
    query_by_metadata = blocking(LocusOperations.query_by_metadata)
    get_metadata = blocking(LocusOperations.get_metadata)
    vacuum = blocking(LocusOperations.vacuum)
    copy_thread = blocking(LocusOperations.copy_thread)
    list_threads = blocking(LocusOperations.list_threads)
    list_with_metadata = blocking(LocusOperations.list_with_metadata)
    count = blocking(LocusOperations.count)
    search_data = blocking(LocusOperations.search_data)
    get_disk_usage = blocking(LocusOperations.get_disk_usage)
    _health_check = blocking(LocusOperations.health_check)
    history = blocking(LocusOperations.history)
    forget_tenant = blocking(LocusOperations.forget_tenant)
    purge_messages = blocking(LocusOperations.purge_messages)

    def health_check(self) -> bool:
        """Whether the server answers, has the tables and takes writes; False rather than an error."""
        try:
            return self._health_check()
        except LocusMySQLError:
            return False

    def tenant_scope(self, tenant: str) -> AbstractContextManager[None]:
        """Every call inside the block belongs to this tenant."""
        return self._operations.tenancy.scope(tenant)

    def tenant_for(self, thread_id: str | None = None) -> str:
        """The tenant a call about a thread would belong to."""
        return self._operations.tenancy.of(thread_id)

    def ddl(self) -> list[str]:
        """The statements that make the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


def mysql_checkpointer(
    host: str | None = None,
    port: int | None = None,
    database: str | None = None,
    user: str | None = None,
    password: str | None = None,
    dsn: str | None = None,
    **options: Any,
) -> MySQLCheckpointer:
    """A checkpointer, by the keywords of Locus' built-in factory and those of `MySQLCheckpointer`.

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
    for name, advice in _BUILT_IN_OPTIONS.items():
        if name in options:
            raise ConfigError(f"{name}: {advice}.")
    if "max_pool_size" in options:
        options.setdefault("pool_size", options.pop("max_pool_size"))
    places = {
        "host": host,
        "port": port,
        "database": database,
        "user": user,
        "password": password,
        "dsn": dsn,
    }
    given: dict[str, Any] = {name: value for name, value in places.items() if value is not None}
    return MySQLCheckpointer(**given, **options)


def register() -> None:
    """Make Locus' ``get_checkpointer("mysql")`` and ``get_checkpointer("mysql:database")`` return this checkpointer."""
    from locus.memory.registry import register_checkpointer

    def factory(config_hint: str | None = None, **options: Any) -> MySQLCheckpointer:
        if config_hint:
            options.setdefault("database", config_hint)
        return mysql_checkpointer(**options)

    register_checkpointer("mysql", factory)


def text_of_messages(state: AgentState, delta: Delta) -> tuple[str, bool]:
    """What the messages that a state adds say, without the system's; and whether the parent's go on."""
    continues = "messages" in delta.news
    added = state.messages[delta.news["messages"] if continues else 0 :]
    return joined(message.content for message in added if message.content and message.role != Role.SYSTEM), continues


def _capabilities(config: MySQLConfig) -> CheckpointerCapabilities:
    return CheckpointerCapabilities(
        search=config.search,
        metadata_query=True,
        vacuum=True,
        branching=True,
        ttl=True,
        list_threads=True,
        list_with_metadata=True,
        persistent_checkpoint_ids=True,
    )
