"""Search by meaning, as generators that do no I/O: on the server by sign bits, or in memory by codes.

A *range* is a namespace, or all namespaces below a prefix. A range is first searched on the server, which compares a
bit per dimension. A range that is large and searched again is loaded into memory: a byte per dimension of each
embedding, its *code*. A code gives a bound that the exact score cannot exceed, so the embeddings of the most promising
candidates are read and compared until no other can be a hit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain, islice
from math import ceil
from typing import NamedTuple

from ...dialect import Query
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.vectors import OTHER_MODEL, EmbeddingRow, NearRow, StateRow
from ...engine.counters import Counters
from ...engine.logs import CALLS
from ...engine.operation import Batch, Operation, fetch
from ...engine.retry import Backoff
from ...runtime.stats import CODES
from .cached_ranges import CachedRanges, add_embeddings
from .range_state import RangeState
from .records import Hits, MemoryHit
from .sealed_items import SealedItems
from .shortlist import NearestSearch, Shortlist, ShortlistQueries, item_key_of
from .vectors.cache import CachedRange, VectorCache, Write
from .vectors.coding import model_number, signs_of
from .vectors.numeric import warn_if_numpy_is_missing
from .vectors.stored import verified_embeddings
from .vectors.table import Candidate, CodeTable, VectorKey
from .writing import ItemKey

#: A search on the server selects this many embeddings by their sign bits, or this many for each requested hit if that
#: is more, and ranks them by their codes.
SERVER_CANDIDATES, SERVER_CANDIDATES_PER_HIT = 1_000, 4

#: A range with more embeddings than this is searched in memory from the second search on.
SMALL_RANGE = 500

#: The number of embeddings that the first round compares exactly: at most this many, plus this many for each requested
#: hit.
FIRST_ROUND, FIRST_ROUND_PER_HIT = 16, 4

#: Fraction of the possible hits beyond the wanted ones that the first round compares exactly.
FIRST_ROUND_SHARE = 0.75

#: Extra candidates whose items the first round reads: 6 or 25 % of the limit, whichever is larger, because codes rarely
#: misplace an item further.
SPARE_ITEMS = 6

#: Embeddings that a cached range should keep and lacks, as they are new or changed, are read by their keys with the
#: first round, up to this many.
MISSING_BY_KEY = 200

#: If more are missing, each search reads spans of keys instead: about this many bytes, in at most this many namespaces.
SPAN_BYTES, MAX_SPANS = 4_194_304, 100

#: For a range of at most this many namespaces, the packet that asks whether anything changed also asks for the changes.
CHANGES_AT_ONCE = 4


class ServerHits(NamedTuple):
    """The result of a search on the server.

    Args:
        hits: The hits, best first.
        complete: Whether all embeddings of the range were ranked, so that the hits are the best for certain.
        ambiguous: Whether the sign bits do not separate the wanted hits from embeddings that were not ranked.
    """

    hits: list[MemoryHit]
    complete: bool
    ambiguous: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates of a cached range, at a version given by its last writes.

    Args:
        writes: The last writes of the range.
        first: The candidates to compare exactly in the first round.
        others: The other candidates, in falling order of their bounds.
        scores: Exact scores of those of the first whose embeddings are in the cache.
        missing: Embeddings that the cache should keep and lacks.
    """

    writes: dict[bytes, Write]
    first: list[Candidate]
    others: Iterator[Candidate]
    scores: dict[VectorKey, float]
    missing: list[VectorKey]

    @property
    def state_has_changes(self) -> bool:
        """Return whether the first round asks for changes, not only whether there are any."""
        return 0 < len(self.writes) <= CHANGES_AT_ONCE


class FirstRound(NamedTuple):
    """The statements of the first round of a search in memory.

    Args:
        state: The state of the range before the others.
        shortlist: Embeddings and items of the first candidates.
        spans: Embeddings that the cache lacks.
        state_after: The state of the range after the others, if the cache is to keep what they read.
    """

    state: Query[StateRow]
    shortlist: ShortlistQueries
    spans: tuple[Query[EmbeddingRow], ...]
    state_after: tuple[Query[StateRow], ...]

    @property
    def batch(self) -> Batch:
        """All of them as one batch."""
        embeddings, items = self.shortlist
        return Batch((self.state, *embeddings, *items, *self.spans, *self.state_after), atomic=False)


