"""Search by meaning, as generators that do no I/O: in memory, or on the server by sign bits.

A *range* is a namespace, or all namespaces below a prefix. A range is first searched on the server, which compares a
bit per dimension; the embeddings of the nearest are then compared exactly. A range that is searched again is loaded
into memory if it fits, and each search asks whether it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeAlias

from ...dialect import Query
from ...engine.logs import CALLS, Counters
from ...engine.operation import Batch, Operation, Results, fetch
from ...engine.retry import Backoff, next_page
from ...runtime.database import EMBEDDINGS, Database
from ...runtime.server_rows import readable
from .cached_ranges import CachedRange, CachedRanges, RangeState, VectorKey
from .records import Hits, MemoryHit, item_of
from .sealed_items import SealedItems, begin_of_embedding
from .statements.filters import ItemFilter
from .statements.items import ItemRow, get_items
from .statements.tables import ItemKey, MemoryDialect, Range
from .statements.vectors import OTHER_MODEL, EmbeddingRow, StateRow, find_near, page_of_range, range_state
from .vectors.coding import QueryVector, model_number, signs_of, warn_if_numpy_is_missing
from .vectors.matrix import Matrix, size_bytes

#: A search on the server compares this many embeddings exactly, or this many for each requested hit if that is more.
SERVER_CANDIDATES, SERVER_CANDIDATES_PER_HIT = 1_000, 4

#: If there are more, it leaves out those whose sign bits differ in more bits than those of the last wanted hit by this
#: many times the root of the width, which is three times the largest standard deviation of the number of such bits.
MARGIN = 1.5

#: The number of embeddings that are ranked at first: for each requested hit, and more. With a filter, many of their
#: items may not match.
RANKED_PER_HIT, RANKED_MORE = 1.25, 6
FILTERED_PER_HIT, FILTERED_MORE = 4, 16

#: For a range of at most this many namespaces, the packet that asks whether anything changed also asks for the changes.
CHANGES_AT_ONCE = 4

#: An exact search of a range that does not fit into memory reads about this many bytes at a time.
PAGE_BYTES = 16_777_216

#: Embeddings with their scores, best first.
Ranked: TypeAlias = list[tuple[VectorKey, float]]


@dataclass(frozen=True, slots=True)
class NearestSearch:
    """A search for the items whose embeddings are nearest to a query's.

    Args:
        tenant: The tenant.
        where: The namespaces.
        query: The embedding to compare with.
        filter: The conditions on the items.
        limit: The maximum number of hits.
        min_score: Leave out hits with a lower score.
        exact: Whether the hits must be the best for certain, at the cost of reading all embeddings of the range.
    """

    tenant: str
    where: Range
    query: QueryVector
    filter: ItemFilter
    limit: int
    min_score: float | None = None
    exact: bool = False

    @property
    def dims(self) -> int:
        """The width of the query's embedding."""
        return len(self.query.values)


@dataclass(frozen=True, slots=True)
class Nearest:
    """The embeddings that are nearest by sign bits.

    Args:
        stored: The stored embeddings by their keys.
        complete: Whether these are all embeddings of the range that match the filter.
        ambiguous: Whether the sign bits do not separate the wanted hits from embeddings that were not read.
    """

    stored: dict[VectorKey, bytes]
    complete: bool
    ambiguous: bool


class Shortlist:
    """The items of a search's best embeddings.

    Args:
        sql: The names of the tables.
        search: The search.
        sealed: Opens rows.
    """

    def __init__(self, sql: MemoryDialect, search: NearestSearch, sealed: SealedItems) -> None:
        self._sql, self._sealed = sql, sealed
        self._search = search
        self._items: dict[ItemKey, ItemRow] = {}
        self._requested: set[ItemKey] = set()

    def queries(self, ranked: Ranked) -> tuple[Query[ItemRow], ...]:
        """Return the statements that read the items of the best embeddings, without those that were requested."""
        keys = (
            dict.fromkeys((path, key) for (path, key, _), _ in ranked) if self._search.filter.sql else self.best(ranked)
        )
        new = [key for key in keys if key not in self._requested]
        self._requested.update(new)
        return get_items(self._sql, self._search.tenant, new, self._search.filter)

    def add(self, results: Results, queries: Sequence[Query[ItemRow]]) -> None:
        """Add the results of `queries`."""
        for query in queries:
            for item in results.rows(query):
                if self._search.filter.admits(item.value, item.metadata):
                    self._items[item.path, item.key] = item

    def best(self, ranked: Ranked) -> dict[ItemKey, float]:
        """Return the best items with their scores, without those that do not exist or do not match the filter.

        Of several embeddings of an item, the nearest counts.
        """
        best: dict[ItemKey, float] = {}
        for (path, key, _), score in ranked:
            item = (path, key)
            if item not in best and (item in self._items or item not in self._requested):
                best[item] = score
                if len(best) == self._search.limit:
                    break
        return best

    def hits(self, ranked: Ranked) -> list[MemoryHit]:
        """Return the hits, once the items of the best embeddings were read."""
        return list(readable(self._hit, self.best(ranked).items()))

    def _hit(self, ranked: tuple[ItemKey, float]) -> MemoryHit:
        key, score = ranked
        return MemoryHit(item_of(self._search.tenant, self._items[key], self._sealed), score)


