"""LangGraph's store operations as procedures: a batch of them in as few round trips as it allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import (
    Embeddings,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    validate_op_namespace,
)

from ...config import MySQLConfig
from ...dialect.memories.filters import condition_of
from ...dialect.memories.ranges import Range
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput
from ...families.memories.arguments import check_count, check_text
from ...families.memories.embedding import Procedure, Texts
from ...families.memories.gather import gather
from ...families.memories.namespaces import encoded_key, path_of
from ...families.memories.puts import Put
from ...families.memories.reading import Guard
from ...families.memories.records import Hits, MemoryHit, MemoryItem
from ...families.memories.store import MemoryProcedures
from ...families.memories.vectors.scoring import Query
from ...families.memories.writing import ItemKey
from .store_options import check_index, check_paths, check_ttl, ttl_s


class StoreProcedures(MemoryProcedures):
    """LangGraph's operations over items.

    Args:
        config: The options.
        index: What is embedded, how and how wide; None: searches with a query are by word.
        ttl: When items expire: LangGraph's base class puts that into each operation, so it is only checked here.

    Raises:
        ConfigError: One of them is no dict, lacks a key, or has one that is unknown or wrong.
    """

    def __init__(self, config: MySQLConfig, index: IndexConfig | None, ttl: TTLConfig | None) -> None:
        self.index = index
        self.embeddings: Embeddings | None = None
        if ttl is not None:
            check_ttl(ttl)
        if index is None:
            super().__init__(config)
            return
        self.embeddings, metric, self._paths = check_index(index)
        super().__init__(config, dims=index["dims"], embed=self.embeddings.embed_documents, metric=metric)

    def batch(self, ops: Iterable[Op]) -> Procedure[list[Result]]:
        """Carry out operations: reads first, then the writes in one transaction. Results are in the order of the ops.

        Raises:
            InvalidNamespaceError: A label is empty, no text, or holds a period or NUL.
            InvalidInput: An argument cannot be stored exactly, or a filter not be understood.
        """
        ops = list(ops)
        for op in ops:
            if not isinstance(op, GetOp | SearchOp | ListNamespacesOp | PutOp):
                raise InvalidInput(f"Unknown operation: {type(op).__name__}.")
            validate_op_namespace(op)
            if isinstance(op, SearchOp) and op.query is not None:
                check_text(op.query, "The query")
        puts: dict[ItemKey, PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                puts.pop(self._key_of(op), None)
                puts[self._key_of(op)] = op
        news = [self.prepared(self._put_of(op)) for op in puts.values() if op.value is not None]
        results: list[Result] = [None] * len(ops)
        reading = [place for place, op in enumerate(ops) if not isinstance(op, PutOp)]
        if reading:
            queries = yield from self._queries(op for op in ops if isinstance(op, SearchOp))
            found = yield self._all_read([ops[place] for place in reading], queries)
            for place, result in zip(reading, found, strict=True):
                results[place] = result
        if puts:
            gone = [key for key, op in puts.items() if op.value is None]
            new = yield from self.embedded(news)
            yield self.writing.write(self.tenant, new, gone)
        return results

    def sweep_all(self) -> Procedure[int]:
        """Remove what has expired of the tenant; returns how much."""
        removed = 0
        while some := (yield from self.sweep(1_000)):
            removed += some
        return removed

    def nothing(self) -> Procedure[None]:
        """Do nothing, but make sure of the tables."""
        return
        yield

    def _queries(self, ops: Iterable[SearchOp]) -> Procedure[dict[str, Query]]:
        """The embeddings of what is asked for, each text once."""
        texts = list(dict.fromkeys(op.query for op in ops if op.query))
        if not texts or self.embeddings is None:
            return {}
        made = yield Texts(texts, query=True)
        return {text: self.query_of(vector) for text, vector in zip(texts, made, strict=True)}

    def _all_read(self, ops: Sequence[Op], queries: Mapping[str, Query]) -> Operation[list[Any]]:
        def reading(guard: Guard) -> Operation[list[Any]]:
            return gather([self._read(op, queries, guard) for op in ops])

        return (yield from self.reading.past_damage(reading))

    def _read(self, op: Op, queries: Mapping[str, Query], guard: Guard) -> Operation[Any]:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._found(op, queries, guard)
        return self._listed(cast(ListNamespacesOp, op))

    def _get(self, op: GetOp) -> Operation[Item | None]:
        found = yield from self.reading.get(self.tenant, [self._key_of(op)], refresh=op.refresh_ttl)
        return next((_item(item) for item in found.values()), None)

    def _found(self, op: SearchOp, queries: Mapping[str, Query], guard: Guard) -> Operation[list[SearchItem]]:
        tenant, where = self.tenant, _range_of(op)
        condition = guard(condition_of(op.filter, "i.value"))
        limit, offset = check_count(op.limit, "limit"), check_count(op.offset, "offset")
        hits: Sequence[MemoryHit]
        if op.query and self.embeddings is not None:
            wanted = limit + offset if limit else 0
            found: Hits = yield from self.nearest.nearest(tenant, where, queries[op.query], condition, wanted)
            hits = found[offset : offset + limit]
        elif op.query:
            hits = yield from self.reading.words(tenant, where, condition, op.query, limit, offset)
        else:
            hits = yield from self.reading.newest(tenant, where, condition, limit, offset)
        expiring = [hit.item for hit in hits if hit.item.expires_at is not None]
        if op.refresh_ttl and expiring and self.reading.config.reads != "inspect":
            keys = [(path_of(item.namespace), encoded_key(item.key)) for item in expiring]
            yield Batch(self.sql.writing.refresh(tenant, keys), atomic=False)
        return [_search_item(hit) for hit in hits]

    def _listed(self, op: ListNamespacesOp) -> Operation[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        if unknown := [condition.match_type for condition in conditions if condition.match_type not in _MATCHES]:
            raise InvalidInput(f"Unknown match type {unknown[0]!r}. Known: {', '.join(_MATCHES)}.")
        return (
            yield from self.reading.list_namespaces(
                self.tenant,
                [condition.path for condition in conditions if condition.match_type == "prefix"],
                [condition.path for condition in conditions if condition.match_type == "suffix"],
                None if op.max_depth is None else check_count(op.max_depth, "max_depth", 1),
                check_count(op.limit, "limit"),
                check_count(op.offset, "offset"),
            )
        )

    def _put_of(self, op: PutOp) -> Put:
        if not isinstance(op.value, Mapping):
            raise InvalidInput(f"The value of an item must be a dict, not {type(op.value).__name__}.")
        value = dict(op.value)
        expiry = ttl_s(op.ttl)
        named = None if op.index is None or op.index is False else check_paths(op.index)
        if self.index is None or op.index is False:
            return Put(op.namespace, op.key, value, ttl_s=expiry, index=False)
        paths = self._paths if named is None else named
        texts = [text for path in paths for text in get_text_at_path(value, path) if text]
        return Put(op.namespace, op.key, value, ttl_s=expiry, texts=texts)

    def _key_of(self, op: GetOp | PutOp) -> ItemKey:
        return path_of(op.namespace), encoded_key(op.key)


def _range_of(op: SearchOp) -> Range:
    return Range(path_of(op.namespace_prefix, empty=True, what="Namespace prefix"))


_MATCHES = ("prefix", "suffix")


def _item(item: MemoryItem) -> Item:
    return Item(
        value=item.value,
        key=item.key,
        namespace=item.namespace,
        created_at=item.created_at,
        updated_at=item.updated_at,
    )


def _search_item(hit: MemoryHit) -> SearchItem:
    item = hit.item
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, hit.score)