class NearestOperations:
    """Searches by embedding.

    Args:
        sql: The statements.
        cache: Codes of ranges that are searched repeatedly.
        sealed: Decrypts rows. With encryption, all searches rank in memory: the server has no signs.
        model: The name of the model whose embeddings are compared; those of others are left out, which is logged once.
    """

    def __init__(
        self, sql: MemoryDialect, cache: VectorCache, sealed: SealedItems | None = None, model: str = ""
    ) -> None:
        self._sql = sql
        self._cache = cache
        self._sealed = sealed or SealedItems()
        self._model_name = model
        self._model = model_number(model)
        self._has_logged_others = False
        self._ranges = CachedRanges(sql, cache, self._sealed, self._model)
        self.counters = Counters()

    def nearest(self, search: NearestSearch) -> Operation[Hits]:
        """Return the items whose embeddings are nearest; of several embeddings of an item, the nearest is used."""
        warn_if_numpy_is_missing()
        if search.limit < 1:
            return Hits()
        cached = self._cache.get(search.range_key)
        by_server = not self._sealed.is_on
        load = cached is None and (not by_server or search.exact or self._cache.was_large(search.range_key))
        found: ServerHits | None = None
        if by_server and (
            search.filter.sql or (cached is None and not load)
        ):  # few items may match a filter: the server ranks those
            found = yield from self._search_server(search)
            if found.complete:
                return Hits(found.hits)
            load = load or (cached is None and (found.ambiguous or bool(search.filter.checks)))
        self.counters.look_up(CODES, hit=cached is not None)
        if load:
            cached = yield from self._ranges.load(search)
        elif cached is not None:  # the second search in memory, or a later one
            self._ranges.keep_embeddings(cached)
        if cached is not None:
            self._log_others(cached.table.others)
            return Hits((yield from self._search_memory(search, cached)))
        if found is None:  # the codes do not fit into the cache
            found = yield from self._search_server(search)
        return Hits(found.hits, exact=found.complete)

    def _search_server(self, search: NearestSearch) -> Operation[ServerHits]:
        """Rank by sign bits on the server, then the nearest by their codes; compare the best of these exactly."""
        rows, complete = yield from self._nearest_by_signs(search)
        if not complete or (len(rows) > SMALL_RANGE and not search.filter.sql):
            self._cache.mark_large(search.range_key)
        ambiguous = not complete and _is_ambiguous(rows, search.limit)
        table = CodeTable(search.dims, self._model)
        table.fill(_codes_in(rows))
        ranked = table.ranked(search.query)
        head = list(islice(ranked, FIRST_ROUND_PER_HIT * search.limit + FIRST_ROUND))
        if not head:
            return ServerHits([], complete, ambiguous)
        first = head if search.filter.sql else head[: _first_round(head, search.limit)]
        likely = first if search.filter.sql else first[: _with_spare(search.limit)]
        shortlist = Shortlist(self._sql, search, self._sealed, self._model)
        queries = shortlist.queries([one.key for one in first], [item_key_of(one.key) for one in likely])
        shortlist.add((yield Batch((*queries.embeddings, *queries.items), atomic=False)), queries)
        hits = yield from shortlist.hits(first, chain(head[len(first) :], ranked))
        return ServerHits(hits, complete, ambiguous)

    def _nearest_by_signs(self, search: NearestSearch) -> Operation[tuple[list[NearRow], bool]]:
        """Return the nearest embeddings by sign bits, and whether these are all embeddings of the range."""
        signs = signs_of(search.query.values)
        limit = max(SERVER_CANDIDATES, SERVER_CANDIDATES_PER_HIT * search.limit)
        while True:
            near = self._sql.vectors.near(
                search.tenant, search.where, signs, search.dims, self._model, search.filter, limit
            )
            found = yield from fetch(near)
            rows = [row for row in found if row.distance < OTHER_MODEL]
            self._log_others(len(found) - len(rows))
            complete = len(rows) < limit
            if complete or len({(row.path, row.key) for row in rows}) >= search.limit:
                return rows, complete
            limit *= 4  # the nearest embeddings belong to few items

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

    def _search_memory(self, search: NearestSearch, cached: CachedRange) -> Operation[list[MemoryHit]]:
        """Rank by the codes, or embeddings, in the cache; compare all possible hits exactly.

        The packet of the first round also asks whether the range has changed since it was read. If it has, it is
        brought up to date, and the search starts again.
        """
        backoff = Backoff("Items of the namespaces changed while they were searched")
        while True:
            ranking = _rank(search, cached)
            shortlist = Shortlist(self._sql, search, self._sealed, self._model)
            shortlist.add_scores(ranking.scores)
            first_round = self._first_round(search, ranking, shortlist)
            results = yield first_round.batch
            state = RangeState.of(results.rows(first_round.state))
            if (
                yield from self._ranges.refresh(
                    search, cached, state, ranking.writes, with_changes=ranking.state_has_changes
                )
            ):
                backoff.check()
                continue
            embeddings = shortlist.add(results, first_round.shortlist)
            for query in first_round.state_after:
                if RangeState.of(results.rows(query)).writes == ranking.writes:
                    spans = [row for span in first_round.spans for row in results.rows(span)]
                    embeddings += verified_embeddings(search.tenant, spans, self._sealed)
                    add_embeddings(cached, embeddings, ranking.writes)
            return (yield from shortlist.hits(ranking.first, ranking.others))

    def _first_round(self, search: NearestSearch, ranking: Ranking, shortlist: Shortlist) -> FirstRound:
        vectors = self._sql.vectors
        needed = [one.key for one in ranking.first if one.key not in ranking.scores]
        spans: tuple[Query[EmbeddingRow], ...] = ()
        if len(ranking.missing) > MISSING_BY_KEY:
            spans = (vectors.between(search.tenant, _spans_of(ranking.missing)),)
        else:
            needed = list(dict.fromkeys([*needed, *ranking.missing]))
        return FirstRound(
            vectors.range_state(search.tenant, search.where, ranking.writes if ranking.state_has_changes else None),
            shortlist.queries(needed, _likely_items(search, ranking, shortlist)),
            spans,
            (vectors.range_state(search.tenant, search.where),) if ranking.missing else (),
        )


