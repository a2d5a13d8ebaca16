"""Searching by meaning, as generators that do no I/O: cold on the server, or warm by codes in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import chain, islice
from math import ceil, isnan
from typing import cast

from ...dialect import Statement
from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.filters import Condition
from ...dialect.memories.ranges import Range
from ...drivers.interface import Result, Row
from ...engine.counters import Counters
from ...engine.logs import DAMAGE
from ...engine.operation import Batch, Operation
from ...runtime.answers import decodes_rows
from ...runtime.damage import readable
from ...runtime.stats import CODES
from .news import News, Writes
from .records import Hits, MemoryHit, item_of
from .vectors.cache import KnownRange, VectorCache
from .vectors.coding import signs_of
from .vectors.numeric import say_if_missing
from .vectors.scoring import Query
from .vectors.stored import sound_embeddings
from .vectors.table import Candidate, CodeTable, VectorKey
from .writing import ItemKey

#: A cold search ranks this many, the nearest by signs, by their codes; or so many for each item wanted.
RERANKED, RERANKED_FOR_EACH = 1_000, 4

#: A range of more embeddings than this is searched in memory from the second time on.
FEW = 500

#: By codes, so many are compared exactly at first, and so many for each item wanted; or fewer if codes tell enough.
CANDIDATES, CANDIDATES_FOR_EACH = 16, 4

#: Of those that codes leave as possible hits beyond the wanted ones, so many are compared at first.
NEEDED = 0.75

#: Of the candidates, the items of so many more than are wanted, or of a quarter more, are read at once: by more ranks
#: codes are seldom wrong.
READ_BESIDE = 6

#: Of so many namespaces what changed is asked for in one batch; if more did, the range is loaded anew.
NAMESPACES_AT_ONCE = 100

#: Where embeddings are kept in memory, so many that are not known, as they are new or have changed, are read by their
#: keys with what is compared.
LACKING_AT_ONCE = 200

#: If more are not known, each search reads spans of keys with about so many bytes of them, of so many namespaces.
READ_BYTES, SPANS_AT_ONCE = 4_194_304, 100

#: In a range of so many, what changed is asked for in the packet that asks whether anything has.
NAMESPACES_ASKED = 4


class NearestOperations:
    """Searches by embedding.

    Args:
        sql: The statements.
        cache: Codes of ranges that are searched repeatedly.
    """

    def __init__(self, sql: MemoryDialect, cache: VectorCache) -> None:
        self.sql = sql
        self._cache = cache
        self.counters = Counters()

    def nearest(
        self,
        tenant: str,
        where: Range,
        query: Query,
        condition: Condition,
        wanted: int,
        *,
        min_score: float | None = None,
        exact: bool = False,
    ) -> Operation[Hits]:
        """The items whose embeddings are nearest to a query's; of several embeddings of an item the nearest counts.

        Args:
            tenant: Whose.
            where: In which namespaces.
            query: The embedding asked for.
            condition: What the items must fulfil.
            wanted: At most so many.
            min_score: Leave out what is farther.
            exact: Whether the answer must be certain, at the price of loading the codes of the range.
        """
        say_if_missing()
        if wanted < 1:
            return Hits()
        key = (tenant, where.path, where.exact)
        known = self._cache.get(key)
        loads = known is None and (exact or self._cache.was_large(key))
        cold = (tenant, where, query, condition, wanted, min_score)
        hits: list[MemoryHit] = []
        complete = False
        if condition.sql or (known is None and not loads):  # few may fulfil a condition: then those are ranked, not all
            hits, complete, blind = yield from self._cold(*cold)
            if complete:
                return Hits(hits)
            loads = loads or (known is None and (blind or bool(condition.checks)))
        self.counters.look_up(CODES, hit=known is not None)
        if loads:
            known = yield from self._load(tenant, where, len(query.values), keep=True, must=exact)
            if known is None and not condition.sql:  # they do not fit
                hits, complete, _ = yield from self._cold(*cold)
        elif known is not None:  # searched repeatedly
            self._keep_embeddings(known)
        if known is None:
            return Hits(hits, exact=complete)
        hits = yield from self._warm(tenant, where, known, query, condition, wanted, min_score)
        return Hits(hits)

    def _cold(
        self,
        tenant: str,
        where: Range,
        query: Query,
        condition: Condition,
        wanted: int,
        min_score: float | None,
    ) -> Operation[tuple[list[MemoryHit], bool, bool]]:
        """Rank by signs on the server, then the best by their codes.

        What may be among the best by its code is compared exactly, as in `_warm`.

        Returns:
            The hits; whether that was all there are; and whether signs tell less than is wanted, as more embeddings
            than were read are as near by them.
        """
        sig, dims = signs_of(query.values), len(query.values)
        asked = max(RERANKED, RERANKED_FOR_EACH * wanted)
        while True:
            (found,) = yield Batch.of(self.sql.vectors.near(tenant, where, sig, dims, condition, asked))
            complete = len(found.rows) < asked
            if complete or len({row[:2] for row in found.rows}) >= wanted:
                break
            asked *= 4  # the nearest are embeddings of few items
        if not complete or (len(found.rows) > FEW and not condition.sql):
            self._cache.found_large((tenant, where.path, where.exact))
        blind = not complete and _are_too_alike([cast(int, row[4]) for row in found.rows], wanted)
        table = CodeTable(dims)
        table.fill(_coded(found.rows))
        candidates = table.best(query)
        some = list(islice(candidates, CANDIDATES_FOR_EACH * wanted + CANDIDATES))
        if not some:
            return [], complete, blind
        first = some if condition.sql else some[: _needed(some, wanted)]
        compared = _Compared(tenant, query, condition, min_score)
        vectors = compared.ask_vectors(self.sql, tenant, [one.key for one in first])
        likely = [one.key[:2] for one in (first if condition.sql else first[: _likely(wanted)])]
        items = compared.ask_items(self.sql, tenant, likely, condition)
        results = yield Batch((*vectors, *items), atomic=False)
        compared.take(results[: len(vectors)], results[len(vectors) :])
        remaining = chain(some[len(first) :], candidates)
        hits = yield from self._compare(tenant, compared, first, remaining, condition, wanted, min_score)
        return hits, complete, blind

    def _warm(
        self,
        tenant: str,
        where: Range,
        known: KnownRange,
        query: Query,
        condition: Condition,
        wanted: int,
        min_score: float | None,
    ) -> Operation[list[MemoryHit]]:
        """Rank by codes, or embeddings, in memory: whatever may be among the best is compared exactly.

        The packet that asks for those also asks whether anything has changed since they were read. If so, they are
        brought up to date, and it begins anew. Embeddings are kept only if nothing has changed by the end of it either.
        """
        while True:
            with known.lock:
                candidates = known.table.best(query)
                all_known = known.table.knows_all
                count = _likely(wanted) if all_known else CANDIDATES_FOR_EACH * wanted + CANDIDATES
                some = list(islice(candidates, count))
                writes = dict(known.writes)
                first = some if condition.sql or all_known else some[: _needed(some, wanted)]
                held = known.table.scores(query, (one.key for one in first))
                lacking = known.table.lacking(max(LACKING_AT_ONCE + 1, READ_BYTES // (4 * known.table.dims)))
            candidates = chain(some[len(first) :], candidates)
            since = writes if len(writes) <= NAMESPACES_ASKED else {}
            compared = _Compared(tenant, query, condition, min_score)
            compared.compare(held)
            unknown = dict.fromkeys(one.key for one in first if one.key not in held)
            spans = _spans_of(lacking) if len(lacking) > LACKING_AT_ONCE else []
            between = (self.sql.vectors.between(tenant, spans),) if spans else ()
            again = (self.sql.vectors.news(tenant, where, {}),) if lacking else ()
            if not spans:
                unknown.update(dict.fromkeys(lacking))
            vectors = compared.ask_vectors(self.sql, tenant, unknown)
            if condition.sql:
                likely = [one.key[:2] for one in first]
            elif len(held) == len(first):
                likely = [key for key, _ in compared.best(wanted)]
            else:
                likely = [one.key[:2] for one in first[: _likely(wanted)]]
            items = compared.ask_items(self.sql, tenant, likely, condition)
            asking = self.sql.vectors.news(tenant, where, since)
            results = yield Batch((asking, *vectors, *items, *between, *again), atomic=False)
            news = News.of(results[0].rows)
            if (yield from self._catch_up(tenant, where, known, news, writes, asked=bool(since))):
                continue
            answers = results[1:]
            compared.take(answers[: len(vectors)], answers[len(vectors) : len(vectors) + len(items)])
            if lacking and News.of(results[-1].rows).writes == writes:
                _learn(known, tenant, writes, (row for result in answers if result.columns == 5 for row in result.rows))
            return (yield from self._compare(tenant, compared, first, candidates, condition, wanted, min_score))

    def _compare(
        self,
        tenant: str,
        compared: _Compared,
        first: Sequence[Candidate],
        candidates: Iterator[Candidate],
        condition: Condition,
        wanted: int,
        min_score: float | None,
    ) -> Operation[list[MemoryHit]]:
        """The best hits: read what may still be among them until none can be, and the items of those that are.

        Args:
            tenant: Whose.
            compared: What is known already.
            first: The candidates that it knows.
            candidates: The others, in falling order of what their scores are at most.
            condition: What the items must fulfil.
            wanted: At most so many.
            min_score: Leave out what is farther.
        """
        bound = first[-1].bound if first else 0.0
        count = len(first)
        while True:
            best = compared.best(wanted)
            unread = [key for key, _ in best if key not in compared.rows]
            certain = len(best) >= wanted and best[-1][1] > bound
            enough = certain or (min_score is not None and bound < min_score)
            more = [] if enough else list(islice(candidates, 3 * count))
            if not more and not unread:
                rows = [(compared.rows[key], score) for key, score in best]
                return list(readable(lambda found: MemoryHit(item_of(tenant, found[0]), found[1]), rows))
            vectors = compared.ask_vectors(self.sql, tenant, [one.key for one in more])
            count += len(more)
            likely = [*unread, *(one.key[:2] for one in more if condition.sql)]
            items = compared.ask_items(self.sql, tenant, likely, condition)
            results = yield Batch((*vectors, *items), atomic=False)
            compared.take(results[: len(vectors)], results[len(vectors) :])
            bound = more[-1].bound if more else bound

    def _catch_up(
        self, tenant: str, where: Range, known: KnownRange, news: News, writes: Writes, *, asked: bool
    ) -> Operation[bool]:
        """Bring codes up to date; whether there was anything to do.

        Args:
            tenant: Whose.
            where: The range.
            known: What is known of it.
            news: What the server says.
            writes: What was known when it was asked.
            asked: Whether it was asked for changes too.
        """
        different = news.different(writes)
        if not different and len(news.scopes) == len(writes):
            return False
        if len(different) > NAMESPACES_AT_ONCE:
            fresh = yield from self._load(tenant, where, known.table.dims, keep=False, must=True)
            if fresh is not None:
                with known.lock:
                    known.table, known.writes = fresh.table, fresh.writes
            self._cache.has_grown()
            return True
        since = {path: writes[path] for path in different if path in writes}
        if since and not asked:
            (found,) = yield Batch.of(self.sql.vectors.news(tenant, where, since))
            news = News.of(found.rows)
            different = [path for path in different if path in news.scopes]
        anew = [path for path in different if news.must_be_read_anew(path, writes)]
        loads = tuple(self.sql.vectors.all_codes(tenant, Range(path, exact=True)) for path in anew)
        results = (yield Batch(loads, atomic=False)) if loads else ()
        with known.lock:
            if known.writes == writes:  # else another thread was faster
                _apply(known, news, [path for path in different if path not in anew])
                for path in (*anew, *(path for path in writes if path not in news.scopes)):
                    known.table.remove_path(path)
                    known.writes.pop(path, None)
                for result in results:
                    codes, read = _loaded(result.rows)
                    known.writes.update(read)
                    known.table.fill(codes)
        self._cache.has_grown()
        return True

    def _load(self, tenant: str, where: Range, dims: int, *, keep: bool, must: bool) -> Operation[KnownRange | None]:
        """The codes of a range, remembered if they fit; None if they do not, unless they must be read anyway."""
        if keep or not must:
            (size,) = yield Batch.of(self.sql.vectors.size(tenant, where))
            keep = self._cache.fits(cast(int, size.rows[0][0]), dims)
            if not keep and not must:
                return None
        (found,) = yield Batch.of(self.sql.vectors.all_codes(tenant, where))
        codes, writes = _loaded(found.rows)
        table = CodeTable(dims)
        table.fill(codes)
        known = KnownRange(table, writes)
        if keep:
            self._cache.put((tenant, where.path, where.exact), known)
        return known

    def _keep_embeddings(self, known: KnownRange) -> None:
        """Keep the embeddings of a range beside their codes if they are few."""
        with known.lock:
            table = known.table
            if not table.could_keep_embeddings or not self._cache.fits_embeddings(len(table), table.dims):
                return
            table.keep_embeddings()
        self._cache.has_grown()


@decodes_rows
def _coded(rows: Iterable[Row]) -> list[tuple[VectorKey, bytes]]:
    """Keys and codes, but for codes that somebody took away by hand."""
    coded = [
        ((cast(bytes, path), cast(bytes, key), cast(int, place)), cast(bytes, code))
        for path, key, place, code, _ in rows
        if code is not None
    ]
    if not all(isinstance(code, bytes) for _, code in coded):
        raise TypeError("a code is not bytes")
    return coded


def _loaded(rows: Sequence[Row]) -> tuple[list[tuple[VectorKey, bytes]], dict[bytes, tuple[int, bytes]]]:
    """Keys with codes, and the last writes to namespaces, of what `VectorStatements.all_codes` reads."""
    writes = {
        cast(bytes, path): (cast(int, stamp), cast(bytes, token))
        for path, token, place, _, stamp in rows
        if place is None
    }
    return _coded(rows), writes


def _are_too_alike(distances: Sequence[int], wanted: int) -> bool:
    """Whether fewer than are wanted are nearer by their signs than the last one that was read."""
    last = max(distances)
    return sum(distance < last for distance in distances) < wanted


def _apply(known: KnownRange, news: News, paths: Iterable[bytes]) -> None:
    """Take over what changed in some namespaces."""
    for path in paths:
        for key, code in news.changes.get(path, ()):
            if code is None:
                known.table.remove(key)
            else:
                known.table.put(key, code)
        known.writes[path] = (news.scopes[path].stamp, news.scopes[path].token)


def _learn(known: KnownRange, tenant: str, writes: Writes, rows: Iterable[Row]) -> None:
    """Keep embeddings that were read when these were the last writes to the range, unless it has been caught up."""
    with known.lock:
        if known.writes == writes:
            for (path, name, place, *_), embedding in sound_embeddings(tenant, rows):
                known.table.know((cast(bytes, path), cast(bytes, name), cast(int, place)), embedding)


def _spans_of(keys: Iterable[VectorKey]) -> list[tuple[bytes, bytes, bytes]]:
    """The first and the last of these keys in each namespace, of as many namespaces as are read at once."""
    spans: dict[bytes, tuple[bytes, bytes]] = {}
    for path, key, _ in keys:
        first, last = spans.get(path, (key, key))
        if path not in spans and len(spans) == SPANS_AT_ONCE:
            break
        spans[path] = min(first, key), max(last, key)
    return [(path, first, last) for path, (first, last) in spans.items()]


def _needed(some: Sequence[Candidate], wanted: int) -> int:
    """How many of these to compare at first: all if any of them may be a hit."""
    if len(some) < wanted:
        return len(some)
    floor = nlargest(wanted, (one.floor for one in some))[-1]
    possible = sum(one.bound >= floor for one in some)
    needed = wanted + ceil(NEEDED * (possible - wanted))
    return len(some) if possible == len(some) else max(needed, _likely(wanted))


def _likely(wanted: int) -> int:
    """How many of the first candidates are likely to have the wanted hits among them."""
    return wanted + max(READ_BESIDE, wanted // 4)


class _Compared:
    """What a search knows of its candidates so far.

    Args:
        tenant: Whose they are.
        query: The embedding asked for.
        condition: What the items must fulfil.
        least: Leave out lower scores.
    """

    def __init__(self, tenant: str, query: Query, condition: Condition, least: float | None) -> None:
        self._tenant = tenant
        self.rows: dict[ItemKey, Row] = {}
        self._query = query
        self._condition = condition
        self._least = least
        self._scores: dict[ItemKey, float] = {}
        self._asked: set[ItemKey] = set()

    def ask_vectors(self, sql: MemoryDialect, tenant: str, keys: Iterable[VectorKey]) -> tuple[Statement, ...]:
        """The statements for embeddings."""
        return sql.vectors.exact(tenant, list(keys))

    def compare(self, scores: Mapping[VectorKey, float]) -> None:
        """Take scores that are at hand."""
        for (path, key, _), score in scores.items():
            if not isnan(score):
                self._scores[path, key] = max(score, self._scores.get((path, key), score))

    def ask_items(
        self, sql: MemoryDialect, tenant: str, keys: Iterable[ItemKey], condition: Condition
    ) -> tuple[Statement, ...]:
        """The statements for items that were not asked for yet."""
        new = [key for key in dict.fromkeys(keys) if key not in self._asked]
        self._asked.update(new)
        return sql.reading.get(tenant, new, condition)

    def take(self, vectors: Iterable[Result], items: Iterable[Result]) -> None:
        """What was answered."""
        self._take_scores([row for result in vectors for row in result.rows])
        for result in items:
            for row in result.rows:
                if not self._condition.checks or self._condition.admits(cast(str, row[2]), cast("str | None", row[3])):
                    self.rows[cast(bytes, row[0]), cast(bytes, row[1])] = row

    def _take_scores(self, rows: Sequence[Row]) -> None:
        for key, score in _best_of_items(self._tenant, self._query, rows).items() if rows else ():
            self._scores[key] = max(score, self._scores.get(key, score))

    def best(self, wanted: int) -> list[tuple[ItemKey, float]]:
        """The best so far, but for those whose items were asked for and are not there, or not as wanted."""
        there = [
            entry
            for entry in self._scores.items()
            if (entry[0] in self.rows or entry[0] not in self._asked)
            and (self._least is None or entry[1] >= self._least)
        ]
        return nsmallest(wanted, there, key=lambda entry: (-entry[1], entry[0]))


def _best_of_items(tenant: str, query: Query, rows: Sequence[Row]) -> dict[ItemKey, float]:
    """The best score of each item among the embeddings of some rows; those that are damaged are passed over."""
    width = 4 * len(query.values)
    sound = sound_embeddings(tenant, rows)
    if len(sound) < len(rows):
        DAMAGE.warning("Embeddings whose checksum is wrong were left out of a search.")
    fitting = [(row, embedding) for row, embedding in sound if len(embedding) == width]
    best: dict[ItemKey, float] = {}
    for (row, _), score in zip(fitting, query.scores([embedding for _, embedding in fitting]), strict=True):
        if not isnan(score):
            key = (cast(bytes, row[0]), cast(bytes, row[1]))
            best[key] = max(score, best.get(key, score))
    return best
