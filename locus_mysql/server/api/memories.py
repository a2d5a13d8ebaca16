"""Long-term memory: items under keys in namespaces, found by key, by field and by word."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.memories.puts import STORE_TTL, Put
from ...families.memories.records import Hits, MemoryItem
from ..answers import answer
from ..problems import not_found
from ..routing import Endpoint
from ..services import services_of, tenant_of
from .families import check_kept, is_there
from .models import (
    Answer,
    Body,
    Deleted,
    Gone,
    Json,
    Limit,
    Metadata,
    Offset,
    Query,
    Time,
)

FAMILY: Final = "memories"

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
        description="Labels, together 1,000 bytes of UTF-8 with one more for each. In a URL: one namespace= each.",
    ),
]
_PREFIX = Annotated[
    list[_LABEL], Field(max_length=500, description="The first labels; none stands for all namespaces.")
]

#: Items in one batch.
BATCH_LIMIT = 1_000

#: Words and filters of a larger body take long to be prepared for the database.
SMALL_BYTES = 16_384


class ItemQuery(Query):
    """Which item."""

    namespace: _NAMESPACE
    key: _KEY


class ItemKey(Body):
    """Which item."""

    namespace: _NAMESPACE
    key: _KEY


class NewItem(Body):
    """An item to write, in the place of what is under the key."""

    namespace: _NAMESPACE
    key: _KEY
    value: Json
    metadata: Metadata | None = None
    ttl_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=3_155_760_000,
            description="It expires after so many seconds; null: never. Left out: as the service is set up.",
        ),
    ] = None
    if_version: Annotated[
        int | None,
        Field(ge=0, le=2**31, description="Write only if the item has this version; 0: only if there is none."),
    ] = None
    text: Annotated[str | None, Field(description="What is searched by word; left out, all texts in the value.")] = None

    def put(self) -> Put:
        """As the store takes it."""
        ttl_s = self.ttl_s if "ttl_s" in self.model_fields_set else STORE_TTL
        return Put(
            self.namespace, self.key, self.value, self.metadata, ttl_s, if_version=self.if_version, text=self.text
        )


class Version(Answer):
    """Which version the item has now."""

    version: Annotated[int, Field(ge=1, description="1 for a new item, one more with each write.")]


class Item(Answer):
    """What is kept under a key."""

    namespace: list[str]
    key: str
    value: Json
    metadata: Metadata
    version: Annotated[int, Field(ge=1)]
    created_at: Time
    updated_at: Time
    expires_at: Annotated[Time | None, Field(description="From when on it is no longer there; null for never.")]


class Batch(Body):
    """Items to write and to delete, all or none. What is both is deleted; of several with one key the last counts."""

    items: Annotated[list[NewItem], Field(max_length=BATCH_LIMIT)] = Field(default_factory=list)
    deleted: Annotated[list[ItemKey], Field(max_length=BATCH_LIMIT)] = Field(default_factory=list)


class KeysQuery(Query):
    """Which keys to list."""

    namespace: _NAMESPACE
    limit: Limit = 100
    offset: Offset = 0


class ItemKeys(Answer):
    """Keys, in the order of their code points."""

    keys: list[str]


class NamespacesQuery(Query):
    """Which namespaces to list."""

    prefix: Annotated[
        list[_LABEL], Field(max_length=500, description="The first labels; * stands for any one label.")
    ] = Field(default_factory=list)
    suffix: Annotated[list[_LABEL], Field(max_length=500, description="The last labels; likewise.")] = Field(
        default_factory=list
    )
    max_depth: Annotated[
        int | None, Field(ge=1, le=1_000, description="Cut to so many labels; each is then listed once.")
    ] = None
    limit: Limit = 100
    offset: Offset = 0


class Namespaces(Answer):
    """Namespaces with items in them, in the order of their labels."""

    namespaces: list[list[str]]


class Search(Body):
    """What to look for."""

    namespace_prefix: _PREFIX = Field(default_factory=list)
    query: Annotated[
        str | None, Field(max_length=4_096, description="Words, and phrases in double quotes; left out: newest first.")
    ] = None
    filter: Annotated[
        dict[str, Any] | None,
        Field(
            description='What the value must fulfil: {"kind": "fact", "age": {"$gte": 3}}, with $eq $ne $gt $gte $lt '
            "$lte $in $exists."
        ),
    ] = None
    metadata_filter: Annotated[dict[str, Any] | None, Field(description="The same of the metadata.")] = None
    limit: Limit = 10
    offset: Offset = 0
    only_here: Annotated[bool, Field(description="Leave out the namespaces below.")] = False


class Hit(Answer):
    """An item that was found."""

    item: Item
    score: Annotated[float | None, Field(description="The share of the words that it holds; null without a query.")]


class FoundItems(Answer):
    """Hits, best first."""

    hits: list[Hit]


async def put_item(request: Request) -> Response:
    """Write an item."""
    new: NewItem = request.state.body
    memories = services_of(request).memories(tenant_of(request))
    await check_kept(request, FAMILY)
    put = new.put()
    version = await memories.put(
        put.namespace,
        put.key,
        put.value,
        metadata=put.metadata,
        ttl_s=put.ttl_s,
        if_version=put.if_version,
        text=put.text,
    )
    return answer({"version": version})


async def get_item(request: Request) -> Response:
    """The item under a key."""
    asked: ItemQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    item = await memories.get_item(asked.namespace, asked.key) if await is_there(request, FAMILY) else None
    if item is None:
        raise not_found("item")
    return answer(_item(item))


async def delete_item(request: Request) -> Response:
    """Delete an item."""
    asked: ItemQuery = request.state.query
    memories = services_of(request).memories(tenant_of(request))
    if not (await is_there(request, FAMILY) and await memories.delete(asked.namespace, asked.key)):
        raise not_found("item")
    return answer({"deleted": True})


async def write_batch(request: Request) -> Response:
    """Write and delete items, all or none."""
    wanted: Batch = request.state.body
    memories = services_of(request).memories(tenant_of(request))
    await check_kept(request, FAMILY)
    gone = [(one.namespace, one.key) for one in wanted.deleted]
    return answer({"deleted": await memories.write_batch([item.put() for item in wanted.items], gone)})


async def list_keys(request: Request) -> Response:
    """The keys of a namespace."""
    asked: KeysQuery = request.state.query
    if not await is_there(request, FAMILY):
        return answer({"keys": []})
    memories = services_of(request).memories(tenant_of(request))
    return answer({"keys": await memories.list_keys(asked.namespace, asked.limit, asked.offset)})


async def list_namespaces(request: Request) -> Response:
    """The namespaces that hold items."""
    asked: NamespacesQuery = request.state.query
    if not await is_there(request, FAMILY):
        return answer({"namespaces": []})
    memories = services_of(request).memories(tenant_of(request))
    found = await memories.list_namespaces(
        asked.prefix, suffix=asked.suffix, max_depth=asked.max_depth, limit=asked.limit, offset=asked.offset
    )
    return answer({"namespaces": found})


async def search(request: Request) -> Response:
    """Find items by field and by word."""
    asked: Search = request.state.body
    if not await is_there(request, FAMILY):
        return answer({"hits": []})
    memories = services_of(request).memories(tenant_of(request))
    hits: Hits = await memories.search(
        asked.namespace_prefix,
        query=asked.query,
        filter=asked.filter,
        metadata_filter=asked.metadata_filter,
        limit=asked.limit,
        offset=asked.offset,
        only_here=asked.only_here,
    )
    return answer({"hits": [{"item": _item(hit.item), "score": hit.score} for hit in hits]})


def _item(item: MemoryItem) -> dict[str, Any]:
    return {
        "namespace": item.namespace,
        "key": item.key,
        "value": item.value,
        "metadata": item.metadata,
        "version": item.version,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "expires_at": item.expires_at,
    }


ENDPOINTS = (
    Endpoint("GET", "/memories/item", get_item, summary="Get an item", query=ItemQuery, answer=Item),
    Endpoint(
        "PUT",
        "/memories/item",
        put_item,
        access="write",
        summary="Write an item",
        body=NewItem,
        answer=Version,
        small_bytes=SMALL_BYTES,
    ),
    Endpoint(
        "DELETE",
        "/memories/item",
        delete_item,
        access="write",
        summary="Delete an item",
        query=ItemQuery,
        answer=Gone,
    ),
    Endpoint(
        "POST",
        "/memories/batch",
        write_batch,
        access="write",
        summary="Write and delete items, all or none",
        body=Batch,
        answer=Deleted,
        small_bytes=SMALL_BYTES,
    ),
    Endpoint("GET", "/memories/keys", list_keys, summary="List a namespace's keys", query=KeysQuery, answer=ItemKeys),
    Endpoint(
        "GET",
        "/memories/namespaces",
        list_namespaces,
        summary="List namespaces",
        query=NamespacesQuery,
        answer=Namespaces,
    ),
    Endpoint(
        "POST",
        "/memories/search",
        search,
        summary="Find items",
        body=Search,
        answer=FoundItems,
        small_bytes=SMALL_BYTES,
    ),
)