def _rank(search: NearestSearch, cached: CachedRange) -> Ranking:
    """Rank the candidates of a range by its codes, or by its embeddings if it has all of them."""
    with cached.lock:
        table = cached.table
        ranked = table.ranked(search.query)
        if table.has_all_embeddings:
            first = head = list(islice(ranked, _with_spare(search.limit)))
        else:
            head = list(islice(ranked, FIRST_ROUND_PER_HIT * search.limit + FIRST_ROUND))
            first = head if search.filter.sql else head[: _first_round(head, search.limit)]
        scores = table.scores(search.query, (one.key for one in first))
        missing = table.missing_embeddings(max(MISSING_BY_KEY + 1, SPAN_BYTES // (4 * table.dims)))
        return Ranking(dict(cached.writes), first, chain(head[len(first) :], ranked), scores, missing)


def _likely_items(search: NearestSearch, ranking: Ranking, shortlist: Shortlist) -> list[ItemKey]:
    """Return the items to read in the first round."""
    if not search.filter.sql and len(ranking.scores) == len(ranking.first):  # their order is known
        return [key for key, _ in shortlist.best()]
    likely = ranking.first if search.filter.sql else ranking.first[: _with_spare(search.limit)]
    return [item_key_of(one.key) for one in likely]


def _codes_in(rows: Sequence[NearRow]) -> list[tuple[VectorKey, bytes]]:
    """Return keys and codes, without signs whose code was deleted by hand."""
    return [
        ((path, key, number), code)
        for path, key, number, code, _ in rows
        if path is not None and key is not None and number is not None and code is not None
    ]


def _is_ambiguous(rows: Sequence[NearRow], wanted: int) -> bool:
    """Check whether fewer embeddings than wanted are nearer by sign bits than the last one that was read."""
    last = max(row.distance for row in rows)
    return sum(row.distance < last for row in rows) < wanted


def _spans_of(keys: Sequence[VectorKey]) -> list[tuple[bytes, bytes, bytes]]:
    """Return the path, first key and last key of each namespace, for at most `MAX_SPANS` namespaces."""
    spans: dict[bytes, tuple[bytes, bytes]] = {}
    for path, key, _ in keys:
        first, last = spans.get(path, (key, key))
        if path not in spans and len(spans) == MAX_SPANS:
            break
        spans[path] = min(first, key), max(last, key)
    return [(path, first, last) for path, (first, last) in spans.items()]


def _first_round(head: Sequence[Candidate], wanted: int) -> int:
    """Return how many of the first candidates to compare exactly at once: all, if any of them may be a hit."""
    if len(head) < wanted:
        return len(head)
    floor = nlargest(wanted, (one.floor for one in head))[-1]
    possible = sum(one.bound >= floor for one in head)
    if possible == len(head):
        return len(head)
    return max(wanted + ceil(FIRST_ROUND_SHARE * (possible - wanted)), _with_spare(wanted))


def _with_spare(wanted: int) -> int:
    """Return how many of the first candidates are likely to contain the wanted hits."""
    return wanted + max(SPARE_ITEMS, wanted // 4)
