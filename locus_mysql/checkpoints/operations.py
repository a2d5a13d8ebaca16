"""Every operation on checkpoints, as generators that do no I/O: `CheckpointOperations`."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from random import randrange
from typing import Any, TypedDict, cast
from uuid import uuid4

from ..config import MySQLConfig
from ..dialect import Dialect, Statement
from ..dialect.checkpoints import NewRow
from ..drivers.base import Result, Row
from ..engine.operation import Batch, Duplicate, Operation
from ..errors import InvalidInput, LocusMySQLError, PrivilegeMissing, ReadOnlyServer, ThreadExists, Unavailable
from .arguments import (
    TOO_MANY_PAIRS,
    check_checkpoint_id,
    check_limit,
    check_text,
    check_thread_id,
    encode_metadata,
    has_pair,
    pair_key,
)
from .codec import EncodedState, decode_json
from .delta import Delta, Lineage, StoredRow, assemble, encode_delta, extend, rows_needed
from .digests import HashedLogs, hash_logs, size_bytes
from .known import KnownThreads
from .matching import contains
from .new import NewCheckpoint
from .recent import Recent
from .rows import as_sql_time, assemble_rows, aware, rewritten
from .searchable import snippet

#: A save in this many, by chance, also removes threads that have expired, if threads expire.
SAVES_PER_CLEANING = 64

#: Expired threads removed at once by a save.
CLEANED_PER_SAVE = 10

#: A save in this many, by chance, also indexes the text of checkpoints saved since that was last done.
SAVES_PER_INDEXING = 32

#: Checkpoints whose text is indexed at once by a save, and at most by a search.
INDEXED_PER_SAVE, INDEXED_PER_SEARCH = 2 * SAVES_PER_INDEXING, 100_000

#: Threads whose states `search_data` reads at a time.
SEARCH_DATA_PAGE = 50


_LOG = logging.getLogger(__name__)


class CheckpointInfo(TypedDict):
    """A checkpoint without its state."""

    thread_id: str
    checkpoint_id: str
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class SearchHit(TypedDict):
    """A checkpoint whose text matches a query."""

    thread_id: str
    checkpoint_id: str
    score: float
    snippet: str
    created_at: datetime


class HistoryEntry(TypedDict):
    """A checkpoint in its thread's history."""

    checkpoint_id: str
    parent_id: str | None
    created_at: datetime
    size_bytes: int
    metadata: dict[str, Any]


class DiskUsage(TypedDict):
    """What checkpoints take on the server, indexes left out."""

    threads: int
    checkpoints: int
    rows: int
    payload_bytes: int
    search_bytes: int
    metadata_bytes: int
    total_bytes: int


class Health(TypedDict):
    """What the server answered."""

    ok: bool
    server_version: str
    read_only: bool
    server_time: datetime


@dataclass(frozen=True, slots=True)
class RecentState:
    """A thread's newest state, kept to be loaded and continued.

    Args:
        token: Of its row.
        encoded: The state.
        hashed: Its logs.
    """

    token: bytes
    encoded: EncodedState
    hashed: HashedLogs


