"""LangGraph's store operations: a batch of them in as few round trips as possible."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time
from typing import Any, cast
from uuid import UUID

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
from ...engine.operation import Batch, Operation, gather
from ...errors import InvalidInput
from ...families.memories.arguments import encoded_key, path_of
from ...families.memories.embedding import EmbeddingOptions, EmbedTexts, Procedure, name_of_model
from ...families.memories.nearest import NearestSearch
from ...families.memories.operations import MemoryOperations
from ...families.memories.puts import Put
from ...families.memories.reading import AdaptFilter
from ...families.memories.records import MemoryHit, MemoryItem
from ...families.memories.statements.filters import OPERATORS, ItemFilter, compile_filter
from ...families.memories.statements.tables import ItemKey, Range
from ...families.memories.vectors.coding import QueryVector
from ...runtime.arguments import check_limit, check_text
from .store_options import check_index, check_paths, check_ttl, ttl_s

#: A condition that no value fulfils.
_NOTHING: Mapping[str, Any] = {"$in": []}

#: A condition that exactly all numbers fulfil.
_ANY_NUMBER: Mapping[str, Any] = {"$gte": -sys.float_info.max}

_BELOW, _ABOVE = ("$lt", "$lte"), ("$gt", "$gte")


def as_json(value: Any) -> Any:
    """Return a value with lists for tuples and text for times, dates and UUIDs, as LangGraph's store in SQLite has it.

    Raises:
        InvalidInput: It contains itself, or is nested too deeply.
    """
    try:
        return _as_json(value)
    except RecursionError:
        raise InvalidInput("A value contains itself or is nested too deeply. Nothing was done.") from None


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(part) for part in value]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def finite(filter: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return an equivalent filter without infinities and NaN: stored numbers are all finite."""
    if not isinstance(filter, Mapping):
        return filter
    replaced: dict[str, Any] = {}
    for name, wanted in filter.items():
        if not isinstance(wanted, Mapping):
            replaced[name] = _NOTHING if _is_special(wanted) else wanted
        elif not any(isinstance(key, str) and key.startswith("$") for key in wanted):
            replaced[name] = finite(wanted)
        elif operators := _finite_operators(wanted):
            replaced[name] = operators
    return replaced


