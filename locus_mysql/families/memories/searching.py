"""What a search asks for, and the operations that answer it: by field, by word, by meaning, or by word and meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from ...dialect.memories.filters import Condition, condition_of
from ...dialect.memories.ranges import Range
from ...engine.operation import Operation
from ...errors import InvalidInput
from .arguments import check_count, check_score, check_text
from .fusion import FUSED, fuse
from .gather import gather
from .nearest import NearestOperations
from .reading import ReadingOperations
from .records import Hits
from .vectors.scoring import Query

#: What an item is searched by: fields only, words, embeddings, or words and embeddings.
Way: TypeAlias = Literal["word", "meaning", "hybrid"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search asks for; the arguments are those of `MemoryStore.search`."""

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
        """Whether an embedding is asked for."""
        return self.way in ("meaning", "hybrid")

    @property
    def condition(self) -> Condition:
        """What items must fulfil.

        Raises:
            InvalidInput: A filter cannot be understood.
        """
        one = condition_of(self.filter, "i.value")
        other = condition_of(self.metadata_filter, "COALESCE(i.metadata, '{}')")
        return Condition(one.sql + other.sql, one.params + other.params, one.checks + other.checks)

    def checked(self, *, embeds: bool) -> Asked:
        """The same, with its way decided: None if nothing is asked but fields.

        Args:
            embeds: Whether the store has a function that embeds a query.

        Raises:
            InvalidInput: An argument is wrong, or does not go with the way.
        """
        check_count(self.limit, "limit")
        check_count(self.offset, "offset")
        check_score(self.min_score, "min_score")
        if self.query is not None:
            check_text(self.query, "The query")
        return replace(self, way=_way_of(self.query, self.embedding, self.way, embeds=embeds))


class SearchingOperations:
    """What answers searches.

    Args:
        reading: Finds by field and by word.
        nearest: Finds by meaning.
    """

    def __init__(self, reading: ReadingOperations, nearest: NearestOperations) -> None:
        self._reading = reading
        self._nearest = nearest

    def search(
        self, tenant: str, ranges: Sequence[Range], asked: Asked, condition: Condition, near: Query | None
    ) -> Operation[list[Hits]]:
        """The hits in each of several ranges, in the round trips of one search.

        Args:
            tenant: Whose.
            ranges: In which namespaces.
            asked: What for, checked.
            condition: That of ``asked``.
            near: The embedding asked for, if the way needs one.
        """
        return (
            yield from self._reading.past_damage(
                lambda guard: self._search(tenant, ranges, asked, guard(condition), near)
            )
        )

    def _search(
        self, tenant: str, ranges: Sequence[Range], asked: Asked, condition: Condition, near: Query | None
    ) -> Operation[list[Hits]]:
        limit, offset, min_score = asked.limit, asked.offset, asked.min_score
        if near is not None:
            found = yield from self._by_meaning(tenant, ranges, asked, near, condition)
            found = [Hits(hits[offset : offset + limit], exact=hits.exact) for hits in found]
        elif asked.way == "word":
            query = cast(str, asked.query)
            found = yield from gather(
                [self._reading.words(tenant, where, condition, query, limit, offset) for where in ranges]
            )
        else:
            found = yield from gather(
                [self._reading.newest(tenant, where, condition, limit, offset) for where in ranges]
            )
        if min_score is None:
            return found
        return [
            Hits((hit for hit in hits if hit.score is None or hit.score >= min_score), exact=hits.exact)
            for hits in found
        ]

    def _by_meaning(
        self, tenant: str, ranges: Sequence[Range], asked: Asked, near: Query, condition: Condition
    ) -> Operation[list[Hits]]:
        """The hits by meaning, or by word and meaning, the first as well as those wanted."""
        wanted = asked.limit + asked.offset if asked.limit else 0
        if asked.way == "meaning":
            return (
                yield from gather(
                    [
                        self._nearest.nearest(
                            tenant, where, near, condition, wanted, min_score=asked.min_score, exact=asked.exact
                        )
                        for where in ranges
                    ]
                )
            )
        depth, query = max(FUSED, wanted), cast(str, asked.query)
        found = yield from gather(
            [
                *(self._nearest.nearest(tenant, where, near, condition, depth, exact=asked.exact) for where in ranges),
                *(self._reading.words(tenant, where, condition, query, depth) for where in ranges),
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
