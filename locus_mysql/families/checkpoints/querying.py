"""Finding and describing checkpoints, as generators that do no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any, cast

from ...dialect.checkpoints.queries import CheckpointPlace
from ...drivers.interface import Row
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, PrivilegeMissing, ReadOnlyServer
from ...runtime.arguments import (
    check_checkpoint_id,
    check_limit,
    check_text,
    check_thread_id,
    encode_metadata,
)
from ...runtime.damage import readable
from ...runtime.exact_json import check_json
from ...runtime.matching import Containment
from ...runtime.metadata_index import lookup_keys
from ...runtime.words import parts_of
from .base import OperationsBase
from .records import (
    CheckpointInfo,
    DiskUsage,
    Health,
    HistoryEntry,
    SearchHit,
    checkpoint_info,
    checkpoints_of,
    history_entry,
    state_of,
)
from .rows import aware
from .searchable import snippet, snippet_words

#: Threads whose states `search_data` reads at a time.
SEARCH_DATA_PAGE = 50

#: Checkpoints that `query_by_metadata` looks at in each further round trip, where too few of the first ones matched;
#: and in the first one at most, as their metadata may be 64 KB each.
METADATA_PAGE, FIRST_METADATA_PAGE = 100, 200

#: Checkpoints whose text a search indexes at most before it searches.
INDEXED_PER_SEARCH = 100_000


class QueryOperations(OperationsBase):
    """What is asked of many threads, or of a checkpoint without its state."""

    def list_threads(self, tenant: str, limit: int = 100, pattern: str = "*", offset: int = 0) -> Operation[list[str]]:
        """Ids of threads that match a glob, most recently saved first. One round trip."""
        check_text(pattern, "Pattern")
        limit, offset = check_limit(limit), check_limit(offset, "offset")
        (found,) = yield Batch.query(self.sql.threads.list(tenant, pattern, limit, offset))
        return [cast(str, row[0]) for row in found.rows]

    def count(self, tenant: str, pattern: str = "*") -> Operation[int]:
        """How many threads match a glob. One round trip."""
        (found,) = yield Batch.query(self.sql.threads.count(tenant, check_text(pattern, "Pattern")))
        return cast(int, found.rows[0][0])

    def get_metadata(
        self, tenant: str, thread_id: str, checkpoint_id: str | None = None
    ) -> Operation[CheckpointInfo | None]:
        """Id, metadata and time of a checkpoint, or of the newest. One round trip."""
        check_thread_id(thread_id)
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
        (found,) = yield Batch.of(self.sql.queries.get_metadata(tenant, thread_id, checkpoint_id))
        return checkpoint_info((thread_id, *found.rows[0])) if found.rows else None

    def query_by_metadata(self, tenant: str, key: str, value: Any, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """Checkpoints whose metadata contains this top-level pair, newest first. One round trip.

        As MySQL's ``JSON_CONTAINS`` tells it: see `contains`. 1 and 1.0 are equal, 1 and true are not.
        """
        limit, keys = self._check_pair(key, value, limit)
        wanted = Containment(value)
        matches: list[CheckpointInfo] = []
        behind: CheckpointPlace | None = None
        size = min(limit, FIRST_METADATA_PAGE)
        while len(matches) < limit:
            (found,) = yield Batch.query(self.sql.queries.find_by_metadata(tenant, keys, size, behind))
            infos = readable(checkpoint_info, (row[:4] for row in found.rows))
            matches += [info for info in infos if _holds(info["metadata"], key, wanted)]
            if len(found.rows) < size:
                break
            thread_id, _, _, created_at, seq = found.rows[-1]
            behind = CheckpointPlace(str(created_at), cast(int, seq), cast(str, thread_id))
            size = max(size, METADATA_PAGE)
        return matches[:limit]

    def states_by_metadata(
        self, tenant: str, key: str, value: Any, limit: int = 100
    ) -> Operation[list[tuple[CheckpointInfo, dict[str, Any]]]]:
        """As `query_by_metadata`, each with its state. One round trip."""
        limit, keys = self._check_pair(key, value, limit)
        wanted = Containment(value)
        matches: list[tuple[CheckpointInfo, dict[str, Any]]] = []
        behind: CheckpointPlace | None = None
        size = limit
        while len(matches) < limit:
            (found,) = yield Batch.of(self.sql.queries.load_by_metadata(tenant, keys, size, behind))
            page = checkpoints_of(found.rows)
            states = readable(state_of, page)
            matches += [(info, state) for info, state in states if _holds(info["metadata"], key, wanted)]
            if len(page) < size:
                break
            thread_id, _, _, _, seq, _, _, created_at = page[-1][0]
            behind = CheckpointPlace(str(created_at), cast(int, seq), cast(str, thread_id))
            size = max(size, METADATA_PAGE)
        return matches[:limit]

    def search_data(self, tenant: str, path: str, value: Any, limit: int = 100) -> Operation[list[dict[str, Any]]]:
        """Threads whose newest state holds a value under a top-level key; a round trip for every few threads."""
        check_text(path, "Path")
        limit = check_limit(limit)
        try:
            check_json(value, "The value")
        except InvalidInput:  # no state holds it
            return []
        wanted = Containment(value)
        found: list[dict[str, Any]] = []
        behind: tuple[str, str] | None = None
        while len(found) < limit:
            (rows,) = yield Batch.of(self.sql.queries.load_newest(tenant, SEARCH_DATA_PAGE, behind))
            page = checkpoints_of(rows.rows)
            for info, data in readable(state_of, (rows for rows in page if rows[0][1] is not None)):
                if path in data and wanted.within(data[path]):
                    place = {"thread_id": info["thread_id"], "checkpoint_id": info["checkpoint_id"]}
                    found.append({**place, "updated_at": info["updated_at"], "data": data})
            if len(page) < SEARCH_DATA_PAGE:
                break
            behind = str(page[-1][0][7]), cast(str, page[-1][0][0])
        return found[:limit]

    def search(self, tenant: str, query: str, limit: int = 10) -> Operation[list[SearchHit]]:
        """Checkpoints whose text matches words of a query, best first, the newest of equals first. One round trip.

        The score tells which of the query's words a text holds: each counts ``ln(1 + hits / hits with this word)``, all
        of them hits of this tenant and query, so the texts of other tenants have no part in it. Each text belongs to
        the checkpoint that added it. MySQL ignores words under three letters and its stop words:
        https://dev.mysql.com/doc/refman/9.0/en/fulltext-stopwords.html
        """
        check_text(query, "Query")
        limit = check_limit(limit)
        if not self.config.search:
            raise InvalidInput("Search is off in this configuration; set search=True.")
        query = query.replace("*", " ")  # a syntax error to MySQL 9.7 where it follows no word, and no operator here
        if not query.strip() or not limit:
            return []
        find = self.sql.queries.search(tenant, query, parts_of(query), limit * 4 + 20)
        index = self.sql.queries.index_pending(INDEXED_PER_SEARCH)
        try:
            if self.config.reads == "primary":
                _, found = yield Batch((index, find), atomic=False)
            else:  # first the primary, then a secondary that has that as well
                yield Batch.of(index)
                (found,) = yield Batch.query(find)
        except (ReadOnlyServer, PrivilegeMissing):  # a replica, say: what the primary has indexed by now is found
            (found,) = yield Batch.query(find)
        return hits_of(found.rows, query, limit)

    def list_with_metadata(self, tenant: str, limit: int = 100) -> Operation[list[CheckpointInfo]]:
        """The newest checkpoint of each thread, most recently saved first. One round trip."""
        (found,) = yield Batch.query(self.sql.queries.list_with_metadata(tenant, check_limit(limit)))
        return list(readable(checkpoint_info, found.rows))

    def history(self, tenant: str, thread_id: str, limit: int = 100) -> Operation[list[HistoryEntry]]:
        """A thread's checkpoints with the checkpoint each goes on from, newest first. One round trip."""
        check_thread_id(thread_id)
        limit = check_limit(limit)
        (found,) = yield Batch.of(self.sql.queries.history(tenant, thread_id, limit))
        return list(readable(partial(history_entry, thread_id), found.rows))

    def get_disk_usage(self, tenant: str, thread_id: str | None = None) -> Operation[DiskUsage]:
        """What a thread, or all of a tenant's, takes on the server. One round trip that reads every row's header."""
        if thread_id is not None:
            check_thread_id(thread_id)
        (found,) = yield Batch.query(self.sql.queries.disk_usage(tenant, thread_id))
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
        return check_limit(limit), json.dumps(lookup_keys(name, value))


def hits_of(rows: Iterable[Row], query: str, limit: int) -> list[SearchHit]:
    """The first hits, each checkpoint once, from rows of thread, id, time, score and text."""
    hits: dict[tuple[str, str], SearchHit] = {}
    words = snippet_words(query)
    for thread_id, checkpoint_id, created_at, score, text in rows:
        place = cast(str, thread_id), cast(str, checkpoint_id)
        if place not in hits and len(hits) < limit:
            hits[place] = SearchHit(
                thread_id=place[0],
                checkpoint_id=place[1],
                score=float(cast(float, score)),
                snippet=snippet(cast(str, text), words),
                created_at=aware(created_at),
            )
    return list(hits.values())


def _holds(metadata: dict[str, Any], name: str, wanted: Containment) -> bool:
    return name in metadata and wanted.within(metadata[name])
