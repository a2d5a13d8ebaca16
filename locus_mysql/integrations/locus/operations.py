"""The operations of the checkpointers of Locus agents, as generators that do no I/O."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args

from locus.core.state import AgentState
from locus.memory.retention import trim_messages

from ...config import MySQLConfig
from ...engine.logs import CONFLICTS, DAMAGE
from ...engine.operation import Operation
from ...engine.retry import next_page
from ...errors import ConfigError, Conflict, CorruptCheckpoint, InvalidInput
from ...families.checkpoints.preconditions import Expected, Precondition, ThreadBranched, expecting
from ...families.checkpoints.records import EncodedCheckpoint, NewCheckpoint
from ...families.checkpoints.statements.tables import ThreadKey
from ...runtime.arguments import Tenancy, check_limit, check_thread_id
from ...runtime.database import Database
from .agent_states import agent_checkpoint, is_provisional
from .backend import OperationsOfLocus
from .runs import FirstSaved, RunPosition, RunPositions, unstamped
from .state_texts import decode_state, encode_agent

T = TypeVar("T")

#: The handling of a save if another process or run saved to the thread since the state was loaded.
OnConflict: TypeAlias = Literal["keep", "raise", "branch"]

#: In the metadata of a branch's checkpoints, the thread that it was branched off.
BRANCHED_FROM_KEY = "branched_from"

#: The maximum length of the part of a thread's id that a branch's id begins with.
_BRANCH_STEM = 495


class LocusOperations(OperationsOfLocus):
    """The checkpointer's operations: those of checkpoints, on Locus' states, with a tenant for each call.

    Args:
        config: The options.
        tenant_of: Returns the tenant of a thread id.
        message_retention: Exchanges older than this are dropped at every save.
        stamp_messages: Whether messages are stamped with the time of their first save.
        on_conflict: The handling of a save if another process or run saved since the state was loaded.
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
        super().__init__(config, "agents")
        self.tenancy = Tenancy(config, tenant_of)
        self.message_retention = message_retention
        self.stamps = message_retention is not None or bool(stamp_messages)
        self.on_conflict = on_conflict
        self._positions = RunPositions()
        self._first_saved = FirstSaved()

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        if database.in_transaction and self.on_conflict != "keep":
            raise ConfigError(
                f"on_conflict={self.on_conflict!r} does not work in a transaction of your own, since the run would go "
                "on from a checkpoint that may be rolled back. Pass expected= to save."
            )
        super().attach(database)
        self._positions = database.cache(("positions of runs", self.config.table_prefix), lambda: self._positions)

    def tenant_for(self, thread_id: str | None) -> str:
        """Return the tenant of a call about a thread, or about all threads."""
        return self.tenancy.of(None if thread_id is None else check_thread_id(thread_id))

    def prepare(self, state: AgentState, now: datetime | None = None) -> AgentState:
        """A state as a save writes it: stamped and trimmed, if retention is in use."""
        if not self.stamps:
            return state
        now = now or datetime.now(UTC)
        state = self._first_saved.stamp(state, now)
        if self.message_retention is not None:
            state, _ = trim_messages(state, now - self.message_retention)
        return state

    def save(  # type: ignore[override]  # the order of Locus' contract
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
                otherwise nothing is saved, whatever ``on_conflict`` is.

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
        key = self.thread_key(thread_id)
        provisional = is_provisional(state.metadata, checkpoint_id)
        if self.on_conflict == "keep":
            new = self.new(self.prepare(state), checkpoint_id, metadata, provisional=provisional)
            return (yield from self.checkpoints.saving.save(*key, new, expecting(expected)))
        position = self._positions.of(state, key)
        new = self.new(self.prepare(unstamped(state)), checkpoint_id, metadata, provisional=provisional)
        if position.branch is not None and expected is None:
            return (yield from self._save_in_branch(position.branch, key, new, metadata))
        condition = Precondition(newest_token=position.newest) if expected is None else expecting(expected)
        new = replace(new, token=os.urandom(16))
        try:
            saved = yield from self.checkpoints.saving.save(*key, new, condition)
        except Conflict as conflict:
            if self.on_conflict == "raise" or expected is not None:
                raise
            return (yield from self._begin_branch(conflict, position, key, new, metadata))
        self._positions.saved(position, key, cast(bytes, new.token))
        return saved

    def _begin_branch(
        self,
        conflict: Conflict,
        position: RunPosition,
        key: ThreadKey,
        new: NewCheckpoint,
        metadata: dict[str, Any] | None,
    ) -> Operation[str]:
        """Save to a new thread, which later saves of the run go to as well."""
        _, thread_id = key
        branch = f"{thread_id[:_BRANCH_STEM]}~{os.urandom(8).hex()}"
        saved = yield from self._save_in_branch(branch, key, new, metadata)
        self._positions.branched(position, key, branch)
        warnings.warn(ThreadBranched(thread_id, branch, conflict.expected, conflict.newest), stacklevel=2)
        CONFLICTS.warning("A save went into a new thread, as another process or run had saved to its own meanwhile.")
        return saved

    def _save_in_branch(
        self, branch: str, key: ThreadKey, new: NewCheckpoint, metadata: dict[str, Any] | None
    ) -> Operation[str]:
        """Save to a thread that is a branch of another one, whose id is in the metadata."""
        tenant, thread_id = key
        new = replace(new, metadata={**(metadata or {}), BRANCHED_FROM_KEY: thread_id}, token=None)
        saved = yield from self.checkpoints.saving.save(tenant, branch, new)
        if new.checkpoint_id is not None:
            self._positions.saved_in_branch(key, saved, branch)
        return saved

    def load(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[AgentState | None]:  # type: ignore[override]
        """Return the state of a checkpoint, or of a thread's newest; None if there is none. One round trip.

        Raises:
            CorruptCheckpoint: One of its rows was changed or is missing, or it is not the state of an agent. The error
                names the thread.
        """
        key = self.thread_key(thread_id)
        newest: bytes | None = None
        # A caller that loads an older checkpoint knows that newer ones exist.
        if self.on_conflict != "keep" and checkpoint_id is not None:
            newest = yield from self.checkpoints.loading.newest_token(*key)
        row = yield from self.checkpoints.loading.load_row(*key, checkpoint_id)
        if row is None:
            return None
        found, token = row
        if "messages" not in [log.name for log in found.logs]:  # else Locus would make an empty state of it
            raise CorruptCheckpoint(f"What thread {thread_id!r} holds is not the state of an agent.")
        state = decode_state(found.text(), thread_id)
        if self.on_conflict == "keep":
            return state
        return self._positions.stamp(state, key, token if checkpoint_id is None else newest)

    def delete(self, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a whole thread; True if it existed. Other checkpoints can still be loaded."""
        tenant, _ = key = self.thread_key(thread_id)
        branch = None if checkpoint_id is None else self._positions.branch_of(key, checkpoint_id)
        return (yield from self.checkpoints.removing.delete(tenant, branch or thread_id, checkpoint_id))

    def search(self, query: str, limit: int = 10) -> Operation[list[dict[str, Any]]]:  # type: ignore[override]
        """Return checkpoints whose messages contain words of a query, best first, and newest first for equal scores.

        A text belongs to the checkpoint that added it. System messages are left out; of long messages, the first 10,000
        characters are searched. Words under three letters are not found. Messages of an unfinished turn are found once
        the turn is finished. The score depends on which of the words a text contains, not on how often; the rarer a
        word is among the tenant's hits of this query, the more it counts.

        Returns:
            Dicts of ``thread_id``, ``checkpoint_id``, ``score``, ``snippet`` and ``created_at``, as ISO 8601 text.
        """
        return (yield from super().search(query, limit))

    def copy_thread(self, source_thread_id: str, dest_thread_id: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints, on the server; False if there is none.

        Raises:
            ThreadExists: The destination has checkpoints; nothing was changed.
            InvalidInput: The two threads belong to different tenants.
        """
        if self.tenant_for(source_thread_id) != self.tenant_for(dest_thread_id):
            raise InvalidInput("A thread cannot be copied to another tenant.")
        return (yield from super().copy_thread(source_thread_id, dest_thread_id))

    def get_disk_usage(self, thread_id: str | None = None) -> Operation[int]:  # type: ignore[override]
        """Return the bytes that a thread, or all the tenant's threads, take on the server, without indexes."""
        usage = yield from super().get_disk_usage(thread_id)
        return usage["total_bytes"]

    def purge_messages(
        self, older_than: timedelta, *, thread_id: str | None = None, batch: int = 100
    ) -> Operation[int]:
        """Drop exchanges older than this from the tenant's checkpoints, also from threads that are no longer saved to.

        Every state that holds one is rewritten in place: ids, order, times and metadata stay. A thread is changed in
        one transaction, which is repeated if the thread is saved to meanwhile. Only messages stamped by a save have an
        age: see ``stamp_messages``, and ``locus.memory.retention.RetainedCheckpointer``.

        Args:
            older_than: The age past which an exchange is dropped.
            thread_id: Only this thread.
            batch: The number of threads listed at a time.

        Returns:
            The number of messages dropped from all checkpoints: a message in three checkpoints counts three times.

        Raises:
            CorruptCheckpoint: The thread ``thread_id`` has a damaged row; it was not changed. Without ``thread_id``,
                damaged threads are skipped with a warning in the log.
        """
        if older_than <= timedelta(0):
            raise InvalidInput("older_than must be positive.")
        batch = check_limit(batch, "batch", 1)
        cutoff = datetime.now(UTC) - older_than
        if thread_id is not None:
            return (yield from self._purge_thread(*self.thread_key(thread_id), cutoff))
        tenant, dropped = self.tenant, 0
        after = ""
        while True:
            page = yield from self.checkpoints.whole_threads.threads_with_old_messages(tenant, cutoff, after, batch)
            for found in page:
                after = next_page(after, found)
                try:
                    dropped += yield from self._purge_thread(tenant, found, cutoff)
                except CorruptCheckpoint as error:
                    DAMAGE.warning("A damaged thread keeps its old messages; at level DEBUG this logger names it.")
                    DAMAGE.debug("Old messages were not dropped: %s", error)
            if len(page) < batch:
                return dropped

    def _purge_thread(self, tenant: str, thread_id: str, cutoff: datetime) -> Operation[int]:
        dropped: dict[str, int] = {}

        def trim(checkpoint_id: str, text: bytes) -> NewCheckpoint:
            state, count = trim_messages(decode_state(text, thread_id), cutoff)
            # If it is repeated after a lost answer, no old messages are left.
            dropped[checkpoint_id] = max(count, dropped.get(checkpoint_id, 0))
            return self.new(state, None, None, provisional=False)

        yield from self.checkpoints.whole_threads.rewrite(tenant, thread_id, trim)
        return sum(dropped.values())

    def new(  # type: ignore[override]
        self,
        state: AgentState,
        checkpoint_id: str | None,
        metadata: dict[str, Any] | None,
        *,
        provisional: bool,
    ) -> NewCheckpoint:
        """Return the checkpoint to save for a state."""

        def encode(memo: object) -> EncodedCheckpoint:
            return encode_agent(state, memo)

        return agent_checkpoint(encode, state.messages, checkpoint_id, metadata, provisional=provisional)
