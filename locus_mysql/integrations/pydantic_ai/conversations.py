"""The conversation store of Pydantic AI, `PydanticConversationStore`, and its operations, which do no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.operation import Operation
from ...engine.retry import Backoff
from ...errors import CorruptCheckpoint, InvalidInput, NotFound, VersionConflict
from ...families.transcripts.operations import FrameworkTranscripts
from ...families.transcripts.records import Header, Item, NewItem, Transcript, TranscriptKey, Write
from ...lru_cache import LRUCache
from ...records.leases import OwnerKey
from ...records.turns import AsyncTurns
from ...runtime.arguments import tenant_of
from ...runtime.database import Database, Where, share
from ...runtime.stores import awaited_method
from .records import StoredRecord, entries_of, header_of, items_of, parent_of, stored_record

#: The kind of these transcripts. A conversation's id is their name.
KIND = "pydantic-ai"

#: The part of a log.
LOG = "entries"

#: The number of records and of entries whose log a process remembers.
KNOWN_LOGS = 10_000


class ConversationOperations(FrameworkTranscripts):
    """Stores the conversations of one tenant.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        super().__init__(config)
        # By conversation and revision, which is never reused; and by entry, which may be deleted meanwhile.
        self._log_of_record: LRUCache[str] = LRUCache(KNOWN_LOGS)
        self._log_of_entry: LRUCache[str] = LRUCache(KNOWN_LOGS)

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        super().attach(database)
        prefix = self.config.table_prefix
        self._log_of_record = database.cache(("logs of conversations", prefix), lambda: self._log_of_record)
        self._log_of_entry = database.cache(("logs of entries", prefix), lambda: self._log_of_entry)

    def thread_key(self, conversation_id: str) -> OwnerKey:
        """Return the key of a turn on a conversation."""
        return self.owner_key(_record_key(conversation_id))

    def _own(self, *key: object) -> tuple[object, ...]:
        """Return a key of the caches."""
        return tenant_of(self.config), *key

    def read_record(self, conversation_id: str) -> Operation[ConversationRecord | None]:
        """Return the record of a conversation; None if it does not exist. One round trip.

        Raises:
            InvalidInput: The id cannot be that of a stored conversation: 1 to 800 bytes of UTF-8 without NUL.
            CorruptCheckpoint: The row is damaged.
        """
        stored = yield from self._stored(conversation_id)
        return None if stored is None else stored.record

    def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Operation[Sequence[ConversationRecord]]:
        """Return records, most recent ``updated_at`` first. One round trip.

        Args:
            scope: Only records with this scope.
            limit: The maximum number of records; the most recently written by the server's clock are returned.

        Raises:
            InvalidInput: The limit is negative.
            CorruptCheckpoint: A row is damaged.
        """
        found = yield from self._transcripts.recent(KIND, "", scope=scope, states=True, limit=limit)
        records = [stored_record(one.header).record for one in found]
        return sorted(records, key=lambda record: record.updated_at.timestamp(), reverse=True)

    def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> Operation[None]:
        """Store a record and the new entries of its history, all or nothing, if the stored revision is as expected.

        One round trip if this process has read or written the record that it replaces; two for a new conversation,
        three for a fork. An entry whose id is stored already stays as it is.

        Args:
            record: The record.
            new_entries: The entries, each after the one it points at, at most 10,000.
            expected_revision: The revision of the stored record; None: no record may exist.

        Raises:
            ConversationConflict: The stored record has another revision, or exists though there must be none, or the
                history follows an entry that is not stored. Nothing was written.
            InvalidInput: Something cannot be stored exactly, or the history belongs to a conversation that this one is
                no fork of. Nothing was written.
            StateTooLarge: The entries need a larger packet than the server's ``max_allowed_packet``.
        """
        items = items_of(new_entries)
        branch_point = _branch_point(record.head_id, new_entries)
        if expected_revision is None:
            log = yield from self._create(record, items, branch_point)
        else:
            log = yield from self._replace(record, items, branch_point, expected_revision)
        self._remember(StoredRecord(record, log), (entry.id for entry in new_entries))

    def delete_record(self, conversation_id: str, *, expected_revision: str) -> Operation[None]:
        """Delete a record, and the entries that no other record's history or branch uses.

        Three round trips; five, of which one reads the whole log, if it has forks or is one.

        Raises:
            ConversationConflict: The store has no record with this revision.
        """
        record_key = _record_key(conversation_id)
        backoff = _backoff(conversation_id)
        while True:
            stored = yield from self._stored(conversation_id)
            if stored is None or stored.record.revision != expected_revision:
                raise ConversationConflict(conversation_id)
            log_key = _log_key(stored.log)
            log = yield from self._transcripts.get(log_key)
            removal = yield from self._removal(log_key, log, conversation_id)
            record_removal = Write(record_key, expected_tag=expected_revision, delete=True)
            try:
                yield from self._transcripts.write([record_removal, removal])
            except VersionConflict:  # one of the conversations was written meanwhile
                yield backoff.pause()
                continue
            self._log_of_record.pop((conversation_id, expected_revision))
            return

    def read_entry(self, entry_id: str) -> Operation[ConversationEntry]:
        """Return an entry by its id. Two round trips; one if this process has cached its conversation.

        Raises:
            KeyError: There is no such entry.
            CorruptCheckpoint: The row is damaged.
        """
        known = self._log_of_entry.get(self._own(entry_id))
        item = None if known is None else (yield from self._transcripts.find(_log_key(known), entry_id))
        if item is None:
            found = yield from self._find_log(entry_id)
            item = None if found is None else (yield from self._transcripts.find(_log_key(found), entry_id))
        if item is None:
            raise KeyError(entry_id)
        return entries_of([item])[0]

    def read_history(self, head_id: str | None, *, limit: int | None = None) -> Operation[list[ConversationEntry]]:
        """Return the entries up to this one, oldest first.

        One round trip if this process has cached the conversation, else two. Reads ``limit`` rows; if conversations
        share a log, also the entries of other conversations between them, in further round trips.

        Args:
            head_id: The last entry; None: no entries.
            limit: The maximum number of entries, counted from the last.

        Raises:
            KeyError: An entry is not stored.
            CorruptCheckpoint: A row is damaged.
        """
        chain: list[Item] = []
        read_from = set[str]()
        wanted = head_id
        backoff = Backoff(f"The log of an entry before {head_id!r} was found, and had no such entry")
        while wanted is not None and (limit is None or len(chain) < limit):
            last = None if limit is None else limit - len(chain)
            log = self._log_of_entry.get(self._own(wanted)) or (yield from self._find_log(wanted))
            read = None if log is None else (yield from self._transcripts.read(_log_key(log), until=wanted, last=last))
            if read is None or not read.items:
                if self._log_of_entry.pop(self._own(wanted)) is None:
                    raise KeyError(wanted)
                backoff.check()
                continue  # deleted since this process read it; look up its log again
            if wanted in read_from:
                raise CorruptCheckpoint(f"The history of entry {wanted!r} is endless: entries point at each other.")
            read_from.add(wanted)
            for item in reversed(read.items):
                if item.item_id == wanted:
                    chain.append(item)
                    wanted = parent_of(item)
            if log is not None and wanted is not None:
                self._log_of_entry.put(self._own(wanted), log)
        return entries_of(chain[::-1])

    def _create(self, record: ConversationRecord, items: list[NewItem], branch_point: str | None) -> Operation[str]:
        """Store the record of a new conversation or fork; returns its log."""
        conversation_id = record.conversation_id
        backoff = _backoff(conversation_id)
        while True:
            log = conversation_id if branch_point is None else (yield from self._find_log(branch_point))
            if log is None:
                raise ConversationConflict(conversation_id)
            log_key = _log_key(log)
            found = yield from self._transcripts.get(log_key)
            members = [*_members(found, without=conversation_id), conversation_id]
            new = Write(_record_key(conversation_id), header=header_of(StoredRecord(record, log)), expected=0)
            revision = 0 if found is None else found.revision
            shared = Header({"conversations": members})
            entries = Write(log_key, items, shared, expected=revision, is_shared=True, needs=branch_point)
            try:
                yield from self._transcripts.write([new, entries])
            except VersionConflict:
                if (yield from self._transcripts.get(new.key)) is not None:
                    raise ConversationConflict(conversation_id) from None
                yield backoff.pause()
            except NotFound:  # the branch point was deleted, or is in another log now
                yield backoff.pause()
            else:
                return log

    def _replace(
        self, record: ConversationRecord, items: list[NewItem], branch_point: str | None, expected: str
    ) -> Operation[str]:
        """Replace the record of a stored conversation; returns its log."""
        conversation_id = record.conversation_id
        log = self._log_of_record.get(self._own(conversation_id, expected))
        if log is None:
            stored = yield from self._stored(conversation_id)
            if stored is None or stored.record.revision != expected:
                raise ConversationConflict(conversation_id)
            log = stored.log
        header = header_of(StoredRecord(record, log))
        changed = Write(_record_key(conversation_id), header=header, expected_tag=expected)
        try:
            entries = Write(_log_key(log), items, is_shared=True, needs=branch_point)
            yield from self._transcripts.write([changed, entries])
        except VersionConflict:
            raise ConversationConflict(conversation_id) from None
        except NotFound:
            if branch_point is None or (yield from self._find_log(branch_point)) is None:
                raise ConversationConflict(conversation_id) from None
            raise InvalidInput(
                f"Entry {branch_point!r} belongs to the history of a conversation that {conversation_id!r} shares no "
                "entries with. Fork that conversation instead. Nothing was written."
            ) from None
        return log

    def _removal(self, key: TranscriptKey, log: Transcript | None, conversation_id: str) -> Operation[Write]:
        """Return the write that removes the entries that only this conversation uses from its log."""
        others = _members(log, without=conversation_id)
        kept: list[StoredRecord] = []
        revision = 0 if log is None else log.revision
        if others:
            found = yield from self._transcripts.get_all([_record_key(other) for other in others])
            records = [stored_record(one.header) for one in found if one is not None]
            kept = [one for one in records if one.log == key.name]
        opened = (yield from self._transcripts.open(key)) if kept else None
        if opened is None:
            return Write(key, expected=revision, delete=True)
        _, items = opened
        used = _reachable(items, [one.record for one in kept])
        return Write(
            key,
            header=Header({"conversations": [one.record.conversation_id for one in kept]}),
            remove=[item.seq for item in items if item.item_id not in used],
            expected=revision,
            is_shared=True,
        )

    def _stored(self, conversation_id: str) -> Operation[StoredRecord | None]:
        found = yield from self._transcripts.get(_record_key(conversation_id))
        if found is None:
            return None
        stored = stored_record(found.header)
        self._remember(stored)
        return stored

    def _find_log(self, entry_id: str) -> Operation[str | None]:
        """Return the log that has an entry; None if there is none."""
        found = yield from self._transcripts.holding(KIND, entry_id)
        if not found:
            return None
        log = found[0].key.name
        self._log_of_entry.put(self._own(entry_id), log)
        return log

    def _remember(self, stored: StoredRecord, entries: Iterable[str] = ()) -> None:
        record = stored.record
        self._log_of_record.put(self._own(record.conversation_id, record.revision), stored.log)
        for entry_id in (*entries, *record.branches, record.head_id):
            if entry_id is not None:
                self._log_of_entry.put(self._own(entry_id), stored.log)


