"""Finding and describing checkpoints, as generators that do no I/O; and the text of a state that is indexed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from ...dialect.statement import like
from ...dialect.words import excerpt, parts_of
from ...engine.operation import Batch, Operation, fetch
from ...engine.retry import Backoff
from ...errors import InvalidInput, PrivilegeMissing, ReadOnlyServer
from ...runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_text,
    check_thread_id,
    encode_metadata,
)
from ...runtime.exact_json import check_json
from ...runtime.matching import Containment, lookup_keys
from ...runtime.sealing import NO_WORDS
from ...runtime.server_rows import aware, readable
from .coding.delta import Delta
from .records import (
    CheckpointInfo,
    DiskUsage,
    HistoryEntry,
    SearchHit,
    checkpoint_info,
    checkpoints_of,
    found_info,
    history_entry,
    state_of,
)
from .statements import loading, queries, threads
from .statements.queries import CheckpointPosition, HitRow
from .statements.tables import SNIPPET_CHARACTERS, ThreadKey
from .thread_cache import Context

#: Said if the pages of a list do not end.
PAGE_AGAIN = "A page of checkpoints ended where the page before it had ended"

#: Threads whose states `search_data` reads at a time.
SEARCH_DATA_PAGE = 50

#: Checkpoints that `query_by_metadata` examines in each further round trip, if too few of the first ones matched. The
#: first round trip examines at most as many, because metadata may be 64 KB each.
METADATA_PAGE, FIRST_METADATA_PAGE = 100, 200

#: Checkpoints whose text a search indexes at most before it searches.
INDEXED_PER_SEARCH = 100_000


class Queries:
    """Finds and describes checkpoints.

    Args:
        context: The objects shared by the store's operations.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sql = context.sql

    def exists(self, tenant: str, thread_id: str, checkpoint_id: str | None = None) -> Operation[bool]:
        """Return whether the checkpoint, or any checkpoint of the thread, exists. One round trip."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        if checkpoint_id is None:
            return bool((yield from fetch(queries.THREAD_EXISTS(self._sql, key))))
        find = queries.CHECKPOINT_EXISTS(self._sql, key, checkpoint_id=check_checkpoint_id(checkpoint_id))
        return bool((yield from fetch(find)))

    def list_checkpoints(self, tenant: str, thread_id: str, limit: int = 10) -> Operation[list[str]]:
        """Return the ids of a thread's checkpoints, newest first. One round trip."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        rows = yield from fetch(queries.LIST_IDS(self._sql, key, limit=check_limit(limit)))
        return [row.checkpoint_id for row in rows]

    def list_threads(self, tenant: str, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Return the ids of threads that match a glob, most recently saved first. One round trip."""
        pattern = like(check_text(pattern, "Pattern"))
        limit, offset = check_limit(limit), check_limit(offset, "offset")
        rows = yield from fetch(threads.LIST(self._sql, tenant=tenant, pattern=pattern, limit=limit, offset=offset))
        return [row.thread_id for row in rows]

    def threads_after(self, tenant: str, after: str, pattern: str, limit: int) -> Operation[list[str]]:
        """Return the ids of threads after one that match a glob, in the order of the ids. One round trip."""
        pattern = like(check_text(pattern, "Pattern"))
        find = threads.THREADS_AFTER(self._sql, tenant=tenant, after=after, pattern=pattern, limit=limit)
        return [row.thread_id for row in (yield from fetch(find))]

    def count(self, tenant: str, pattern: str = "*") -> Operation[int]:
        """Return the number of threads that match a glob. One round trip."""
        pattern = like(check_text(pattern, "Pattern"))
        ((number,),) = yield from fetch(threads.COUNT(self._sql, tenant=tenant, pattern=pattern))
        return number

    def get_metadata(
        self, tenant: str, thread_id: str, checkpoint_id: str | None = None
    ) -> Operation[CheckpointInfo | None]:
        """Return id, metadata and time of a checkpoint, or of the newest. One round trip."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        chosen = loading.OF_NEWEST if checkpoint_id is None else loading.OF_NAMED
        pieces = {"which": chosen["which"]}
        checkpoint_id = None if checkpoint_id is None else check_checkpoint_id(checkpoint_id)
        find = queries.GET_METADATA(self._sql, key, pieces=pieces, checkpoint_id=checkpoint_id)
        rows = yield from fetch(find)
        sealing = self._context.sealing.of(*key)
        return checkpoint_info(rows[0], thread_id, sealing) if rows else None

    def query_by_metadata(self, tenant: str, key: str, value: Any, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return checkpoints whose metadata contains this top-level pair, newest first. One round trip.

        Containment is that of MySQL's ``JSON_CONTAINS``: see `Containment`. 1 and 1.0 are equal, 1 and true are not.
        """
        limit, keys = self._check_pair(key, value, limit)
        wanted = Containment(value)
        matches: list[CheckpointInfo] = []
        after: CheckpointPosition | None = None
        size = min(limit, FIRST_METADATA_PAGE)
        backoff = Backoff(PAGE_AGAIN)
        while len(matches) < limit:
            find = queries.FIND_BY_METADATA(
                self._sql, *_source(after), pieces=_after(after), tenant=tenant, keys=keys, limit=size
            )
            rows = yield from fetch(find)
            infos = readable(partial(found_info, tenant=tenant, sealing=self._context.sealing), rows)
            matches += [info for info in infos if holds(info["metadata"], key, wanted)]
            if len(rows) < size:
                break
            last = rows[-1]
            after = CheckpointPosition(str(last.created_at), last.seq, last.thread_id)
            backoff.compare(after)
            size = max(size, METADATA_PAGE)
        return matches[:limit]

    def states_by_metadata(
        self, tenant: str, key: str, value: Any, limit: int = 100
    ) -> Operation[list[tuple[CheckpointInfo, dict[str, Any]]]]:
        """Like `query_by_metadata`, each with its state. One round trip."""
        limit, keys = self._check_pair(key, value, limit)
        wanted = Containment(value)
        matches: list[tuple[CheckpointInfo, dict[str, Any]]] = []
        after: CheckpointPosition | None = None
        size = limit
        backoff = Backoff(PAGE_AGAIN)
        while len(matches) < limit:
            load = queries.LOAD_BY_METADATA(
                self._sql, *_source(after), pieces=_after(after), tenant=tenant, keys=keys, limit=size
            )
            page = checkpoints_of((yield from fetch(load)))
            states = readable(partial(state_of, tenant=tenant, sealing=self._context.sealing), page)
            matches += [(info, state) for info, state in states if holds(info["metadata"], key, wanted)]
            if len(page) < size:
                break
            last = page[-1][0]
            after = CheckpointPosition(str(last.ordered_at), last.seq or 0, last.thread_id)
            backoff.compare(after)
            size = max(size, METADATA_PAGE)
        return matches[:limit]

    def search_data(self, tenant: str, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Return threads whose newest state has a value under a top-level key. Reads `SEARCH_DATA_PAGE` at a time."""
        check_text(path, "Path")
        limit = check_limit(limit)
        try:
            check_json(value, "The value")
        except InvalidInput:  # no state contains such a value
            return []
        wanted = Containment(value)
        matches: list[dict[str, Any]] = []
        pieces, position = {"after": ""}, dict[str, str]()
        backoff = Backoff(PAGE_AGAIN)
        while len(matches) < limit:
            load = queries.LOAD_NEWEST_OF_EACH(
                self._sql, pieces=pieces, tenant=tenant, limit=SEARCH_DATA_PAGE, **position
            )
            page = checkpoints_of((yield from fetch(load)))
            named = (rows for rows in page if rows[0].checkpoint_id is not None)
            for info, data in readable(partial(state_of, tenant=tenant, sealing=self._context.sealing), named):
                if path in data and wanted.within(data[path]):
                    ids = {"thread_id": info["thread_id"], "checkpoint_id": info["checkpoint_id"]}
                    matches.append({**ids, "updated_at": info["updated_at"], "data": data})
            if len(page) < SEARCH_DATA_PAGE:
                break
            last = page[-1][0]
            pieces = {"after": queries.AFTER_THREAD}
            position = {"saved_at": str(last.ordered_at), "thread_id": last.thread_id}
            backoff.compare(position)
        return matches[:limit]

    def search(self, tenant: str, query: str, limit: int = 10) -> Operation[list[SearchHit]]:
        """Return checkpoints whose text matches words of a query, best first, then newest first. One round trip.

        The score is the share of the query's words that the text contains, above 0 to 1; the rarer a word among the
        hits, the more it weighs. Only hits of this tenant and query are counted, so other tenants' texts do not affect
        the score. Each text belongs to the checkpoint that added it. MySQL ignores words under three letters.
        """
        check_text(query, "Query")
        limit = check_limit(limit)
        if not self._context.config.search:
            if self._context.sealing.is_on:
                raise InvalidInput(NO_WORDS)
            raise InvalidInput("Search is off in this configuration; set search=True.")
        parts = parts_of(query)
        if not parts or not limit:
            return []
        find = queries.search(self._sql, tenant, parts, limit * 4 + 20)
        index = queries.INDEX_PENDING(self._sql, pieces=queries.WAITING_FOR_LOCKS, limit=INDEXED_PER_SEARCH)
        try:
            rows = (yield Batch((index, find), atomic=False)).rows(find)
        # a read-only server: the search finds what the primary has indexed so far
        except (ReadOnlyServer, PrivilegeMissing):
            rows = yield from fetch(find)
        return hits_of(rows, query, limit)

    def list_with_metadata(self, tenant: str, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Return the newest checkpoint of each thread, most recently saved first. One round trip."""
        rows = yield from fetch(queries.LIST_WITH_METADATA(self._sql, tenant=tenant, limit=check_limit(limit)))
        return list(readable(partial(found_info, tenant=tenant, sealing=self._context.sealing), rows))

    def history(self, tenant: str, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """Return a thread's checkpoints with the parent of each, newest first. One round trip."""
        key = ThreadKey(tenant, check_thread_id(thread_id))
        rows = yield from fetch(queries.HISTORY(self._sql, key, limit=check_limit(limit), pieces=queries.NEWEST_FIRST))
        sealing = self._context.sealing.of(*key)
        return list(readable(partial(history_entry, thread_id=thread_id, sealing=sealing), rows))

    def get_disk_usage(self, tenant: str, thread_id: str | None = None) -> Operation[DiskUsage]:
        """Return the space that a thread, or all of a tenant's, takes. One round trip that reads every row's header."""
        if thread_id is None:
            (usage,) = yield from fetch(queries.DISK_USAGE(self._sql, tenant=tenant))
        else:
            key = ThreadKey(tenant, check_thread_id(thread_id))
            (usage,) = yield from fetch(queries.DISK_USAGE_OF_THREAD(self._sql, key))
        payload, text, metadata = int(usage.payload_bytes), int(usage.search_bytes), int(usage.metadata_bytes)
        return DiskUsage(
            threads=usage.threads,
            checkpoints=usage.checkpoints,
            rows=usage.rows,
            payload_bytes=payload,
            search_bytes=text,
            metadata_bytes=metadata,
            total_bytes=payload + text + metadata,
        )

    def _check_pair(self, key: object, value: Any, limit: object) -> tuple[int, str]:
        """The limit, and the keys under which checkpoints with this pair are indexed."""
        keys = lookup_text(key, value)
        return check_limit(limit), keys


def _source(position: CheckpointPosition | None) -> tuple[CheckpointPosition, ...]:
    return () if position is None else (position,)


def _after(position: CheckpointPosition | None) -> dict[str, str]:
    """Return the piece of the statements that return a page after a checkpoint."""
    return {"after": "" if position is None else queries.AFTER_CHECKPOINT}


def hits_of(rows: Iterable[HitRow], query: str, limit: int) -> list[SearchHit]:
    """Return the first hits, each checkpoint once."""
    hits: dict[tuple[str, str], SearchHit] = {}
    words = snippet_words(query)
    for row in rows:
        key = row.thread_id, row.checkpoint_id
        if key not in hits and len(hits) < limit:
            hits[key] = SearchHit(
                thread_id=row.thread_id,
                checkpoint_id=row.checkpoint_id,
                score=float(row.score),
                snippet=snippet(row.text, words),
                created_at=aware(row.created_at),
            )
    return list(hits.values())


def lookup_text(key: object, value: Any) -> str:
    """Return the keys under which checkpoints with this top-level pair are indexed, as JSON, and check the pair."""
    return json.dumps(keys_of(key, value))


def keys_of(key: object, value: Any) -> list[int]:
    """Return the same keys as a list."""
    name = check_text(key, "Metadata key")
    encode_metadata({name: value})
    return lookup_keys(name, value)


def holds(metadata: Mapping[str, Any], key: str, wanted: Containment) -> bool:
    """Return whether metadata has this top-level key with a value that contains the wanted one."""
    return key in metadata and wanted.within(metadata[key])


#: Separates the text that later states share from the text that only this checkpoint has, which is removed with it.
SHARED_TEXT_END = "\x1e"

#: Maximum number of indexed characters of one message or other text.
CHARACTERS_PER_TEXT = 10_000

#: Maximum number of characters that one save adds to the index.
CHARACTERS_PER_SAVE = 1_000_000

#: Maximum number of query words that a snippet is searched for.
SNIPPET_WORDS = 16


def text_of_dict(state: Mapping[str, Any], delta: Delta) -> tuple[str, bool]:
    """Return the text in a state's lists that its parent does not have, and the text of its other fields."""
    continues = not delta.discontinued and bool(delta.news)
    shared: list[str] = []
    head: list[str] = []
    for name, value in state.items():
        if isinstance(value, list):
            shared.extend(strings(value[delta.news.get(name, 0) if continues else 0 :]))
        elif isinstance(value, str | dict):
            head.extend(strings(value))
    text, head_text = joined(shared), joined(head)[:CHARACTERS_PER_TEXT] if head else ""
    return (f"{text}{SHARED_TEXT_END}{head_text}" if head_text else text), continues


def joined(texts: Iterable[str]) -> str:
    """Join texts, each truncated to its indexed length."""
    pieces: list[str] = []
    size = 0
    for text in texts:
        if size >= CHARACTERS_PER_SAVE:
            break
        pieces.append(text[:CHARACTERS_PER_TEXT])
        size += len(pieces[-1]) + 1
    whole = "\n".join(pieces)[:CHARACTERS_PER_SAVE]
    return whole.replace(SHARED_TEXT_END, " ").encode(errors="replace").decode()


def strings(value: Any) -> Iterator[str]:
    """Return every text in a JSON value, in order, without keys."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if item:
                yield item
        elif isinstance(item, dict):
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))


def snippet(text: str, words: Sequence[re.Pattern[str]], radius: int = 80) -> str:
    """Return the part of a text around the first occurrence of some words, at most ``2 * radius`` characters wide.

    Args:
        text: The text, of which the first `SNIPPET_CHARACTERS` are searched for the words.
        words: See `snippet_words`.
        radius: Characters before and after the word's beginning.
    """
    text = text[:SNIPPET_CHARACTERS].replace(SHARED_TEXT_END, "\n")
    folded = text.casefold()
    found = [match.start() for word in words if (match := word.search(folded)) is not None]
    return excerpt(text, min(found, default=0), radius)


def snippet_words(query: str) -> list[re.Pattern[str]]:
    """The first `SNIPPET_WORDS` words of a query, as what finds them in folded text.

    A pattern without choices finds a text in linear time, whatever both are; `str.find` does not.
    """
    words = dict.fromkeys(query[:SNIPPET_CHARACTERS].casefold().split())
    return [re.compile(re.escape(word)) for word in islice(words, SNIPPET_WORDS)]