class CheckpointOperations:
    """The operations of one configuration. A tenant is the first argument of each.

    Args:
        config: The options.
        dialect: The statements.
    """

    def __init__(self, config: MySQLConfig, dialect: Dialect) -> None:
        self.config = config
        self.sql = dialect
        self.known = KnownThreads()
        self._recent: Recent[RecentState] = Recent(config.cache_bytes)
        self._ttl_us = None if config.ttl_s is None else int(config.ttl_s * 1_000_000)

    # Saving and loading

    def save(self, tenant: str, thread_id: str, new: NewCheckpoint) -> Operation[str]:
        """Store a state as the newest checkpoint of its thread; returns its id.

        One round trip. Another one if somebody else wrote to the thread since this process knew it; if then the row it
        would build on is gone; if the id of a provisional state exists; and now and then for housekeeping.
        """
        check_thread_id(thread_id)
        checkpoint_id = uuid4().hex if new.checkpoint_id is None else check_checkpoint_id(new.checkpoint_id)
        replaces = new.checkpoint_id is not None and not new.provisional
        metadata, metadata_keys = encode_metadata(new.metadata)
        key = (tenant, thread_id)
        token = os.urandom(16)
        before = self._recent.get(key)
        hashed = hash_logs(new.state, {} if before is None else before.hashed)
        lineage = self.known.lineage_for(key, hashed)
        known_version = None if replaces else self.known.version(key)
        while True:
            delta = encode_delta(
                new.state, hashed, lineage, provisional=new.provisional, compression=self.config.compression
            )
            text, continues = new.search_text(delta) if self.config.search and not new.provisional else ("", False)
            row = NewRow(
                checkpoint_id=checkpoint_id,
                token=token,
                payload=delta.payload,
                parent_seq=delta.parent.seq if delta.parent else None,
                continues=continues,
                provisional=new.provisional,
                metadata=metadata,
                metadata_keys=metadata_keys,
                search_text=text or None,
                oldest_at=new.oldest_at,
            )
            batch = self._save_batch(tenant, thread_id, row, delta, replaces=replaces, known_version=known_version)
            try:
                results = yield batch
            except Duplicate:
                if replaces:
                    raise
                replaces, known_version = True, None
                continue
            seq = _stored_seq(results, inserted_at=2 if replaces else 1)
            if seq is not None:
                self.known.saved(key, extend(lineage, delta, seq, token, provisional=new.provisional))
                self._keep(key, RecentState(token, new.state, hashed))
                if self._pruned_several(tenant, thread_id, batch, results):
                    yield from self._sweep(tenant, thread_id)
                yield from self._housekeeping(added_text=bool(text))
                return checkpoint_id
            if known_version is None:
                self.known.forget(key)
                lineage = ()
            known_version = None

    def _save_batch(
        self, tenant: str, thread_id: str, row: NewRow, delta: Delta, *, replaces: bool, known_version: bytes | None
    ) -> Batch:
        """The transaction of a save. Its second statement inserts; its third does if it may replace a checkpoint."""
        threads, checkpoints, parent, base = self.sql.threads, self.sql.checkpoints, delta.parent, delta.base
        statements: list[Statement] = []
        take = (tenant, thread_id, row.token, self._ttl_us)
        if parent is not None and known_version is not None:
            statements.append(threads.take_seq_if_unchanged(*take, known_version))
            statements.append(checkpoints.insert_next(tenant, thread_id, row, None if base is None else base.seq))
        elif parent is not None:
            parent_key = (parent.seq, parent.token)
            base_key = None if base is None else (base.seq, base.token)
            statements.append(threads.take_seq_of_live(*take))
            if replaces:
                statements.append(checkpoints.unname_for(tenant, thread_id, row.checkpoint_id, parent_key, base_key))
            statements.append(checkpoints.insert_after(tenant, thread_id, row, parent_key, base_key))
        else:
            statements.append(threads.take_seq(*take))
            if replaces:
                statements.append(checkpoints.unname(tenant, thread_id, row.checkpoint_id))
            statements.append(checkpoints.insert_whole(tenant, thread_id, row))
            statements.append(checkpoints.delete_left_behind(tenant, thread_id))
        if replaces:
            statements.extend(checkpoints.retire_unnamed(tenant, thread_id))
        if self.config.keep_checkpoints is not None and not row.provisional:
            retire = checkpoints.retire_unnamed(tenant, thread_id)
            statements += [checkpoints.unname_older(tenant, thread_id, self.config.keep_checkpoints), *retire]
        landed = checkpoints.find_saved(tenant, thread_id, row.checkpoint_id, row.token)
        return Batch(tuple(statements), landed)

    def _pruned_several(self, tenant: str, thread_id: str, batch: Batch, results: Sequence[Result]) -> bool:
        """Whether more checkpoints lost their names than the one whose row the batch itself retires."""
        if self.config.keep_checkpoints is None or len(results) == 1:
            return False
        pruning = self.sql.checkpoints.unname_older(tenant, thread_id, self.config.keep_checkpoints)
        return pruning in batch.statements and results[batch.statements.index(pruning)].affected > 1

    def _keep(self, key: tuple[str, str], state: RecentState) -> None:
        """Keep what a thread's newest state says."""
        self._recent.put(key, state, len(state.encoded.head) + size_bytes(state.hashed))

    def load(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[EncodedState | None]:
        """A checkpoint's state, or the newest; None if there is none.

        One round trip; a second one if another process wrote to a thread whose newest checkpoint this process knew.
        """
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        else:
            state = yield from self._load_newest_known(tenant, thread_id)
            if state is not None:
                return state
        (found,) = yield Batch.of(self.sql.checkpoints.load(tenant, thread_id, checkpoint_id))
        if not found.rows:
            return None
        state, lineage = assemble_rows(found.rows)
        if checkpoint_id is None:
            self._loaded_newest((tenant, thread_id), state, lineage, cast(bytes, found.rows[0][3]))
        else:
            self.known.loaded((tenant, thread_id), lineage, version=None)
        return state

    def _load_newest_known(self, tenant: str, thread_id: str) -> Operation[EncodedState | None]:
        """The newest state, if this process has it or knows its rows, and nobody wrote to the thread since."""
        key = (tenant, thread_id)
        lineage, version = self.known.newest(key)
        if version is None:
            return None
        recent = self._recent.get(key)
        if recent is not None and recent.token == lineage[0].token:
            (found,) = yield Batch.of(self.sql.threads.unchanged(tenant, thread_id, version))
            if not found.rows:
                return None
            self.known.loaded(key, lineage, version=version)
            return recent.encoded
        rows = rows_needed(lineage)
        seqs = [ancestor.seq for ancestor in rows]
        (found,) = yield Batch.of(self.sql.checkpoints.load_rows(tenant, thread_id, version, seqs))
        if len(found.rows) < len(seqs):
            return None
        payloads = [cast(bytes, row[0]) for row in found.rows]
        stored = [StoredRow(row.seq, row.token, payload) for row, payload in zip(rows, payloads, strict=True)]
        state, _ = assemble(stored)
        self._loaded_newest(key, state, lineage, version)
        return state

    def _loaded_newest(self, key: tuple[str, str], state: EncodedState, lineage: Lineage, version: bytes) -> None:
        self.known.loaded(key, lineage, version=version)
        before = self._recent.get(key)
        hashed = hash_logs(state, {} if before is None else before.hashed)
        self._keep(key, RecentState(lineage[0].token, state, hashed))

    def exists(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Whether the checkpoint, or any of the thread, is there. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        (found,) = yield Batch.of(self.sql.checkpoints.exists(tenant, thread_id, checkpoint_id))
        return bool(found.rows)

    def delete(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Delete a checkpoint, or a thread; True if there was one. One round trip.

        States that build on a deleted checkpoint stay whole.
        """
        check_thread_id(thread_id)
        threads, checkpoints = self.sql.threads, self.sql.checkpoints
        if checkpoint_id is None:
            self.known.forget((tenant, thread_id))
            locked, *_ = yield Batch.of(
                threads.lock(tenant, thread_id),
                checkpoints.delete_all(tenant, thread_id),
                threads.drop(tenant, thread_id),
            )
            return locked.affected > 0
        check_checkpoint_id(checkpoint_id)
        known_version, version = self.known.version((tenant, thread_id)) or b"", os.urandom(16)
        locked, unnamed, *_ = yield Batch.of(
            threads.lock(tenant, thread_id, known_version, version),
            checkpoints.unname(tenant, thread_id, checkpoint_id),
            *checkpoints.retire_unnamed(tenant, thread_id),
            threads.drop_if_empty(tenant, thread_id),
        )
        if locked.affected:
            self.known.deleted((tenant, thread_id), unnamed.last_insert_id, known_version, version)
        return locked.affected > 0 and unnamed.affected > 0

    def list_checkpoints(self, tenant: str, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Ids of a thread's checkpoints, newest first. One round trip."""
        check_thread_id(thread_id)
        (found,) = yield Batch.of(self.sql.checkpoints.list_ids(tenant, thread_id, check_limit(limit)))
        return [cast(str, row[0]) for row in found.rows]

    # Threads

    def list_threads(self, tenant: str, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Ids of threads that match a glob, most recently saved first. One round trip."""
        check_text(pattern, "Pattern")
        limit, offset = check_limit(limit), check_limit(offset, "offset")
        (found,) = yield Batch.of(self.sql.threads.list(tenant, pattern, limit, offset))
        return [cast(str, row[0]) for row in found.rows]

    def count(self, tenant: str, pattern: str = "*") -> Operation[int]:
        """How many threads match a glob. One round trip."""
        (found,) = yield Batch.of(self.sql.threads.count(tenant, check_text(pattern, "Pattern")))
        return cast(int, found.rows[0][0])

    def copy_thread(self, tenant: str, source: str, destination: str) -> Operation[bool]:
        """Copy a thread with all its checkpoints; False if there is none. One round trip; states stay on the server.

        Raises:
            ThreadExists: The destination has checkpoints. Nothing was changed.
        """
        check_thread_id(source)
        check_thread_id(destination)
        if source == destination:
            raise InvalidInput("A thread cannot be copied onto itself; choose another destination.")
        copy = self.sql.maintenance.copy_thread(tenant, source, destination, self._ttl_us)
        landed = self.sql.maintenance.find_copied(tenant, source, destination)
        try:
            results = yield Batch(copy, landed)
        except Duplicate:
            raise ThreadExists(
                f"Thread {destination!r} has checkpoints already; delete it first or copy to another id."
            ) from None
        return len(results) == 1 or results[3].affected > 0

    # Metadata and search

    def get_metadata(
        self, tenant: str, thread_id: str, checkpoint_id: str | None = None
    ) -> Operation[CheckpointInfo | None]:
        """Id, metadata and time of a checkpoint, or of the newest. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        (found,) = yield Batch.of(self.sql.queries.get_metadata(tenant, thread_id, checkpoint_id))
        return _info((thread_id, *found.rows[0])) if found.rows else None

    def query_by_metadata(self, tenant: str, key: str, value: Any, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Checkpoints whose metadata has this top-level pair, newest first. One round trip.

        Values are compared as JSON: 1 and 1.0 are equal, 1 and true are not, objects in any order of keys.
        """
        limit, keys = self._check_pair(key, value, limit)
        matches: list[CheckpointInfo] = []
        offset = 0
        while len(matches) < limit:
            (found,) = yield Batch.of(self.sql.queries.find_by_metadata(tenant, keys, limit, offset))
            matches += [info for info in map(_info, found.rows) if has_pair(info["metadata"], key, value)]
            if len(found.rows) < limit:
                break
            offset += limit
        return matches[:limit]

    def states_by_metadata(
        self, tenant: str, key: str, value: Any, limit: int = 100
    ) -> Operation[list[tuple[CheckpointInfo, EncodedState]]]:
        """As `query_by_metadata`, each with its state. One round trip."""
        limit, keys = self._check_pair(key, value, limit)
        matches: list[tuple[CheckpointInfo, EncodedState]] = []
        offset = 0
        while len(matches) < limit:
            (found,) = yield Batch.of(self.sql.queries.load_by_metadata(tenant, keys, limit, offset))
            states = _states(found.rows)
            matches += [(info, state) for info, state in states if has_pair(info["metadata"], key, value)]
            if len(states) < limit:
                break
            offset += limit
        return matches[:limit]

    def newest_states(
        self, tenant: str, limit: int, offset: int = 0
    ) -> Operation[list[tuple[CheckpointInfo, EncodedState]]]:
        """Each thread's newest checkpoint with its state, most recently saved first. One round trip."""
        limit, offset = check_limit(limit), check_limit(offset, "offset")
        (found,) = yield Batch.of(self.sql.queries.load_newest(tenant, limit, offset))
        return _states(found.rows)

    def search_data(self, tenant: str, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Threads whose newest state holds a value under a top-level key; a round trip for every few threads."""
        check_text(path, "Path")
        limit = check_limit(limit)
        found: list[dict[str, Any]] = []
        offset = 0
        while len(found) < limit:
            page = yield from self.newest_states(tenant, SEARCH_DATA_PAGE, offset)
            for info, state in page:
                data = decode_json(state.text())
                if path in data and contains(data[path], value):
                    place = {"thread_id": info["thread_id"], "checkpoint_id": info["checkpoint_id"]}
                    found.append({**place, "data": data})
            offset += len(page)
            if len(page) < SEARCH_DATA_PAGE:
                break
        return found[:limit]

    def search(self, tenant: str, query: str, limit: int = 10) -> Operation[list[SearchHit]]:
        """Checkpoints whose text matches words of a query, best first, the newest of equals first. One round trip.

        Each text belongs to the checkpoint that added it. MySQL ignores words under three letters and its stop words:
        https://dev.mysql.com/doc/refman/9.0/en/fulltext-stopwords.html
        """
        check_text(query, "Query")
        limit = check_limit(limit)
        if not self.config.search:
            raise InvalidInput("Search is off in this configuration; set search=True.")
        query = query.replace("*", " ")  # a syntax error to MySQL 9.7 where it follows no word, and no operator here
        if not query.strip() or not limit:
            return []
        find = self.sql.queries.search(tenant, query, limit * 4 + 20)
        try:
            _, found = yield Batch((self.sql.queries.index_pending(INDEXED_PER_SEARCH), find), atomic=False)
        except (ReadOnlyServer, PrivilegeMissing):  # a replica, say: what the primary has indexed by now is found
            (found,) = yield Batch.of(find)
        hits: dict[tuple[str, str], SearchHit] = {}
        for thread_id, checkpoint_id, created_at, score, text in found.rows:
            place = cast(str, thread_id), cast(str, checkpoint_id)
            if place not in hits and len(hits) < limit:
                hits[place] = SearchHit(
                    thread_id=place[0],
                    checkpoint_id=place[1],
                    score=float(cast(float, score)),
                    snippet=snippet(cast(str, text), query),
                    created_at=aware(created_at),
                )
        return list(hits.values())

    def list_with_metadata(self, tenant: str, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """The newest checkpoint of each thread, most recently saved first. One round trip."""
        (found,) = yield Batch.of(self.sql.queries.list_with_metadata(tenant, check_limit(limit)))
        return [_info(row) for row in found.rows]

    def history(self, tenant: str, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """A thread's checkpoints with the checkpoint each goes on from, newest first. One round trip."""
        check_thread_id(thread_id)
        limit = check_limit(limit)
        (found,) = yield Batch.of(self.sql.queries.history(tenant, thread_id))
        names = {row[0]: row[1] for row in found.rows}
        parents = {row[0]: row[2] for row in found.rows}
        entries = []
        for _, checkpoint_id, parent, created_at, size, metadata in found.rows:
            if checkpoint_id is None:
                continue
            while parent in names and names[parent] is None:
                parent = parents[parent]
            entries.append(
                HistoryEntry(
                    checkpoint_id=cast(str, checkpoint_id),
                    parent_id=cast("str | None", names.get(parent)),
                    created_at=aware(created_at),
                    size_bytes=cast(int, size),
                    metadata=json.loads(cast(str, metadata)) if metadata else {},
                )
            )
            if len(entries) >= limit:
                break
        return entries[:limit]

    def get_disk_usage(self, tenant: str, thread_id: str | None = None) -> Operation[DiskUsage]:
        """What a thread, or all of a tenant's, takes on the server. One round trip that reads every row's header."""
        if thread_id is not None:
            check_thread_id(thread_id)
        (found,) = yield Batch.of(self.sql.queries.disk_usage(tenant, thread_id))
        threads, named, rows, payload, text, metadata = (int(cast(int, value)) for value in found.rows[0])
        return DiskUsage(
            threads=threads,
            checkpoints=named,
            rows=rows,
            payload_bytes=payload,
            search_bytes=text,
            metadata_bytes=metadata,
            total_bytes=payload + text + metadata,
        )

    def health_check(self) -> Operation[Health]:
        """Ask the server for its version, time and whether it takes writes. One round trip."""
        (found,) = yield Batch.of(self.sql.queries.health())
        version, read_only, now = found.rows[0]
        return Health(ok=True, server_version=str(version), read_only=bool(read_only), server_time=aware(now))

    def _check_pair(self, key: object, value: Any, limit: object) -> tuple[int, str]:
        """The limit, and the keys under which checkpoints with this pair are indexed."""
        name = check_text(key, "Metadata key")
        encode_metadata({name: value})
        return check_limit(limit), json.dumps([pair_key(name, value), TOO_MANY_PAIRS])

    # Rewriting and cleaning up

    def rewrite_thread(self, tenant: str, thread_id: str, change: Callable[[bytes], NewCheckpoint]) -> Operation[None]:
        """Replace the state of every checkpoint of a thread, in place: ids, order, times and metadata stay.

        Args:
            tenant: The thread's tenant.
            thread_id: The thread.
            change: From a state's text, the new state with its search text. It may be asked again for the same state.

        Raises:
            Unavailable: The thread was being written to all the time.
        """
        for _ in range(_REWRITES):
            (found,) = yield Batch.of(self.sql.maintenance.read_thread(tenant, thread_id))
            if not found.rows:
                return
            known_version, version = cast(bytes, found.rows[0][-1]), os.urandom(16)
            rows = rewritten(found.rows, change, compression=self.config.compression)
            locked, *_ = yield Batch.of(
                *self.sql.maintenance.clear_unchanged(tenant, thread_id, known_version, version),
                *(self.sql.maintenance.put_row(tenant, thread_id, version, row) for row in rows),
            )
            if locked.affected:
                self.known.forget((tenant, thread_id))
                return
        raise Unavailable(f"Thread {thread_id!r} was saved to all the time; try again when it is quiet.")

    def threads_with_old_messages(self, tenant: str, before: datetime, after: str, limit: int) -> Operation[list[str]]:
        """A page of ids of threads with a checkpoint whose oldest message is from before a time."""
        moment = as_sql_time(before)
        (found,) = yield Batch.of(self.sql.maintenance.threads_with_old_messages(tenant, moment, after, limit))
        return [cast(str, row[0]) for row in found.rows]

    def vacuum(self, tenant: str, older_than_days: float = 30) -> Operation[int]:
        """Remove a tenant's old checkpoints, a few threads at a time; returns how many.

        A thread not saved to for that long goes whole. Others lose checkpoints older than that, never the newest.
        Expired threads go too, and rows that nothing needs any more.
        """
        age_us = _age_us(older_than_days)
        removed = yield from self._remove_expired(tenant)
        after = ""
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.threads_before(tenant, age_us, after, 100))
            for thread_id, idle in page.rows:
                after = cast(str, thread_id)
                if idle:
                    removed += yield from self._remove_idle(tenant, after, age_us)
                else:
                    removed += yield from self._prune(tenant, after, age_us)
            if len(page.rows) < 100:
                return removed

    def forget_tenant(self, tenant: str) -> Operation[int]:
        """Delete all of a tenant's threads, one at a time; returns how many checkpoints there were."""
        removed = 0
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.tenant_threads(tenant, 100))
            for (thread_id,) in page.rows:
                place = (tenant, cast(str, thread_id))
                self.known.forget(place)
                _, counted, *_ = yield Batch.of(
                    self.sql.threads.lock(*place),
                    self.sql.maintenance.count_named(*place),
                    self.sql.checkpoints.delete_all(*place),
                    self.sql.threads.drop(*place),
                )
                removed += cast(int, counted.rows[0][0])
            if not page.rows:
                return removed

    def _prune(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        _, _, dropped, *_ = yield Batch.of(
            self.sql.threads.lock(tenant, thread_id),
            self.sql.checkpoints.delete_left_behind(tenant, thread_id),
            self.sql.maintenance.unname_before(tenant, thread_id, age_us),
            *self.sql.maintenance.sweep(tenant, thread_id),
        )
        return dropped.affected

    def _sweep(self, tenant: str, thread_id: str) -> Operation[None]:
        """Remove all that no checkpoint of a thread needs any more."""
        yield Batch.of(self.sql.threads.lock(tenant, thread_id), *self.sql.maintenance.sweep(tenant, thread_id))

    def _remove_idle(self, tenant: str, thread_id: str, age_us: int) -> Operation[int]:
        self.known.forget((tenant, thread_id))
        _, counted, *_ = yield Batch(self.sql.maintenance.remove_idle(tenant, thread_id, age_us))
        return cast(int, counted.rows[0][0])

    def _remove_expired(self, tenant: str) -> Operation[int]:
        removed = 0
        while True:
            (page,) = yield Batch.of(self.sql.maintenance.expired(tenant, 100))
            for owner, thread_id in page.rows:
                removed += yield from self._remove_idle(cast(str, owner), cast(str, thread_id), _NEVER_US)
            if len(page.rows) < 100:
                return removed

    def _housekeeping(self, *, added_text: bool) -> Operation[None]:
        """What a save does for others, now and then: by chance, as a process may end after a few saves."""
        try:
            if added_text and its_turn(SAVES_PER_INDEXING):
                yield Batch.of(self.sql.queries.index_pending(INDEXED_PER_SAVE, skip_locked=True))
            if self._ttl_us is not None and its_turn(SAVES_PER_CLEANING):
                (page,) = yield Batch.of(self.sql.maintenance.expired(None, CLEANED_PER_SAVE))
                for owner, thread_id in page.rows:
                    yield from self._remove_idle(cast(str, owner), cast(str, thread_id), _NEVER_US)
        except LocusMySQLError as error:  # the save itself is done, and another one will do this
            _LOG.warning("A checkpoint was saved, but the housekeeping after it failed: %s", error)


#: How often a rewrite is begun anew because the thread was changed meanwhile.
_REWRITES = 10

#: An age that no thread has, in microseconds: a thousand years.
_NEVER_US = 1_000 * 365 * 86_400 * 1_000_000


def its_turn(one_in: int) -> bool:
    """Whether this save, of so many, is the one to do something for the others."""
    return randrange(one_in) == 0  # noqa: S311 - spreads work, guards no secret


def _stored_seq(results: Sequence[Result], inserted_at: int) -> int | None:
    """The seq of the row a save inserted, or None if its base was gone."""
    if len(results) == 1:
        return cast(int, results[0].rows[0][0])  # an earlier try had been carried out
    return results[0].last_insert_id if results[inserted_at].affected else None


def _info(row: Row) -> CheckpointInfo:
    thread_id, checkpoint_id, metadata, created_at = row
    return CheckpointInfo(
        thread_id=cast(str, thread_id),
        checkpoint_id=cast(str, checkpoint_id),
        metadata=json.loads(cast(str, metadata)) if metadata else {},
        created_at=aware(created_at),
        updated_at=aware(created_at),
    )


def _states(rows: Sequence[Row]) -> list[tuple[CheckpointInfo, EncodedState]]:
    """Each checkpoint with the text of its state, from the rows of the statements that load several."""
    grouped = groupby(rows, key=lambda row: (row[0], row[1]))
    states = []
    for _, group in grouped:
        lineage = list(group)
        states.append((_info(lineage[0][:4]), assemble_rows([row[4:] for row in lineage])[0]))
    return states


def _age_us(days: float) -> int:
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= 365_000:
        raise InvalidInput(f"older_than_days must be a number from 0 to 365000, not {days!r:.50}.")
    return int(days * 86_400 * 1_000_000)