def _backoff(conversation_id: str) -> Backoff:
    return Backoff(f"Conversations of the log of {conversation_id!r} were written while it was read")


def _record_key(conversation_id: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", conversation_id)


def _log_key(log: str) -> TranscriptKey:
    return TranscriptKey(KIND, "", log, LOG)


def _members(log: Transcript | None, *, without: str) -> list[str]:
    """Return the conversations that use a log."""
    state: dict[str, Any] = {} if log is None or log.header.state is None else log.header.state
    return [one for one in state.get("conversations", []) if one != without]


def _branch_point(head_id: str | None, new_entries: Sequence[ConversationEntry]) -> str | None:
    """Return the stored entry that a history's new entries follow; None if the history begins with them."""
    parents = {entry.id: entry.parent_id for entry in new_entries}
    passed = set[str]()
    while head_id is not None and head_id in parents:
        if head_id in passed:
            raise InvalidInput(f"Entry {head_id!r} is before itself. Each entry points at the one before it.")
        passed.add(head_id)
        head_id = parents[head_id]
    return head_id


def _reachable(items: Sequence[Item], records: Sequence[ConversationRecord]) -> set[str]:
    """Return the ids of the entries in the histories of records and in the branches that they left."""
    parents = {item.item_id: parent_of(item) for item in items}
    reached = set[str]()
    for record in records:
        for entry_id in (record.head_id, *record.branches):
            while entry_id is not None and entry_id not in reached:
                reached.add(entry_id)
                entry_id = parents.get(entry_id)
    return reached


class PydanticConversationStore(AsyncTurns[ConversationOperations], ConversationStore):
    """Keeps conversations of Pydantic AI in MySQL: a `pydantic_ai.conversation_store.ConversationStore`.

    Each message is stored once. The server checks revisions, so no writer overwrites the turn of another one. Deleting
    a conversation deletes the entries that no other conversation's history uses.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to conversations.

    Example:
        ```python
        async with PydanticConversationStore("mysql://user:password@localhost/app") as store:
            conversation = await store.load("support-7") or Conversation(conversation_id="support-7")
            result = await agent.run("Hello", conversation=conversation)
            await store.save(result, scope="ada")
            assert [one.conversation_id for one in await store.list_conversations(scope="ada")] == ["support-7"]
        ```
    """

    def __init__(self, where: Where = ENVIRONMENT, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(ConversationOperations(config), database, owned=owned)

    read_record = awaited_method(ConversationOperations.read_record)
    read_records = awaited_method(ConversationOperations.read_records)
    write_record = awaited_method(ConversationOperations.write_record)
    delete_record = awaited_method(ConversationOperations.delete_record)
    read_entry = awaited_method(ConversationOperations.read_entry)
    read_history = awaited_method(ConversationOperations.read_history)
