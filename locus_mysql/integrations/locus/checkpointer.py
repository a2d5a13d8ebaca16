"""The memory of Locus agents: `MySQLCheckpointer`, its synchronous twin, and how Locus finds them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, cast, get_args

from locus.core.messages import Role
from locus.core.protocols import CheckpointerCapabilities
from locus.core.state import AgentState
from locus.memory.checkpointer import BaseCheckpointer
from locus.memory.retention import trim_messages
from pydantic import SecretStr

from ...checkpoints.branching import ThreadBranched
from ...checkpoints.coding.delta import Delta
from ...checkpoints.conditions import Condition, Expected, expecting
from ...checkpoints.memory import ThreadKey
from ...checkpoints.new import Encoded, NewCheckpoint
from ...checkpoints.operations import CheckpointOperations
from ...checkpoints.records import HistoryEntry
from ...checkpoints.rows import as_sql_time
from ...checkpoints.searchable import joined
from ...checkpoints.turns import AsyncTurns, SyncTurns
from ...config import Keywords, MySQLConfig
from ...database.arguments import check_limit, check_thread_id
from ...database.database import Database, share
from ...database.methods import awaited, blocking
from ...database.tenancy import Tenancy
from ...dialect.checkpoints.dialect import CheckpointDialect
from ...engine.counters import Counters
from ...engine.logs import CALLS, CONFLICTS, DAMAGE, told
from ...engine.operation import Operation
from ...errors import ConfigError, Conflict, CorruptCheckpoint, InvalidInput, LocusMySQLError, ReadOnlyServer
from .built_in import as_returned, own_options
from .callers import refuse_agents
from .lines import Line, Lines, unstamped
from .retention import FirstSaved, opened_at
from .state_texts import decode_state, encode_agent

T = TypeVar("T")

#: Where a Locus run lists the saves of its turn that the turn's last save will supersede and delete. From
#: ``locus.agent.runtime_loop.ITERATION_CHECKPOINTS_KEY`` of locus-sdk 3.0.1. Should another version use another name,
#: those saves would be stored as lasting ones.
ITERATION_CHECKPOINTS_KEY = "_locus_iteration_checkpoints"

#: What becomes of a save when somebody else saved to the thread since the state was loaded.
OnConflict: TypeAlias = Literal["keep", "raise", "branch"]

#: In the metadata of a branch's checkpoints, the thread that it was branched off.
BRANCHED_FROM_KEY = "branched_from"

#: Longest beginning of a thread's id that the id of a branch has.
_BRANCH_STEM = 495


class LocusOperations:
    """The checkpointer's operations: those of checkpoints, on Locus' states, with a tenant for each call.

    Args:
        config: The options.
        tenant_of: Tells the tenant from a thread id.
        message_retention: Exchanges older than this are dropped at every save.
        stamp_messages: Whether messages are stamped with the time of their first save.
        on_conflict: What becomes of a save when somebody else saved since the state was loaded.
    """

    def __init__(
        self,
        config: MySQLConfig,
        tenant_of: Callable[[str], str] | None,
        message_retention: timedelta | None,
        stamp_messages: bool | None,
        on_conflict: OnConflict = "keep",
    ) -> None:
        if on_conflict not in get_args(OnConflict):
            raise ConfigError(f"on_conflict must be 'keep', 'raise' or 'branch', not {on_conflict!r:.50}.")
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
        self.on_conflict = on_conflict
        self._lines = Lines()
        self._first_saved = FirstSaved()

    def count_in(self, counters: Counters) -> None:
        """See `CountsCache.count_in`."""
        self.checkpoints.counters = counters

    def place(self, thread_id: str) -> ThreadKey:
        """The key of a thread: its tenant and its id."""
        check_thread_id(thread_id)
        return self.tenancy.of(thread_id), thread_id

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
        *,
        expected: Expected = None,
    ) -> Operation[str]:
        """Save an agent's state as the newest checkpoint of a thread. One round trip.

        Args:
            state: The state; what is loaded is equal to it.
            thread_id: 1 to 512 characters, any but NUL; compared by code point.
            checkpoint_id: 1 to 128 characters. A random one if None. If the thread has it, it moves to this state.
            metadata: A dict of JSON values for queries, at most 65,536 bytes as JSON.
            expected: The id of the checkpoint that must be the thread's newest, `NO_CHECKPOINT` if there must be none;
                if it is not so, nothing is saved, whatever ``on_conflict`` says.

        Returns:
            The checkpoint's id.

        Raises:
            Conflict: The thread's newest checkpoint is not the one expected or, with ``on_conflict="raise"``, not the
                one that this run loaded or saved last; the error names both.
            TurnLost: The `turn` that the call is in is over.
            InvalidInput: An argument cannot be stored exactly.
            TenantUnknown: ``tenant_of`` named no tenant.
            StateTooLarge: A packet would exceed the server's ``max_allowed_packet``.
        """
        key = self.place(thread_id)
        superseded = state.metadata.get(ITERATION_CHECKPOINTS_KEY)
        provisional = checkpoint_id is not None and isinstance(superseded, list) and checkpoint_id in superseded
        if self.on_conflict == "keep":
            new = self._new(self.prepare(state), checkpoint_id, metadata, provisional=provisional)
            return (yield from self.checkpoints.save(*key, new, expecting(expected)))
        line = self._lines.of(state, key)
        new = self._new(self.prepare(unstamped(state)), checkpoint_id, metadata, provisional=provisional)
        if line.branch is not None and expected is None:
            return (yield from self._save_in_branch(line.branch, key, new, metadata))
        condition = Condition(newest_token=line.newest) if expected is None else expecting(expected)
        new = replace(new, token=os.urandom(16))
        try:
            saved = yield from self.checkpoints.save(*key, new, condition)
        except Conflict as conflict:
            if self.on_conflict == "raise" or expected is not None:
                raise
            return (yield from self._begin_branch(conflict, line, key, new, metadata))
        self._lines.saved(line, key, cast(bytes, new.token))
        return saved

    def _begin_branch(
        self, conflict: Conflict, line: Line, key: ThreadKey, new: NewCheckpoint, metadata: dict[str, Any] | None
    ) -> Operation[str]:
        """Save to a new thread, and go on there."""
        _, thread_id = key
        branch = f"{thread_id[:_BRANCH_STEM]}~{os.urandom(8).hex()}"
        saved = yield from self._save_in_branch(branch, key, new, metadata)
        self._lines.branched(line, key, branch)
        warnings.warn(ThreadBranched(thread_id, branch, conflict.expected, conflict.newest), stacklevel=2)
        CONFLICTS.warning("A save went into a new thread, as somebody else had saved to its own meanwhile.")
        return saved

    def _save_in_branch(
        self, branch: str, key: ThreadKey, new: NewCheckpoint, metadata: dict[str, Any] | None
    ) -> Operation[str]:
        """Save to a thread that was branched off another, whose id stands in the metadata."""
        tenant, thread_id = key
        new = replace(new, metadata={**(metadata or {}), BRANCHED_FROM_KEY: thread_id}, token=None)
        saved = yield from self.checkpoints.save(tenant, branch, new)
        if new.checkpoint_id is not None:
            self._lines.saved_in_branch(key, saved, branch)
        return saved

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[AgentState | None]:
        """The state of a checkpoint, or of a thread's newest; None if there is none. One round trip.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is gone, or what it holds is not an agent's state. The
                error names the thread.
        """
        key = self.place(thread_id)
        newest: bytes | None = None
        if (
            self.on_conflict != "keep" and checkpoint_id is not None
        ):  # who goes back to an older checkpoint knows that newer ones exist
            newest = yield from self.checkpoints.newest_token(*key)
        row = yield from self.checkpoints.load_row(*key, checkpoint_id)
        if row is None:
            return None
        found, token = row
        if "messages" not in [log.name for log in found.logs]:  # else Locus would make an empty state of it
            raise CorruptCheckpoint(f"What thread {thread_id!r} holds is not the state of an agent.")
        state = decode_state(found.text(), thread_id)
        if self.on_conflict == "keep":
            return state
        return self._lines.stamp(state, key, token if checkpoint_id is None else newest)

    def list_checkpoints(self, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Ids of a thread's checkpoints, newest first."""
        check_thread_id(thread_id)
        return (yield from self.checkpoints.list_checkpoints(self.tenancy.of(thread_id), thread_id, limit))

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if there was one. Other checkpoints stay whole."""
        tenant, _ = key = self.place(thread_id)
        branch = None if checkpoint_id is None else self._lines.branch_of(key, checkpoint_id)
        return (yield from self.checkpoints.delete(tenant, branch or thread_id, checkpoint_id))

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
            Dicts of ``thread_id``, ``checkpoint_id``, ``score``, ``snippet`` and ``created_at``, as ISO 8601 text.
        """
        hits = yield from self.checkpoints.search(self.tenancy.of(), query, limit)
        return [as_returned(hit) for hit in hits]

    def query_by_metadata(self, key: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Checkpoints whose metadata has this top-level key with a value that contains this one, newest first.

        A list contains each of its elements, and lists of them; an object contains objects of some of its pairs; all
        else contains what is equal to it, as JSON: MySQL's ``JSON_CONTAINS``.
        """
        found = yield from self.checkpoints.query_by_metadata(self.tenancy.of(), key, value, limit)
        return [as_returned(info) for info in found]

    def get_metadata(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[dict[str, Any] | None]:
        """Id, metadata and time of a checkpoint, or of a thread's newest; None if there is none."""
        check_thread_id(thread_id)
        info = yield from self.checkpoints.get_metadata(self.tenancy.of(thread_id), thread_id, checkpoint_id)
        return None if info is None else as_returned(info)

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

    def list_threads(self, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Ids of threads that match a glob (``*`` and ``?``), most recently saved first.

        Args:
            limit: At most this many.
            pattern: The glob.
            offset: Leave out this many first.
        """
        return (yield from self.checkpoints.list_threads(self.tenancy.of(), limit, pattern, offset))

    def list_with_metadata(self, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """The newest checkpoint of each thread, most recently saved first."""
        found = yield from self.checkpoints.list_with_metadata(self.tenancy.of(), limit)
        return [as_returned(info) for info in found]

    def count(self, pattern: str = "*") -> Operation[int]:
        """How many threads match a glob."""
        return (yield from self.checkpoints.count(self.tenancy.of(), pattern))

    def search_data(self, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Threads whose newest state holds a value under a top-level field, as MySQL's ``JSON_CONTAINS`` tells it.

        Reads every thread's newest state until enough are found; for what is asked often, use metadata. States that are
        damaged are left out, with a warning in the log.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id``, ``updated_at`` and ``data``, most recently saved first.
        """
        found = yield from self.checkpoints.search_data(self.tenancy.of(), path, value, limit)
        return [as_returned(one) for one in found]

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
        ``stamp_messages``, and ``locus.memory.retention.RetainedCheckpointer``.

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
                    DAMAGE.warning("Old messages of a damaged thread stay; at level DEBUG this logger says of which.")
                    DAMAGE.debug("Old messages were not dropped: %s", error)
            if len(page) < batch:
                return dropped

    def _purge_thread(self, tenant: str, thread_id: str, cutoff: datetime) -> Operation[int]:
        dropped: dict[str, int] = {}

        def trim(checkpoint_id: str, text: bytes) -> NewCheckpoint:
            state, count = trim_messages(decode_state(text, thread_id), cutoff)
            # Asked again after an answer was lost, it finds nothing left to drop.
            dropped[checkpoint_id] = max(count, dropped.get(checkpoint_id, 0))
            return self._new(state, None, None, provisional=False)

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

        opened = opened_at(state)
        return NewCheckpoint(
            encode, text, checkpoint_id, metadata, provisional, None if opened is None else as_sql_time(opened)
        )


class MySQLCheckpointer(AsyncTurns[LocusOperations], BaseCheckpointer):
    """Keeps the states of Locus agents in MySQL, with every capability a checkpointer can have.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: ``(thread_id) -> tenant``, for thread ids that carry it.
        message_retention: Drop exchanges older than this at every save, as ``locus.memory.retention`` describes.
        stamp_messages: Stamp each message with the time of its first save, so that `purge_messages` can tell its age.
            On by itself with ``message_retention``; off otherwise, as a stamped message differs from the one saved.
        on_conflict: What becomes of a save when somebody else saved to the thread since the run loaded it: ``"keep"``
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

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        tenant_of: Callable[[str], str] | None = None,
        message_retention: timedelta | None = None,
        stamp_messages: bool | None = None,
        on_conflict: OnConflict = "keep",
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        operations = LocusOperations(config, tenant_of, message_retention, stamp_messages, on_conflict)
        super().__init__(operations, database, owned=owned)

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """All of them; search only if it is configured."""
        return _capabilities(self.config)

    @awaited(LocusOperations.save)
    def save(self) -> None: ...
    @awaited(LocusOperations.load)
    def load(self) -> None: ...
    @awaited(LocusOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...
    @awaited(LocusOperations.delete)
    def delete(self) -> None: ...
    @awaited(LocusOperations.exists)
    def exists(self) -> None: ...
    @awaited(LocusOperations.search)
    def search(self) -> None: ...
    @awaited(LocusOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @awaited(LocusOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @awaited(LocusOperations.vacuum)
    def vacuum(self) -> None: ...
    @awaited(LocusOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @awaited(LocusOperations.list_threads)
    def list_threads(self) -> None: ...
    @awaited(LocusOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @awaited(LocusOperations.count)
    def count(self) -> None: ...
    @awaited(LocusOperations.search_data)
    def search_data(self) -> None: ...
    @awaited(LocusOperations.get_disk_usage)
    def get_disk_usage(self) -> None: ...
    @awaited(LocusOperations.health_check)
    def _health_check(self) -> None: ...
    @awaited(LocusOperations.history)
    def history(self) -> None: ...
    @awaited(LocusOperations.forget_tenant)
    def forget_tenant(self) -> None: ...
    @awaited(LocusOperations.purge_messages)
    def purge_messages(self) -> None: ...

    async def health_check(self, *, raises: bool = False) -> bool:
        """Whether the server answers, has the tables and takes writes; False rather than an error.

        Why not is in the log, at level WARNING.

        Args:
            raises: Raise the error, which says what to do, instead.
        """
        try:
            return well(await self._health_check())
        except LocusMySQLError as error:
            return unwell(error, raises=raises)

    def tenant_scope(self, tenant: str) -> AbstractContextManager[None]:
        """Every call inside the block, and inside tasks begun in it, belongs to this tenant."""
        return self._operations.tenancy.scope(tenant)

    def tenant_for(self, thread_id: str | None = None) -> str:
        """The tenant a call about a thread would belong to."""
        return self._operations.tenancy.of(thread_id)

    def ddl(self) -> list[str]:
        """The statements that make the tables, for a migration."""
        return [statement.sql for statement in self._operations.schema.create()]


class SyncMySQLCheckpointer(SyncTurns[LocusOperations]):
    """`MySQLCheckpointer` without an event loop: the same methods, blocking. Safe to share between threads.

    For code of your own: a Locus `Agent` needs a `MySQLCheckpointer`, also for ``run_sync``.

    Args:
        where: A `Database` that others use too, a DSN, or a `MySQLConfig`; or give options as keywords.
        tenant_of: As for `MySQLCheckpointer`.
        message_retention: As for `MySQLCheckpointer`.
        stamp_messages: As for `MySQLCheckpointer`.
        on_conflict: As for `MySQLCheckpointer`.
        options: Options of `MySQLConfig`; with a `Database`, those of a store.
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        tenant_of: Callable[[str], str] | None = None,
        message_retention: timedelta | None = None,
        stamp_messages: bool | None = None,
        on_conflict: OnConflict = "keep",
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        operations = LocusOperations(config, tenant_of, message_retention, stamp_messages, on_conflict)
        super().__init__(operations, database, owned=owned)

    @property
    def capabilities(self) -> CheckpointerCapabilities:
        """All of them; search only if it is configured."""
        return _capabilities(self.config)

    @blocking(LocusOperations.save)
    def save(self) -> None: ...
    @blocking(LocusOperations.load)
    def load(self) -> None: ...
    @blocking(LocusOperations.list_checkpoints)
    def list_checkpoints(self) -> None: ...
    @blocking(LocusOperations.delete)
    def delete(self) -> None: ...
    @blocking(LocusOperations.exists)
    def exists(self) -> None: ...
    @blocking(LocusOperations.search)
    def search(self) -> None: ...
    @blocking(LocusOperations.query_by_metadata)
    def query_by_metadata(self) -> None: ...
    @blocking(LocusOperations.get_metadata)
    def get_metadata(self) -> None: ...
    @blocking(LocusOperations.vacuum)
    def vacuum(self) -> None: ...
    @blocking(LocusOperations.copy_thread)
    def copy_thread(self) -> None: ...
    @blocking(LocusOperations.list_threads)
    def list_threads(self) -> None: ...
    @blocking(LocusOperations.list_with_metadata)
    def list_with_metadata(self) -> None: ...
    @blocking(LocusOperations.count)
    def count(self) -> None: ...
    @blocking(LocusOperations.search_data)
    def search_data(self) -> None: ...
    @blocking(LocusOperations.get_disk_usage)
    def get_disk_usage(self) -> None: ...
    @blocking(LocusOperations.health_check)
    def _health_check(self) -> None: ...
    @blocking(LocusOperations.history)
    def history(self) -> None: ...
    @blocking(LocusOperations.forget_tenant)
    def forget_tenant(self) -> None: ...
    @blocking(LocusOperations.purge_messages)
    def purge_messages(self) -> None: ...

    def _run(self, operation: Operation[T]) -> T:
        refuse_agents(type(self).__name__, 2)  # the method's frame is between
        return super()._run(operation)

    def health_check(self, *, raises: bool = False) -> bool:
        """Whether the server answers, has the tables and takes writes; False rather than an error.

        Why not is in the log, at level WARNING.

        Args:
            raises: Raise the error, which says what to do, instead.
        """
        try:
            return well(self._health_check())
        except LocusMySQLError as error:
            return unwell(error, raises=raises)

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
    places = {
        "host": host,
        "port": port,
        "database": database,
        "user": user,
        "password": password,
        "dsn": dsn,
    }
    given: dict[str, Any] = {name: value for name, value in places.items() if value is not None}
    return MySQLCheckpointer(**given, **own_options(options))


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


def well(takes_writes: bool) -> bool:
    """The outcome of a health check that the server answered, which is logged if it takes no writes."""
    if not takes_writes:
        raise ReadOnlyServer("The server takes no writes (read_only is on). Connect to the primary.")
    return True


def unwell(error: LocusMySQLError, *, raises: bool) -> bool:
    """The outcome of a health check that failed."""
    CALLS.warning("A health check failed: %s.", told(error))
    if raises:
        raise error
    return False


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
