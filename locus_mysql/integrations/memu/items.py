"""The operations of memU's repositories of items, of categories, and of relations between both."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias, cast

from ...dialect.statement import Param
from ...engine.operation import Duplicate, Operation, Outdated
from ...errors import InvalidInput, NotFound
from ...families.memories.arguments import encode_value
from ...runtime.arguments import check_limit, check_text
from . import statements
from .operations import MemuStore, RecordOperations, Where, text_of
from .records import CategoryItem, MemoryCategory, MemoryItem, content_hash, decode_embedding, encode_embedding
from .searching import SearchingOperations, query_of
from .statements import Condition, equals

Ranking: TypeAlias = Literal["similarity", "salience"]

#: The keys of ``extra`` in which memU stores a tool's calls.
TOOL_KEYS = ("when_to_use", "metadata", "tool_calls")

#: The number of characters of a ``ref_id`` that are indexed.
REF_INDEXED = 128

_HASH = re.compile("[0-9a-f]{16}")


class ItemOperations(RecordOperations[MemoryItem]):
    """Operations on items: the memories themselves."""

    role, noun, record = "items", "Item", MemoryItem
    view: ClassVar[str] = "items"

    def __init__(self, store: MemuStore) -> None:
        super().__init__(store)
        self._searching = SearchingOperations(self.records, self.seals, store)

    def get_item(self, item_id: str) -> Operation[MemoryItem | None]:
        """Return an item; None if there is none."""
        return (yield from self.one(item_id))

    def create_item(
        self,
        *,
        resource_id: str | None = None,
        memory_type: str,
        summary: str,
        embedding: list[float] | None,
        user_data: dict[str, Any],
        reinforce: bool = False,
        tool_record: dict[str, Any] | None = None,
    ) -> Operation[MemoryItem]:
        """Store an item, or reinforce an existing one. One round trip.

        Args:
            resource_id: The id of the resource that the item comes from.
            memory_type: ``profile``, ``event``, ``knowledge``, ``behavior``, ``skill`` or ``tool``; or another one, of
                at most 32 characters.
            summary: The text of the item.
            embedding: The embedding of the summary.
            user_data: The item's scope.
            reinforce: If the scope has an item with the same type and summary (ignoring case and white space) that was
                also stored with ``reinforce``, raise its ``extra.reinforcement_count`` by one instead. Concurrent calls
                count each reinforcement once. Ignored for tools.
            tool_record: ``when_to_use``, ``metadata`` and ``tool_calls``, stored in ``extra``.

        Raises:
            NotFound: There is no such resource; a KeyError too.
            InvalidInput: A value is too long or not JSON, or the user model does not allow the scope.
        """
        raw = encode_embedding(embedding)
        data = dict(user_data) if isinstance(user_data, Mapping) else user_data
        extra = dict(data.pop("extra", None) or {}) if isinstance(data, dict) else {}
        scope = self.store.scope.params(data)
        kind, text = cast(str, text_of("memory_type", memory_type)), cast(str, text_of("summary", summary))
        once = reinforce and memory_type != "tool"
        hash = content_hash(text, kind) if once else None
        extra |= {"content_hash": hash, "reinforcement_count": 1} if once else _tool_fields(tool_record)
        columns = self.new(
            scope,
            resource_id=None if resource_id is None else check_text(resource_id, "resource_id"),
            memory_type=kind,
            summary=text,
            happened_at=None,
            extra=encode_extra(extra),
            embedding=raw,
            locus_scope=self.store.scope.key(self.store.tenant, scope),
            locus_hash=hash,
            **vector_columns(raw),
        )
        if once:
            stored = equals(locus_scope=columns["locus_scope"], locus_hash=hash)
            iso = statements.ISO_FORMAT
            insert = self.records.insert(columns, statements.REINFORCE, statements.REINFORCED, iso=iso)
        else:
            insert, stored = self.records.insert(columns), equals(id=columns["id"])
        guard = () if resource_id is None else self.records.make(statements.GUARD_RESOURCE, id=resource_id)
        try:
            rows = yield from self.store.write(guard, insert, read=self.records.make(statements.LIST, stored))
        except Outdated:
            raise NotFound(f"Resource with id {resource_id} not found") from None
        return self.read(rows[0]) if rows else self.deleted(columns, embedding=decode_embedding(raw), extra=extra)

    def update_item(
        self,
        *,
        item_id: str,
        memory_type: str | None = None,
        summary: str | None = None,
        embedding: list[float] | None = None,
        extra: dict[str, Any] | None = None,
        tool_record: dict[str, Any] | None = None,
    ) -> Operation[MemoryItem]:
        """Change the given fields of an item. One round trip.

        Args:
            item_id: The item's id.
            memory_type: The type, of at most 32 characters.
            summary: The text of the item.
            embedding: The embedding of the summary.
            extra: Keys to set in ``extra``; its other keys stay, also if another process changes them at the same time.
            tool_record: ``when_to_use``, ``metadata`` and ``tool_calls``, also set in ``extra``.

        Raises:
            NotFound: There is no such item; a KeyError too.
            InvalidInput: A value is too long or not JSON.
        """
        id = check_text(item_id, "item_id")
        if extra is not None and not isinstance(extra, Mapping):
            raise InvalidInput(f"extra must be a dict, not {type(extra).__name__}.")
        merged = {**(extra or {}), **_tool_fields(tool_record)}
        encode_extra(merged)
        raw = encode_embedding(embedding)
        given: dict[str, Param] = {
            "memory_type": text_of("memory_type", memory_type, optional=True),
            "summary": text_of("summary", summary, optional=True),
            "embedding": raw,
            **vector_columns(raw),
        }
        columns: dict[str, Param] = {column: value for column, value in given.items() if value is not None}
        if "content_hash" in merged:
            columns["locus_hash"] = hash_of(merged)
        texts = {name: encode_value(value, "extra") for name, value in merged.items()}
        try:
            return (yield from self.change(id, columns, merged, texts))
        except Duplicate:  # another item of the scope has this hash, so this item has it only in its extra
            return (yield from self.change(id, {**columns, "locus_hash": None}, merged, texts))

    def delete_item(self, item_id: str) -> Operation[None]:
        """Delete an item with its relations, if it exists. One round trip."""
        yield from self.delete("item_id", item_id)

    def list_items_by_ref_ids(self, ref_ids: list[str], where: Where = None) -> Operation[dict[str, MemoryItem]]:
        """Return the items whose ``extra.ref_id`` is one of these, by id, oldest first.

        Args:
            ref_ids: The values of ``extra.ref_id``.
            where: See `RecordOperations.conditions`.
        """
        conditions = self.conditions(where)
        wanted = {cast(str, text_of("ref_id", ref_id)) for ref_id in ref_ids if ref_id}
        if not wanted:
            return {}
        referred = Condition("locus_ref", tuple(sorted({ref_id[:REF_INDEXED] for ref_id in wanted})))
        found = yield from self.find((referred, *conditions))
        return {item.id: item for item in found if _text_or_none(item.extra.get("ref_id")) in wanted}

    def vector_search_items(
        self,
        query_vec: list[float],
        top_k: int,
        where: Where = None,
        *,
        ranking: Ranking = "similarity",
        recency_decay_days: float = 30.0,
    ) -> Operation[list[tuple[str, float]]]:
        """Return the ids of the items nearest to a query, with their scores, best first. The search is exact.

        Only items with an embedding of the query's width are compared. The first search of a scope reads its
        embeddings; later ones read those that any process has changed since.

        Args:
            query_vec: An embedding.
            top_k: The maximum number of items to return.
            where: See `RecordOperations.conditions`.
            ranking: ``similarity``: the cosine. ``salience``: the cosine, times ln(reinforcement_count + 1), times
                exp(-0.693 · days since last_reinforced_at / recency_decay_days), by the server's clock.
            recency_decay_days: The number of days after which an item that was not reinforced counts about half.

        Raises:
            InvalidInput: The query is not an embedding, or the ranking is unknown.
        """
        wanted = check_limit(top_k, "top_k")
        conditions = self.conditions(where)
        query = query_of(query_vec)
        if ranking not in {"similarity", "salience"}:
            raise InvalidInput(f"ranking must be 'similarity' or 'salience', not {ranking!r:.50}.")
        number = isinstance(recency_decay_days, int | float) and not isinstance(recency_decay_days, bool)
        if not number or not recency_decay_days > 0:
            raise InvalidInput(f"recency_decay_days must be a number above 0, not {recency_decay_days!r:.50}.")
        if query is None or not wanted:
            return []
        days = None if ranking == "similarity" else recency_decay_days
        return (yield from self._searching.nearest(query, conditions, wanted, days))


class CategoryOperations(RecordOperations[MemoryCategory]):
    """Operations on categories. A scope has one category of each name; ``N`` and ``n`` are two names."""

    role, noun, record = "categories", "Category", MemoryCategory
    view: ClassVar[str] = "categories"

    def get_or_create_category(
        self, *, name: str, description: str, embedding: list[float], user_data: dict[str, Any]
    ) -> Operation[MemoryCategory]:
        """Return the category of this name and scope; create it if there is none. One round trip.

        Concurrent calls of several processes create one category. An existing category gets the embedding or the
        description only if it has none.

        Args:
            name: The name, of at most 255 characters.
            description: A description of the items that belong to the category.
            embedding: The embedding of name and description.
            user_data: The category's scope.

        Raises:
            InvalidInput: The name is too long, or the user model does not allow the scope.
        """
        return (yield from self.complete(user_data, embedding, name=name, description=description, summary=None))

    def update_category(
        self,
        *,
        category_id: str,
        name: str | None = None,
        description: str | None = None,
        embedding: list[float] | None = None,
        summary: str | None = None,
    ) -> Operation[MemoryCategory]:
        """Change the given fields of a category. One round trip.

        Args:
            category_id: The category's id.
            name: The new name, of at most 255 characters.
            description: A description of the items that belong to the category.
            embedding: The embedding of name and description.
            summary: A summary of the category's items.

        Raises:
            NotFound: There is no such category; a KeyError too.
            InvalidInput: The scope has another category with this name.
        """
        return (
            yield from self.change_unless_taken(
                check_text(category_id, "category_id"),
                f"The scope has another category named {name!r}",
                name=name,
                description=description,
                embedding=embedding,
                summary=summary,
            )
        )


class RelationOperations(RecordOperations[CategoryItem]):
    """Operations on relations: which items belong to which categories.

    Deleting an item or a category deletes its relations.
    """

    role, noun, record = "links", "Relation", CategoryItem
    view: ClassVar[str] = "relations"
    is_listed, is_cleared = True, False

    def link_item_category(self, item_id: str, cat_id: str, user_data: dict[str, Any]) -> Operation[CategoryItem]:
        """Add an item to a category; an existing relation stays as it is. One round trip.

        Args:
            item_id: The item's id.
            cat_id: The category's id.
            user_data: The relation's scope.

        Raises:
            NotFound: There is no such item or no such category; a KeyError too.
            InvalidInput: The user model does not allow the scope.
        """
        both = {"item_id": check_text(item_id, "item_id"), "category_id": check_text(cat_id, "cat_id")}
        columns = self.new(self.store.scope.params(user_data), **both)
        link = self.records.insert(columns, declared=statements.LINK)
        rows = yield from self.store.write(link, read=self.records.make(statements.LIST, equals(**both)))
        if not rows:
            raise NotFound(f"Item with id {item_id} or category with id {cat_id} not found")
        return self.read(rows[0])

    def unlink_item_category(self, item_id: str, cat_id: str) -> Operation[None]:
        """Remove an item from a category, if it belongs to it. One round trip."""
        item, category = check_text(item_id, "item_id"), check_text(cat_id, "cat_id")
        yield from self.store.write(self.records.make(statements.UNLINK, item_id=item, category_id=category))

    def get_item_categories(self, item_id: str) -> Operation[list[CategoryItem]]:
        """Return the relations of an item, oldest first."""
        return (yield from self.find(equals(item_id=check_text(item_id, "item_id"))))


#: The maximum length of a key in a JSON column, in bytes.
KEY_LIMIT_BYTES = 65_535


def encode_extra(extra: Mapping[str, Any]) -> str:
    """Return ``extra`` as the JSON text to store.

    Raises:
        InvalidInput: JSON cannot hold it, or MySQL's JSON type cannot hold it exactly.
    """
    if not isinstance(extra, dict):
        raise InvalidInput(f"extra must be a dict, not {type(extra).__name__}.")
    text = encode_value(extra, "extra")
    pending: list[Any] = [extra]
    while pending:
        part = pending.pop()
        if isinstance(part, dict | list):
            pending.extend(part.values() if isinstance(part, dict) else part)
            if isinstance(part, dict) and any(len(name.encode()) > KEY_LIMIT_BYTES for name in part):
                raise InvalidInput(f"extra holds a key of more than {KEY_LIMIT_BYTES} bytes; shorten it.")
        elif isinstance(part, int) and not -(2**63) <= part < 2**64:
            raise InvalidInput("extra holds a whole number of more than 64 bits; store it as text.")
    return text


def hash_of(extra: Mapping[str, Any]) -> str | None:
    """Return the content hash in ``extra``, if it has a valid one."""
    found = extra.get("content_hash")
    return found if isinstance(found, str) and _HASH.fullmatch(found) else None


def vector_columns(raw: bytes | None) -> dict[str, Param]:
    """Return the columns with the width of an embedding and its random mark."""
    if raw is None:
        return {"locus_dims": None, "locus_mark": None}
    return {"locus_dims": len(raw) // 4, "locus_mark": int.from_bytes(os.urandom(7))}


def _tool_fields(tool_record: object) -> dict[str, Any]:
    if not tool_record:
        return {}
    if not isinstance(tool_record, Mapping):
        raise InvalidInput(f"tool_record must be a dict, not {type(tool_record).__name__}.")
    return {name: tool_record[name] for name in TOOL_KEYS if tool_record.get(name) is not None}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