class NearestOperations:
    """Searches by embedding.

    Args:
        sql: The names of the tables.
        cache_bytes: Memory for ranges that are searched repeatedly.
        sealed: Opens rows. With encryption, all searches rank in memory: the server has no signs.
        model: The name of the model whose embeddings are compared; those of others are left out, which is logged once.
    """

    def __init__(self, sql: MemoryDialect, cache_bytes: int, sealed: SealedItems, model: str = "") -> None:
        self._sql = sql
        self._sealed = sealed
        self._model_name = model
        self._model = model_number(model)
        self._has_logged_others = False
        self._ranges = CachedRanges(sql, cache_bytes, sealed, self._model)
        self.counters = Counters()

    def attach(self, database: Database, tables: Hashable) -> None:
        """Use the cache and the counters of a database, which all its stores share."""
        self.counters = database.counters
        self._ranges.attach(database, tables)

    def nearest(self, search: NearestSearch) -> Operation[Hits]:
        """Return the items whose embeddings are nearest; of several embeddings of an item, the nearest is used."""
        warn_if_numpy_is_missing()
        if search.limit < 1:
            return Hits()
        compares_all = self._compares_all(search)
        nearest: Nearest | None = None
        # Few items may match a filter: the server ranks those.
        if not self._sealed.is_on and (search.filter.sql or not compares_all):
            nearest = yield from self._find_nearest(search)
            if nearest.complete:
                return Hits((yield from self._compare(search, nearest.stored)))
            compares_all = compares_all or nearest.ambiguous or bool(search.filter.checks)
        is_cached = self._ranges.get(search.tenant, search.where) is not None
        self.counters.look_up(EMBEDDINGS, hit=is_cached)
        if compares_all and (hits := (yield from self._compare_range(search))) is not None:
            return Hits(hits)
        if nearest is None:
            nearest = yield from self._find_nearest(search)
        return Hits((yield from self._compare(search, nearest.stored)), exact=nearest.complete)

    def _compares_all(self, search: NearestSearch) -> bool:
        """Check whether a search begins with all embeddings of its range: it must be exact, or repeats another."""
        ranges, where = self._ranges, search.where
        is_repeated = ranges.get(search.tenant, where) is not None or ranges.was_searched(search.tenant, where)
        return is_repeated or search.exact or self._sealed.is_on

    def _compare_range(self, search: NearestSearch) -> Operation[list[MemoryHit] | None]:
        """Compare all embeddings of a range; None if they do not fit into memory, and the search need not be exact."""
        cached = self._ranges.get(search.tenant, search.where)
        if cached is None:
            cached = yield from self._ranges.load(search.tenant, search.where, search.dims)
        if cached is not None:
            self._log_others(cached.others)
            return (yield from self._search_memory(search, cached))
        if search.exact or self._sealed.is_on:
            return (yield from self._search_pages(search))
        return None

    def _find_nearest(self, search: NearestSearch) -> Operation[Nearest]:
        """Return the nearest embeddings by sign bits."""
        signs = signs_of(search.query.values)
        limit = max(SERVER_CANDIDATES, SERVER_CANDIDATES_PER_HIT * search.limit)
        place, margin = search.limit, ceil(MARGIN * sqrt(search.dims))
        while True:
            near = yield from fetch(
                find_near(
                    self._sql,
                    search.tenant,
                    search.where,
                    signs,
                    search.dims,
                    self._model,
                    search.filter,
                    limit,
                    place,
                    margin,
                )
            )
            distances: list[int] = []
            stored: dict[VectorKey, bytes] = {}
            for path, key, number, embedding, distance in near:
                if distance < OTHER_MODEL:
                    distances.append(distance)
                if embedding is not None and path is not None and key is not None and number is not None:
                    stored[path, key, number] = embedding
            self._log_others(len(near) - len(distances))
            complete = len(distances) < limit
            if complete or _has_items(stored, search.limit):
                break
            limit, place = 4 * limit, 4 * place  # the nearest embeddings belong to few items
        is_small = complete and not search.filter.sql
        self._ranges.remember_search(search.tenant, search.where, is_small=is_small)
        return Nearest(stored, complete, not complete and _is_ambiguous(distances, search.limit))

    def _compare(self, search: NearestSearch, stored: dict[VectorKey, bytes]) -> Operation[list[MemoryHit]]:
        """Rank embeddings exactly. Only the seals of the best are checked, which takes longer than to rank them."""
        matrix: Matrix[VectorKey] = Matrix(search.dims)
        begins = set(map(begin_of_embedding, stored.values()))
        for begin in begins:
            some = [one for one in stored.items() if len(begins) == 1 or begin_of_embedding(one[1]) == begin]
            matrix.fill(some, begin)
        checked: set[VectorKey] = set()

        def best(count: int) -> Ranked:
            while True:
                ranked = matrix.best(search.query, count)
                new = [key for key, _ in ranked if key not in checked]
                checked.update(new)
                rows = [EmbeddingRow(*key, stored[key]) for key in new]
                undamaged = {key for key, _ in self._sealed.open_undamaged(search.tenant, rows, self._model)}
                if len(undamaged) == len(new):
                    return ranked
                for key in new:
                    if key not in undamaged:
                        matrix.remove(key)

        return (yield from self._hits(search, best)) or []

    def _search_memory(self, search: NearestSearch, cached: CachedRange) -> Operation[list[MemoryHit]]:
        """Rank the embeddings in memory. If the range has changed, it is brought up to date and ranked again."""
        backoff = Backoff("Items of the namespaces changed while they were searched")
        while True:
            hits = yield from self._search_version(search, cached)
            if hits is not None:
                return hits
            backoff.check()

    def _search_version(self, search: NearestSearch, cached: CachedRange) -> Operation[list[MemoryHit] | None]:
        """Rank the embeddings as they are in memory; None if the range has changed, and was brought up to date.

        The packet that reads the items also asks whether the range has changed.
        """
        with cached.lock:
            writes = dict(cached.writes)
        with_changes = 0 < len(writes) <= CHANGES_AT_ONCE
        since = writes if with_changes else None
        state = range_state(self._sql, search.tenant, search.where, self._model, since)

        def best(count: int) -> Ranked | None:
            with cached.lock:
                return cached.matrix.best(search.query, count) if cached.writes == writes else None

        def changed(results: Results) -> Operation[bool]:
            found = RangeState.of(results.rows(state))
            return (
                yield from self._ranges.refresh(
                    search.tenant, search.where, cached, found, writes, with_changes=with_changes
                )
            )

        return (yield from self._hits(search, best, state, changed))

    def _search_pages(self, search: NearestSearch) -> Operation[list[MemoryHit]]:
        """Compare all embeddings of a range that does not fit into memory, some at a time."""
        limit = max(1, PAGE_BYTES // size_bytes(1, search.dims))
        scored: Ranked = []
        after: VectorKey | None = None
        while True:
            page = yield from fetch(page_of_range(self._sql, search.tenant, search.where, self._model, after, limit))
            matrix: Matrix[VectorKey] = Matrix(search.dims)
            matrix.fill(self._sealed.open_undamaged(search.tenant, page, self._model))
            scored += matrix.best(search.query, limit)
            if len(page) < limit:
                break
            after = next_page(after, page[-1].vector_key)
        scored.sort(key=lambda one: (-one[1], one[0]))
        return (yield from self._hits(search, lambda count: scored[:count])) or []

    def _hits(
        self,
        search: NearestSearch,
        best: Callable[[int], Ranked | None],
        state: Query[StateRow] | None = None,
        changed: Callable[[Results], Operation[bool]] | None = None,
    ) -> Operation[list[MemoryHit] | None]:
        """Read the items of the best embeddings until enough of them exist and match the filter.

        Args:
            search: The search.
            best: Returns a number of embeddings, best first; None if they have changed.
            state: A statement that is sent with each packet.
            changed: Checks its result; the search ends if it returns True.

        Returns:
            The hits; None if something has changed.
        """
        shortlist = Shortlist(self._sql, search, self._sealed)
        count = int(RANKED_PER_HIT * search.limit) + RANKED_MORE
        if search.filter.sql:
            count = FILTERED_PER_HIT * search.limit + FILTERED_MORE
        unchecked = changed is not None
        while True:
            ranked = best(count)
            if ranked is None:
                return None
            is_last = len(ranked) < count
            if search.min_score is not None and ranked and ranked[-1][1] < search.min_score:
                ranked, is_last = [one for one in ranked if one[1] >= search.min_score], True
            while (queries := shortlist.queries(ranked)) or unchecked:
                results = yield Batch((*(() if state is None else (state,)), *queries), atomic=False)
                if changed is not None and (yield from changed(results)):
                    return None
                unchecked = False
                shortlist.add(results, queries)
            if is_last or len(shortlist.best(ranked)) == search.limit:
                return shortlist.hits(ranked)
            count *= 4

    def _log_others(self, number: int) -> None:
        """Log once that embeddings of other models were left out."""
        if number and not self._has_logged_others:
            self._has_logged_others = True
            CALLS.warning(
                "A search by meaning left out %d embeddings or more, because they are not of the model %r. Run "
                "`locus-mysql embed`, which embeds their texts again, or name their model, as in model='…'.",
                number,
                self._model_name,
            )


def _has_items(keys: Iterable[VectorKey], count: int) -> bool:
    """Check whether embeddings belong to at least this many items."""
    items: set[ItemKey] = set()
    for path, key, _ in keys:
        items.add((path, key))
        if len(items) == count:
            return True
    return False


def _is_ambiguous(distances: Sequence[int], limit: int) -> bool:
    """Check whether fewer embeddings than the limit are nearer by sign bits than the last one."""
    last = max(distances)
    return sum(distance < last for distance in distances) < limit