def _finite_operators(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Do the same for the operators on one field; return an empty dict if every value fulfils them."""
    replaced: dict[str, Any] = {}
    ordered = False
    for operator, operand in wanted.items():
        if operator == "$in" and isinstance(operand, list | tuple):
            replaced[operator] = [value for value in operand if not _is_special(value)]
        elif not _is_special(operand) or operator not in OPERATORS:
            replaced[operator] = operand
        elif (operator in _BELOW and operand == math.inf) or (operator in _ABOVE and operand == -math.inf):
            ordered = True
        elif operator != "$ne":
            return _NOTHING
    if ordered and not replaced.keys() & {*_BELOW, *_ABOVE}:
        replaced.update(_ANY_NUMBER)
    return replaced


def _is_special(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


class StoreOperations(MemoryOperations):
    """LangGraph's operations over items.

    Args:
        config: The options.
        index: The fields to embed, the function and the dimensions; None: a query ranks items by word.
        ttl: When items expire. LangGraph's base class copies it into each operation, so it is only checked here.

    Raises:
        ConfigError: One of them is not a dict, lacks a key, or has an unknown or wrong one.
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
        model = cast(Mapping[str, Any], index).get("model") or name_of_model(index["embed"])
        embed = self.embeddings.embed_documents
        options = EmbeddingOptions(index["dims"], embed, metric=metric, model=model)
        super().__init__(config, options)

    def batch(self, ops: Iterable[Op]) -> Procedure[list[Result]]:
        """Run operations: reads first, then the writes in one transaction.

        Returns:
            A result for each operation, in their order.

        Raises:
            InvalidNamespaceError: A label is empty, not text, or contains a period or NUL.
            InvalidInput: An argument cannot be stored exactly, or a filter is invalid.
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
        news = [self.encoder.encode(self._put_of(op), in_batch=True) for op in puts.values() if op.value is not None]
        results: list[Result] = [None] * len(ops)
        reading = [index for index, op in enumerate(ops) if not isinstance(op, PutOp)]
        if reading:
            queries = yield from self._queries(op for op in ops if isinstance(op, SearchOp))
            found = yield self._read_all([ops[index] for index in reading], queries)
            for index, result in zip(reading, found, strict=True):
                results[index] = result
        if puts:
            gone = [key for key, op in puts.items() if op.value is None]
            new = yield from self.encoder.embed(news)
            yield self.writing.write(self.tenant, new, gone)
        return results

    def sweep_all(self) -> Procedure[int]:
        """Delete all expired items of the tenant; return their number."""
        removed = 0
        while some := (yield from self.sweep(1_000)):
            removed += some
        return removed

    def setup(self) -> Procedure[None]:
        """Create missing tables."""
        yield _nothing()

    def _queries(self, ops: Iterable[SearchOp]) -> Procedure[dict[str, QueryVector]]:
        """The embeddings of all queries, each text embedded once."""
        texts = list(dict.fromkeys(op.query for op in ops if op.query))
        if not texts or self.embeddings is None:
            return {}
        made = yield EmbedTexts(texts, query=True)
        return {text: self.query_vector(vector) for text, vector in zip(texts, made, strict=True)}

    def _read_all(self, ops: Sequence[Op], queries: Mapping[str, QueryVector]) -> Operation[list[Any]]:
        def reading(adapt: AdaptFilter) -> Operation[list[Any]]:
            return gather([self._read(op, queries, adapt) for op in ops])

        return (yield from self.reading.excluding_invalid_json(reading))

    def _read(self, op: Op, queries: Mapping[str, QueryVector], adapt: AdaptFilter) -> Operation[Any]:
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, SearchOp):
            return self._search_items(op, queries, adapt)
        return self._list_namespaces(cast(ListNamespacesOp, op))

    def _get(self, op: GetOp) -> Operation[Item | None]:
        found = yield from self.reading.get(self.tenant, [self._key_of(op)], refresh=op.refresh_ttl)
        return next((_item(item) for item in found.values()), None)

    def _search_items(
        self, op: SearchOp, queries: Mapping[str, QueryVector], adapt: AdaptFilter
    ) -> Operation[list[SearchItem]]:
        limit, offset = check_limit(op.limit, "limit"), check_limit(op.offset, "offset")
        self.sealed.refuse_value_filter(op.filter)
        condition = adapt(compile_filter(finite(as_json(op.filter)), "i.value"))
        where = Range(path_of(op.namespace_prefix, empty=True, what="Namespace prefix"))
        if op.query:
            ranked = yield from self._rank(op.query, queries, where, condition, limit + offset if limit else 0)
            hits = ranked[offset : offset + limit]
        else:
            hits = yield from self.reading.newest(self.tenant, where, condition, limit, offset)
        expiring = [hit.item for hit in hits if hit.item.expires_at is not None]
        if op.refresh_ttl and expiring and not self.reading.config.read_only:
            keys = [(path_of(item.namespace), encoded_key(item.key)) for item in expiring]
            yield Batch(self.reading.refresh(self.tenant, keys), atomic=False)
        return [_search_item(hit) for hit in hits]

    def _rank(
        self, query: str, queries: Mapping[str, QueryVector], where: Range, condition: ItemFilter, limit: int
    ) -> Operation[Sequence[MemoryHit]]:
        """The best hits of a query; if fewer than the limit have a score, all others follow, newest first.

        A query orders items and excludes none, as in LangGraph's other stores. A further round trip if the others are
        needed.
        """
        hits: Sequence[MemoryHit]
        if self.embeddings is None:
            hits = yield from self.reading.words(self.tenant, where, condition, query, limit)
        else:
            search = NearestSearch(self.tenant, where, queries[query], condition, limit)
            hits = yield from self.nearest.nearest(search)
        if len(hits) >= limit:
            return hits
        newest = yield from self.reading.newest(self.tenant, where, condition, limit, 0)
        scored = {(hit.item.namespace, hit.item.key) for hit in hits}
        others = [hit for hit in newest if (hit.item.namespace, hit.item.key) not in scored]
        return [*hits, *others[: limit - len(hits)]]

    def _list_namespaces(self, op: ListNamespacesOp) -> Operation[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        if unknown := [condition.match_type for condition in conditions if condition.match_type not in _MATCHES]:
            raise InvalidInput(f"Unknown match type {unknown[0]!r}. Known: {', '.join(_MATCHES)}.")
        return (
            yield from self.reading.list_namespaces(
                self.tenant,
                [condition.path for condition in conditions if condition.match_type == "prefix"],
                [condition.path for condition in conditions if condition.match_type == "suffix"],
                None if op.max_depth is None else check_limit(op.max_depth, "max_depth", 1),
                check_limit(op.limit, "limit"),
                check_limit(op.offset, "offset"),
            )
        )

    def _put_of(self, op: PutOp) -> Put:
        if not isinstance(op.value, Mapping):
            raise InvalidInput(f"The value of an item must be a dict, not {type(op.value).__name__}.")
        value = as_json(dict(op.value))
        expiry = ttl_s(op.ttl)
        named = None if op.index is None or op.index is False else check_paths(op.index)
        if op.index is False:
            return Put(op.namespace, op.key, value, ttl_s=expiry, index=False)
        index = True if named is None else named
        return Put(op.namespace, op.key, value, ttl_s=expiry, index=index, texts=self._texts(value, named))

    def stored_texts(self, value: Any, text: str | None, index: bool | Sequence[str]) -> list[str]:
        """See `MemoryOperations.stored_texts`."""
        return self._texts(value, None if isinstance(index, bool) else index)

    def _texts(self, value: Any, named: Sequence[str] | None) -> list[str]:
        """Return the texts to embed, which LangGraph finds in its own way."""
        if self.embeddings is None:
            return []
        paths = self._paths if named is None else named
        return [text for path in paths for text in get_text_at_path(value, path) if text]

    def _key_of(self, op: GetOp | PutOp) -> ItemKey:
        return path_of(op.namespace), encoded_key(op.key)


def _nothing() -> Operation[None]:
    """Do nothing: the engine creates missing tables before it runs any operation."""
    return
    yield


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
