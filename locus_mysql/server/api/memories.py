"""Endpoints of long-term memory: items under keys in namespaces, found by key, by field, by word and by meaning."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.memories.family import MEMORIES
from ...families.memories.puts import STORE_TTL, Put
from ...families.memories.records import Hits
from ...families.memories.vectors.coding import DIMENSIONS_LIMIT
from ..bodies import answer
from ..problems import not_found
from ..routing import Endpoints
from ..services import services_of, tenant_of
from .models import (
    Answer,
    Body,
    Deleted,
    Gone,
    Json,
    Limit,
    Metadata,
    Offset,
    QueryParameters,
    Time,
    fields_of,
)

_LABEL = Annotated[str, Field(min_length=1, max_length=999, pattern=r"^[^\u0000]+$")]
_KEY = Annotated[
    str,
    Field(
        min_length=1, max_length=1_000, pattern=r"^[^\u0000]+$", description="1 to 1,000 bytes of UTF-8 without NUL."
    ),
]
_NAMESPACE = Annotated[
    list[_LABEL],
    Field(
        min_length=1,
        max_length=500,
        description="The labels of a namespace; their UTF-8 bytes plus one for each label are at most 1,000. In a "
        "URL, give namespace= once for each label.",
    ),
]
_EMBEDDING = Annotated[list[float], Field(min_length=1, max_length=DIMENSIONS_LIMIT)]
_PREFIX = Annotated[
    list[_LABEL],
    Field(max_length=500, description="The first labels of the namespaces; without any, all namespaces match."),
]

#: Number of items in a batch.
BATCH_LIMIT = 1_000


class ItemQuery(QueryParameters):
    """Which item."""

    namespace: _NAMESPACE
    key: _KEY


class ItemKey(Body):
    """Which item."""

    namespace: _NAMESPACE
    key: _KEY


class NewItem(Body):
    """An item to write; replaces the item under its key."""

    namespace: _NAMESPACE
    key: _KEY
    value: Json
    metadata: Metadata | None = None
    ttl_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=3_155_760_000,
            description="Seconds until the item expires; null: never. If left out, the service's setting applies.",
        ),
    ] = None
    if_version: Annotated[
        int | None,
        Field(
            ge=0, le=2**31, description="Write only if the item has this version; 0: only if the item does not exist."
        ),
    ] = None
    text: Annotated[
        str | None, Field(description="The texts that searches by word find; if left out, all texts in the value.")
    ] = None

    embeddings: Annotated[
        list[_EMBEDDING],
        Field(
            max_length=64,
            description="Embeddings of the item, of the width that the service was started with (--dims); searches by "
            "meaning count the nearest.",
        ),
    ] = Field(default_factory=list)

    def put(self) -> Put:
        """Return the item in the form of the store."""
        return Put(
            self.namespace,
            self.key,
            self.value,
            self.metadata,
            self.ttl_s if "ttl_s" in self.model_fields_set else STORE_TTL,
            if_version=self.if_version,
            text=self.text,
            embeddings=self.embeddings,
            index=False,
        )


class Version(Answer):
    """The new version of the item."""

    version: Annotated[int, Field(ge=1, description="1 for a new item; each write adds one.")]


class Item(Answer):
    """A stored item."""

    namespace: list[str]
    key: str
    value: Json
    metadata: Metadata
    version: Annotated[int, Field(ge=1)]
    created_at: Time
    updated_at: Time
    expires_at: Annotated[Time | None, Field(description="When the item expires; null for never.")]


class Batch(Body):
    """Items to write and to delete, all or none. Deletes win over writes; of two writes to one key the last wins."""

    items: Annotated[list[NewItem], Field(max_length=BATCH_LIMIT)] = Field(default_factory=list)
    deleted: Annotated[list[ItemKey], Field(max_length=BATCH_LIMIT)] = Field(default_factory=list)


class KeysQuery(QueryParameters):
    """The query of a list of keys."""

    namespace: _NAMESPACE
    limit: Limit = 100
    offset: Offset = 0


class ItemKeys(Answer):
    """Keys, in the order of their code points."""

    keys: list[str]


class NamespacesQuery(QueryParameters):
    """The query of a list of namespaces."""

    prefix: Annotated[
        list[_LABEL], Field(max_length=500, description="The first labels; * stands for any one label.")
    ] = Field(default_factory=list)
    suffix: Annotated[
        list[_LABEL], Field(max_length=500, description="The last labels; * stands for any one label.")
    ] = Field(default_factory=list)
    max_depth: Annotated[
        int | None,
        Field(ge=1, le=1_000, description="Truncate the namespaces to this many labels, and list each result once."),
    ] = None
    limit: Limit = 100
    offset: Offset = 0


class Namespaces(Answer):
    """Namespaces that contain items, in the order of their labels."""

    namespaces: list[list[str]]


class Search(Body):
    """The conditions of a search."""

    namespace_prefix: _PREFIX = Field(default_factory=list)
    query: Annotated[
        str | None,
        Field(
            max_length=4_096,
            description="Words, and phrases in double quotes. Without query and embedding, items are listed newest "
            "first.",
        ),
    ] = None
    embedding: Annotated[
        _EMBEDDING | None,
        Field(description="Search by meaning: the embedding of a text; together with a query, by both."),
    ] = None
    filter: Annotated[
        dict[str, Any] | None,
        Field(
            description='A condition on the value: {"kind": "fact", "age": {"$gte": 3}}, with $eq $ne $gt $gte $lt '
            "$lte $in $exists."
        ),
    ] = None
    metadata_filter: Annotated[
        dict[str, Any] | None, Field(description="A condition on the metadata, of the same form.")
    ] = None
    limit: Limit = 10
    offset: Offset = 0
    only_here: Annotated[bool, Field(description="Search only this namespace, not those below it.")] = False


class Hit(Answer):
    """A found item with its score."""

    item: Item
    score: Annotated[
        float | None,
        Field(
            description="By word, the fraction of the query's words that the item contains; by meaning, the cosine; by "
            "both, the sum of both ranks. Null without a query and an embedding."
        ),
    ]


class FoundItems(Answer):
    """Hits, best first."""

    hits: list[Hit]


ENDPOINTS = Endpoints(MEMORIES)


@ENDPOINTS.add("PUT", "/memories/item", body=NewItem, answer=Version)
def put_item(request: Request) -> Response:
    """Write an item."""
    new: NewItem = request.state.body
    memories = services_of(request).memories(tenant_of(request))
    put = new.put()
    version = memories.put(
        put.namespace,
        put.key,
        put.value,
        metadata=put.metadata,
        ttl_s=put.ttl_s,
        if_version=put.if_version,
        text=put.text,
        embeddings=put.embeddings,
        index=False,
    )
    return answer({"version": version})


@ENDPOINTS.add("GET", "/memories/item", query=ItemQuery, answer=Item, without_tables="item")
def get_item(request: Request) -> Response:
    """Get an item."""
    asked: ItemQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    item = memories.get_item(asked.namespace, asked.key)
    if item is None:
        raise not_found("item")
    return answer(fields_of(Item, item))


@ENDPOINTS.add("DELETE", "/memories/item", query=ItemQuery, answer=Gone, without_tables="item")
def delete_item(request: Request) -> Response:
    """Delete an item."""
    asked: ItemQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    if not memories.delete(asked.namespace, asked.key):
        raise not_found("item")
    return answer({"deleted": True})


@ENDPOINTS.add("POST", "/memories/batch", body=Batch, answer=Deleted)
def write_batch(request: Request) -> Response:
    """Write and delete items, all or none."""
    wanted: Batch = request.state.body
    memories = services_of(request).memories(tenant_of(request))
    gone = [(one.namespace, one.key) for one in wanted.deleted]
    return answer({"deleted": memories.write_batch([item.put() for item in wanted.items], gone)})


@ENDPOINTS.add("GET", "/memories/keys", query=KeysQuery, answer=ItemKeys, without_tables={"keys": []})
def list_keys(request: Request) -> Response:
    """List a namespace's keys."""
    asked: KeysQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    return answer({"keys": memories.list_keys(asked.namespace, asked.limit, asked.offset)})


@ENDPOINTS.add(
    "GET", "/memories/namespaces", query=NamespacesQuery, answer=Namespaces, without_tables={"namespaces": []}
)
def list_namespaces(request: Request) -> Response:
    """List namespaces."""
    asked: NamespacesQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    found = memories.list_namespaces(
        asked.prefix, suffix=asked.suffix, max_depth=asked.max_depth, limit=asked.limit, offset=asked.offset
    )
    return answer({"namespaces": found})


@ENDPOINTS.add("POST", "/memories/search", access="read", body=Search, answer=FoundItems, without_tables={"hits": []})
def search(request: Request) -> Response:
    """Find items."""
    asked: Search = request.state.body
    memories = services_of(request).memories(tenant_of(request))
    hits: Hits = memories.search(
        asked.namespace_prefix,
        query=asked.query,
        embedding=asked.embedding,
        filter=asked.filter,
        metadata_filter=asked.metadata_filter,
        limit=asked.limit,
        offset=asked.offset,
        only_here=asked.only_here,
    )
    return answer({"hits": [{"item": fields_of(Item, hit.item), "score": hit.score} for hit in hits]})
