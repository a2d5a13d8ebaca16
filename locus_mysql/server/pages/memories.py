"""Pages of long-term memory: namespaces, items, and searches by word and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.memory_records import ItemHit, ItemRow, NamespaceRow
from ...families.inspection.records import Page
from ...families.memories.family import MEMORIES
from ...families.memories.searching import Way
from ..problems import not_found
from .common import inspector_of
from .markdown import Formatter
from .memory_texts import namespace_tree, text_of, text_of_preview
from .query_parameters import MemoriesQuery, MemoryQuery, as_labels, from_labels
from .rendering import page
from .tree import hits, tree

#: Characters of an item's text; its value below has the rest.
MOST_TEXT = 20_000

#: Number of namespaces, items and hits on a page.
MOST = 100

#: The ways to search, with their labels.
WAYS = {"word": "by word", "meaning": "by meaning", "hybrid": "both ways"}


def memories_page(request: Request) -> Response:
    """``GET /inspect/memories``: the namespaces and items in a namespace, or the hits of a search."""
    query: MemoriesQuery = request.state.query
    inspector = inspector_of(request)
    labels = as_labels(query.namespace)
    below: Page[NamespaceRow] = Page(())
    items: Page[ItemRow] = Page(())
    found: Sequence[ItemHit] | None = None
    existing = MEMORIES.name in inspector.families()
    if existing and query.q.strip():
        way = cast(Way, query.way) if query.way in WAYS else None
        found = inspector.search_memories(query.q, labels, limit=MOST, way=way)
    elif existing:
        below = inspector.namespaces(labels, limit=MOST, cursor=query.cursor or None)
        if labels:
            items = inspector.items(labels, limit=MOST, cursor=query.items or None)
    return page(
        request,
        "memories.html",
        section=MEMORIES.page.name,
        existing=existing,
        query=query,
        labels=labels,
        trail=[(label, from_labels(labels[: at + 1])) for at, label in enumerate(labels)],
        below=namespace_tree([row for row in below.items if row.namespace != labels], labels).below,
        more=below.cursor,
        items=items,
        found=found,
        ways=WAYS if inspector.embeds else {},
        from_labels=from_labels,
        text_of=text_of_preview,
    )


def memory_page(request: Request) -> Response:
    """``GET /inspect/memory``: an item."""
    query: MemoryQuery = request.state.query
    inspector = inspector_of(request)
    labels = as_labels(query.namespace)
    found = None
    if MEMORIES.name in inspector.families():
        found = inspector.item(labels, query.key)
    if found is None:
        raise not_found("item")
    root = tree(found.value, query.find)
    return page(
        request,
        "memory.html",
        section=MEMORIES.page.name,
        query=query,
        trail=[(label, from_labels(labels[: at + 1])) for at, label in enumerate(labels)],
        found=found,
        root=root,
        hits=hits(root) if query.find else 0,
        text=text_of(found.value)[:MOST_TEXT],
        formatted=Formatter(),
    )
