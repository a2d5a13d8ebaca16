"""The memory of CrewAI, `CrewMemoryStorage`, and its operations, which do no I/O."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias, Unpack

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo

from ...config import ENVIRONMENT, Keywords
from ...families.memories.embedding import EmbeddingOptions, Procedure
from ...families.memories.operations import FrameworkMemories, MemoryOperations
from ...families.memories.puts import Put
from ...families.memories.store import SyncMemories
from ...runtime.database import Where, share
from ...runtime.stores import blocking_method

#: The namespace of the records, which are items under their ids, with the scope as metadata.
NAMESPACE = ("crewai",)
#: More records than there are, and the number of records that one transaction writes or deletes.
ALL, AT_ONCE = 2**31, 10_000

Records: TypeAlias = list[MemoryRecord]
Names: TypeAlias = list[str] | None
Values: TypeAlias = dict[str, Any] | None


class CrewMemoryOperations(FrameworkMemories):
    """Stores the records of one tenant."""

    def save(self, records: Sequence[MemoryRecord]) -> Procedure[None]:
        """Store records, all or none of each 10,000, in one round trip; one with a known id replaces that.

        Raises:
            EmbeddingDimensionMismatchError: An embedding has another width.
            TypeError: The metadata of a record is not JSON.
        """
        for start in range(0, len(records), AT_ONCE):
            yield from self.items.put_batch([self._put(record) for record in records[start : start + AT_ONCE]])

    def update(self, record: MemoryRecord) -> Procedure[None]:
        """Replace a record; without an embedding, it keeps that which it has. One or two round trips; see `save`."""
        if not record.embedding:
            found = yield from self.items.get_embeddings(NAMESPACE, record.id)
            record = record.model_copy(update={"embedding": found[0] if found else None})
        yield from self.save([record])

    def get_record(self, record_id: str) -> Procedure[MemoryRecord | None]:
        """Return a record with its embedding; None if there is none. Two round trips."""
        item = yield from self.items.get_item(NAMESPACE, record_id)
        found = yield from self.items.get_embeddings(NAMESPACE, record_id)
        return None if item is None else MemoryRecord(**item.value, embedding=found[0] if found else None)

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: Names = None,
        metadata_filter: Values = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> Procedure[list[tuple[MemoryRecord, float]]]:
        """Return the records of a scope and those below that are nearest by cosine, the best first."""
        self._check(query_embedding)
        depth, where = limit, _within(scope_prefix)
        options: dict[str, Any] = {"embedding": query_embedding, "metadata_filter": where, "min_score": min_score}
        while True:
            hits = yield from self.items.search(NAMESPACE, limit=depth, **options)
            found = [(MemoryRecord(**hit.item.value), hit.score or 0.0) for hit in hits]
            fitting = [pair for pair in found if _fits(pair[0], categories, metadata_filter)]
            if len(fitting) >= limit or len(hits) < depth:
                return fitting[:limit]
            depth *= 4

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: Names = None,
        record_ids: Names = None,
        older_than: datetime | None = None,
        metadata_filter: Values = None,
    ) -> Procedure[int]:
        """Delete the records that fit all that is given, without anything all records; returns how many there were."""
        found, deleted = (yield from self._in(scope_prefix, record_ids)), 0
        keys = [(NAMESPACE, one.id) for one in found if _fits(one, categories, metadata_filter, older_than)]
        for start in range(0, len(keys), AT_ONCE):
            deleted += yield from self.items.delete_batch(keys[start : start + AT_ONCE])
        return deleted

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> Procedure[Records]:
        """Return the records of a scope and those below, without embeddings, the newest first."""
        found = yield from self._in(scope_prefix)
        found.sort(key=lambda record: _aware(record.created_at), reverse=True)
        return found[offset : offset + limit] if limit > 0 <= offset else []

    def get_scope_info(self, scope: str) -> Procedure[ScopeInfo]:
        """Return the number, categories and times of the records of a scope and those below, and the scopes in it."""
        found = yield from self.list_records(scope, ALL)
        times = [found[-1].created_at, found[0].created_at] if found else [None, None]
        info = ScopeInfo(path=_path(scope)[:-1] or "/", oldest_record=times[0], newest_record=times[1])
        info.record_count, info.child_scopes = len(found), _children(found, scope)
        info.categories = sorted({category for record in found for category in record.categories})
        return info

    def list_scopes(self, parent: str = "/") -> Procedure[list[str]]:
        """Return the scopes directly in a scope that have records, also those with records further below."""
        return _children((yield from self._in(parent)), parent)

    def list_categories(self, scope_prefix: str | None = None) -> Procedure[dict[str, int]]:
        """Return the number of records of each category in a scope and those below."""
        return dict(Counter(one for record in (yield from self._in(scope_prefix)) for one in record.categories))

    def count(self, scope_prefix: str | None = None) -> Procedure[int]:
        """Return the number of records of a scope and those below."""
        return len((yield from self._in(scope_prefix)))

    def _in(self, scope: str | None, ids: Names = None) -> Procedure[Records]:
        if ids is None:
            hits = yield from self.items.search(NAMESPACE, metadata_filter=_within(scope), limit=ALL)
            return [MemoryRecord(**hit.item.value) for hit in hits]
        found = (yield from self.items.get_batch([(NAMESPACE, one) for one in ids])).values()
        return [MemoryRecord(**one.value) for one in found if one.metadata["scope"].startswith(_path(scope))]

    def _put(self, record: MemoryRecord) -> Put:
        self._check(record.embedding)
        value = {**record.model_dump(mode="json"), "metadata": json.loads(json.dumps(record.metadata))}
        vectors, scope = [record.embedding] if record.embedding else [], {"scope": _path(record.scope)}
        return Put(NAMESPACE, record.id, value, scope, text=record.content, embeddings=vectors, index=False)

    def _check(self, embedding: list[float] | None) -> None:
        if embedding and self.items.dims is not None and len(embedding) != self.items.dims:
            raise EmbeddingDimensionMismatchError(self.items.dims, len(embedding))


def _path(scope: str | None) -> str:
    """Return a scope with a slash at its beginning and its end."""
    return "/".join(["", *filter(None, (scope or "").split("/")), ""])


def _within(scope: str | None) -> Values:
    """Return the filter of a scope and those below: texts that begin with its path, as ``0`` follows ``/``."""
    path = _path(scope)
    return None if path == "/" else {"scope": {"$gte": path, "$lt": path[:-1] + "0"}}


def _children(records: Records, scope: str) -> list[str]:
    path = _path(scope)
    below = (_path(record.scope)[len(path) :] for record in records)
    return sorted({path + rest.partition("/")[0] for rest in below if rest})


def _fits(record: MemoryRecord, categories: Names, metadata: Values, older_than: datetime | None = None) -> bool:
    equal = all(record.metadata.get(name) == value for name, value in (metadata or {}).items())
    named = not categories or not set(categories).isdisjoint(record.categories)
    return equal and named and (older_than is None or _aware(record.created_at) < _aware(older_than))


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _in_a_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: asyncio.to_thread(method, *args, **options)


class CrewMemoryStorage(SyncMemories[CrewMemoryOperations]):
    """Keeps the records of CrewAI's memory in MySQL: a `StorageBackend`, for ``Memory(storage=…)``.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        dims: The width of embeddings, which is that of CrewAI's default embedder.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search`` apply to records.
    """

    def __init__(self, where: Where = ENVIRONMENT, *, dims: int = 3_072, **options: Unpack[Keywords]) -> None:
        database, config, owned = share(type(self), where, options)
        super().__init__(CrewMemoryOperations(MemoryOperations(config, EmbeddingOptions(dims))), database, owned=owned)

    save = blocking_method(CrewMemoryOperations.save)
    update = blocking_method(CrewMemoryOperations.update)
    get_record = blocking_method(CrewMemoryOperations.get_record)
    list_records = blocking_method(CrewMemoryOperations.list_records)
    get_scope_info = blocking_method(CrewMemoryOperations.get_scope_info)
    list_scopes = blocking_method(CrewMemoryOperations.list_scopes)
    list_categories = blocking_method(CrewMemoryOperations.list_categories)
    count = blocking_method(CrewMemoryOperations.count)
    search = blocking_method(CrewMemoryOperations.search)
    delete = reset = blocking_method(CrewMemoryOperations.delete)
    asave, asearch, adelete = _in_a_thread(save), _in_a_thread(search), _in_a_thread(delete)
