"""Endpoints of long-term memory: items under keys in namespaces, found by key, by field, by word and by meaning."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from ...families.memories.family import MEMORIES
from ...families.memories.puts import STORE_TTL, Put
from ...families.memories.vectors.coding import DIMENSIONS_LIMIT
from ..bodies import answer
from ..problems import existing
from ..routing import Endpoints
from ..services import stores_of
from .models import Answer, Body, Deleted, Gone, Json, Limit, Metadata, Offset, Time, answer_with, fields_of, gone

Label: TypeAlias = Annotated[str, Field(min_length=1, max_length=999, pattern=r"^[^\u0000]+$")]
Key: TypeAlias = Annotated[
    str,
    Field(
        min_length=1, max_length=1_000, pattern=r"^[^\u0000]+$", description="1 to 1,000 bytes of UTF-8 without NUL."
    ),
]
Namespace: TypeAlias = Annotated[
    list[Label],
    Field(
        min_length=1,
        max_length=500,
        description="The labels of a namespace; their UTF-8 bytes plus one for each label are at most 1,000. In a "
        "URL, give namespace= once for each label.",
    ),
]
Embedding: TypeAlias = Annotated[list[float], Field(min_length=1, max_length=DIMENSIONS_LIMIT)]

#: Number of items in a batch.
BATCH_LIMIT = 1_000


class ItemKey(Body):
    """Which item."""

    namespace: Namespace
    key: Key


class NewItem(Body):
    """An item to write; replaces the item under its key."""

    namespace: Namespace
    key: Key
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
        list[Embedding],
        Field(
            max_length=64,
            description="Embeddings of the item, of the width that the service was started with (--dims); searches by "
            "meaning count the nearest.",
        ),
    ] = Field(default_factory=list)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `Put`, and of `MemoryStore.put`."""
        ttl_s = self.ttl_s if "ttl_s" in self.model_fields_set else STORE_TTL
        return {**dict(self), "ttl_s": ttl_s, "index": False}


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


class Search(Body):
    """The conditions of a search."""

    namespace_prefix: Annotated[
        list[Label],
        Field(max_length=500, description="The first labels of the namespaces; without any, all namespaces match."),
    ] = Field(default_factory=list)
    query: Annotated[
        str | None,
        Field(
            max_length=4_096,
            description="Words, and phrases in double quotes. Without query and embedding, items are listed newest "
            "first.",
        ),
    ] = None
    embedding: Annotated[
        Embedding | None,
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


Version = answer_with(
    "Version",
    "The new version of the item.",
    version=Annotated[int, Field(ge=1, description="1 for a new item; each write adds one.")],
)
ItemKeys = answer_with("ItemKeys", "Keys, in the order of their code points.", keys=list[str])
Namespaces = answer_with(
    "Namespaces", "Namespaces that contain items, in the order of their labels.", namespaces=list[list[str]]
)
FoundItems = answer_with("FoundItems", "Hits, best first.", hits=list[Hit])

ENDPOINTS = Endpoints(MEMORIES)


@ENDPOINTS.add("PUT", "/memories/item", answer=Version)
def put_item(request: Request, body: NewItem) -> Response:
    """Write an item."""
    return answer({"version": stores_of(request).memories.put(**body.arguments())})


@ENDPOINTS.add("GET", "/memories/item", answer=Item, without_tables="item")
def get_item(request: Request, namespace: Namespace, key: Key) -> Response:
    """Get an item."""
    return answer(fields_of(Item, existing(stores_of(request).memories.get_item(namespace, key), "item")))


@ENDPOINTS.add("DELETE", "/memories/item", answer=Gone, without_tables="item")
def delete_item(request: Request, namespace: Namespace, key: Key) -> Response:
    """Delete an item."""
    return gone(stores_of(request).memories.delete(namespace, key), "item")


@ENDPOINTS.add("POST", "/memories/batch", answer=Deleted)
def write_batch(request: Request, body: Batch) -> Response:
    """Write and delete items, all or none."""
    deleted = [(one.namespace, one.key) for one in body.deleted]
    puts = [Put(**item.arguments()) for item in body.items]
    return answer({"deleted": stores_of(request).memories.write_batch(puts, deleted)})


@ENDPOINTS.add("GET", "/memories/keys", answer=ItemKeys, without_tables={"keys": []})
def list_keys(request: Request, namespace: Namespace, limit: Limit = 100, offset: Offset = 0) -> Response:
    """List a namespace's keys."""
    return answer({"keys": stores_of(request).memories.list_keys(namespace, limit, offset)})


@ENDPOINTS.add("GET", "/memories/namespaces", answer=Namespaces, without_tables={"namespaces": []})
def list_namespaces(
    request: Request,
    prefix: Annotated[
        list[Label],
        Field(default_factory=list, max_length=500, description="The first labels; * stands for any one label."),
    ],
    suffix: Annotated[
        list[Label],
        Field(default_factory=list, max_length=500, description="The last labels; * stands for any one label."),
    ],
    max_depth: Annotated[
        int | None,
        Field(ge=1, le=1_000, description="Truncate the namespaces to this many labels, and list each result once."),
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> Response:
    """List namespaces."""
    found = stores_of(request).memories.list_namespaces(
        prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset
    )
    return answer({"namespaces": found})


@ENDPOINTS.add("POST", "/memories/search", access="read", answer=FoundItems, without_tables={"hits": []})
def search(request: Request, body: Search) -> Response:
    """Find items."""
    hits = stores_of(request).memories.search(**dict(body))
    return answer({"hits": [{"item": fields_of(Item, hit.item), "score": hit.score} for hit in hits]})
