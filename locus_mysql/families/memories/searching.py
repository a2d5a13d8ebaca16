"""Searches by field, by word, by meaning, or by both: the caller's request, and the operations that execute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ...engine.operation import Operation, gather
from ...errors import InvalidInput
from ...runtime.arguments import check_limit, check_text
from .arguments import check_score
from .nearest import NearestOperations, NearestSearch
from .reading import ReadingOperations
from .records import Hits, MemoryHit, MemoryItem, Namespace
from .statements.filters import ItemFilter, compile_filter
from .statements.tables import Range
from .vectors.coding import QueryVector

#: Number of hits that each search returns for fusion, unless more are requested. For later ranks, only the best rank of
#: an item counts.
FUSED = 100

#: The constant k of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
_SOFTENING = 60

#: How a query is understood: as words, as a text with a meaning, or as both.
Way: TypeAlias = Literal["word", "meaning", "hybrid"]


def fuse(*results: Hits) -> Hits:
    """Join the hits of several searches, best first; equal ones by namespace and key.

    The score of an item is the sum of 1 / (60 + rank) over the searches that found it among their first `FUSED` hits,
    divided by the sum of an item that is first in all. For an item that is in none of these lists, only its best rank
    counts. So no score depends on the number of hits, and consecutive pages are consistent.
    """
    most = len(results) / (_SOFTENING + 1)
    scores: dict[tuple[Namespace, str], float] = {}
    deeper: dict[tuple[Namespace, str], int] = {}
    items: dict[tuple[Namespace, str], MemoryItem] = {}
    for hits in results:
        for rank, hit in enumerate(hits, 1):
            key = (hit.item.namespace, hit.item.key)
            items[key] = hit.item
            if rank <= FUSED:
                scores[key] = scores.get(key, 0.0) + 1 / (_SOFTENING + rank) / most
            else:
                deeper[key] = min(rank, deeper.get(key, rank))
    for key, rank in deeper.items():
        scores.setdefault(key, 1 / (_SOFTENING + rank) / most)
    ranked = sorted(scores, key=lambda key: (-scores[key], key))
    return Hits((MemoryHit(items[key], scores[key]) for key in ranked), exact=all(hits.exact for hits in results))


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The arguments of `MemoryStore.search`."""

    query: str | None
    embedding: Any
    filter: Mapping[str, Any] | None
    metadata_filter: Mapping[str, Any] | None
    limit: int
    offset: int
    min_score: float | None
    way: Way | None
    exact: bool

    @property
    def by_meaning(self) -> bool:
        """Return whether the search needs an embedding."""
        return self.way in ("meaning", "hybrid")

    @property
    def depth(self) -> int:
        """The number of hits to find: those to skip, and those to return."""
        return self.limit + self.offset if self.limit else 0

    @property
    def compiled_filter(self) -> ItemFilter:
        """Both filters, compiled.

        Raises:
            InvalidInput: A filter has an unknown operator or a wrong value.
        """
        one = compile_filter(self.filter, "i.value")
        other = compile_filter(self.metadata_filter, "COALESCE(i.metadata, '{}')")
        return ItemFilter(one.sql + other.sql, {**one.params, **other.params}, one.checks + other.checks)

    def checked(self, *, embeds: bool) -> SearchRequest:
        """Check the arguments and choose the kind of search; the result's ``way`` is None only for a search by fields.

        Args:
            embeds: Whether the store has an embed function.

        Raises:
            InvalidInput: An argument is wrong, or contradicts another.
        """
        check_limit(self.limit, "limit")
        check_limit(self.offset, "offset")
        check_score(self.min_score, "min_score")
        if self.query is not None:
            check_text(self.query, "The query")
        return replace(self, way=_way_of(self.query, self.embedding, self.way, embeds=embeds))


class SearchingOperations:
    """Answers searches.

    Args:
        reading: Finds items by field and by word.
        nearest: Finds items by meaning.
    """

    def __init__(self, reading: ReadingOperations, nearest: NearestOperations) -> None:
        self._reading = reading
        self._nearest = nearest

    def search(
        self,
        tenant: str,
        ranges: Sequence[Range],
        request: SearchRequest,
        filter: ItemFilter,
        vector: QueryVector | None,
    ) -> Operation[list[Hits]]:
        """Return the hits in each of several ranges, in the round trips of one search.

        Args:
            tenant: The tenant.
            ranges: The namespaces.
            request: The checked request.
            filter: Its compiled filter.
            vector: The embedding to compare with, for a search by meaning.
        """
        return (
            yield from self._reading.excluding_invalid_json(
                lambda adapt: self._search(tenant, ranges, request, adapt(filter), vector)
            )
        )

    def _search(
        self,
        tenant: str,
        ranges: Sequence[Range],
        request: SearchRequest,
        filter: ItemFilter,
        vector: QueryVector | None,
    ) -> Operation[list[Hits]]:
        limit, offset, min_score = request.limit, request.offset, request.min_score
        reading = self._reading
        if vector is not None:
            found = yield from self._by_meaning(tenant, ranges, request, filter, vector)
            found = [Hits(hits[offset : offset + limit], exact=hits.exact) for hits in found]
        elif request.way == "word" and request.query is not None:
            query = request.query
            found = yield from gather([reading.words(tenant, where, filter, query, limit, offset) for where in ranges])
        else:
            found = yield from gather([reading.newest(tenant, where, filter, limit, offset) for where in ranges])
        if min_score is None:
            return found
        return [
            Hits((hit for hit in hits if hit.score is None or hit.score >= min_score), exact=hits.exact)
            for hits in found
        ]

    def _by_meaning(
        self, tenant: str, ranges: Sequence[Range], request: SearchRequest, filter: ItemFilter, vector: QueryVector
    ) -> Operation[list[Hits]]:
        """Return the hits of a search by meaning, or by word and meaning, including those to skip."""
        if request.way == "meaning" or request.query is None:
            searches = [
                NearestSearch(tenant, where, vector, filter, request.depth, request.min_score, request.exact)
                for where in ranges
            ]
            return (yield from gather([self._nearest.nearest(search) for search in searches]))
        depth, query = max(FUSED, request.depth), request.query
        searches = [NearestSearch(tenant, where, vector, filter, depth, exact=request.exact) for where in ranges]
        found = yield from gather(
            [
                *(self._nearest.nearest(search) for search in searches),
                *(self._reading.words(tenant, where, filter, query, depth) for where in ranges),
            ]
        )
        pairs = zip(found[: len(ranges)], found[len(ranges) :], strict=True)
        return [fuse(by_meaning, by_word) for by_meaning, by_word in pairs]


def _way_of(query: str | None, embedding: Any, way: Way | None, *, embeds: bool) -> Way | None:
    if way is None:
        if embedding is not None:
            return "meaning" if query is None else "hybrid"
        if query is None:
            return None
        return "meaning" if embeds else "word"
    if way not in ("word", "meaning", "hybrid"):
        raise InvalidInput(f"way must be 'word', 'meaning' or 'hybrid', not {way!r:.50}.")
    if way in ("word", "hybrid") and query is None:
        raise InvalidInput(f"A search by way={way!r} needs a query.")
    if way in ("meaning", "hybrid") and embedding is None and (query is None or not embeds):
        raise InvalidInput(f"A search by way={way!r} needs an embedding, or a query and a store with embed=.")
    return way
