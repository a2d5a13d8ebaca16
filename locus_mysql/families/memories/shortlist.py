"""The candidates of a search by meaning that are compared exactly: `Shortlist`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from math import isnan
from typing import NamedTuple

from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.filters import ItemFilter
from ...dialect.memories.ranges import Range
from ...dialect.memories.reading import ItemRow
from ...dialect.memories.vectors import EmbeddingRow
from ...dialect.statement import Query
from ...engine.logs import DAMAGE
from ...engine.operation import Batch, Operation, Results
from ...runtime.damaged_rows import readable
from .records import MemoryHit, item_of
from .sealed_items import SealedItems
from .vectors.cache import RangeKey
from .vectors.scoring import QueryVector
from .vectors.stored import verified_embeddings
from .vectors.table import Candidate, VectorKey
from .writing import ItemKey


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
        exact: Whether the hits must be the best for certain, at the cost of loading the codes of the range.
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

    @property
    def range_key(self) -> RangeKey:
        """The key of the range in the cache."""
        return RangeKey(self.tenant, self.where.path, self.where.exact)


class ShortlistQueries(NamedTuple):
    """The statements that read more of a shortlist.

    Args:
        embeddings: Embeddings, for their exact scores.
        items: Items.
    """

    embeddings: tuple[Query[EmbeddingRow], ...]
    items: tuple[Query[ItemRow], ...]


class Shortlist:
    """The candidates of a search whose exact scores or items are known.

    Args:
        sql: The statements.
        search: The search.
        sealed: Decrypts rows.
        model: The query's model; embeddings of others are not compared.
    """

    def __init__(self, sql: MemoryDialect, search: NearestSearch, sealed: SealedItems, model: int) -> None:
        self._sql, self._sealed, self._model = sql, sealed, model
        self._search = search
        self._scores: dict[ItemKey, float] = {}
        self._items: dict[ItemKey, ItemRow] = {}
        self._requested: set[ItemKey] = set()

    def queries(self, embeddings: Iterable[VectorKey], items: Iterable[ItemKey]) -> ShortlistQueries:
        """Return the statements that read embeddings, and items that were not requested before."""
        new = [key for key in dict.fromkeys(items) if key not in self._requested]
        self._requested.update(new)
        return ShortlistQueries(
            self._sql.vectors.exact(self._search.tenant, list(embeddings)),
            self._sql.reading.get(self._search.tenant, new, self._search.filter),
        )

    def add(self, results: Results, queries: ShortlistQueries) -> list[EmbeddingRow]:
        """Add the results of `queries`; returns the embeddings whose checksum is right."""
        rows = [row for query in queries.embeddings for row in results.rows(query)]
        embeddings = verified_embeddings(self._search.tenant, rows, self._sealed)
        if len(embeddings) < len(rows):
            DAMAGE.warning("Embeddings whose checksum is wrong were left out of a search.")
        self._add_embeddings(embeddings)
        for query in queries.items:
            for item in results.rows(query):
                if self._search.filter.admits(item.value, item.metadata):
                    self._items[item.path, item.key] = item
        return embeddings

    def add_scores(self, scores: Mapping[VectorKey, float]) -> None:
        """Add exact scores; of several embeddings of an item, the best score is used. NaN marks a damaged one."""
        for (path, key, _), score in scores.items():
            if not isnan(score):
                self._scores[path, key] = max(score, self._scores.get((path, key), score))

    def best(self) -> list[tuple[ItemKey, float]]:
        """The best items so far with their scores, without those that do not exist or do not match the filter."""
        least = self._search.min_score
        found = [
            entry
            for entry in self._scores.items()
            if (entry[0] in self._items or entry[0] not in self._requested) and (least is None or entry[1] >= least)
        ]
        return nsmallest(self._search.limit, found, key=lambda entry: (-entry[1], entry[0]))

    def hits(self, known: Sequence[Candidate], others: Iterator[Candidate]) -> Operation[list[MemoryHit]]:
        """Return the best hits: read candidates until no other one can be a hit, then read their items.

        Args:
            known: The candidates whose scores were added.
            others: The others, in falling order of their bounds.
        """
        search = self._search
        bound, count = known[-1].bound if known else 0.0, len(known)
        while True:
            best = self.best()
            unread = [key for key, _ in best if key not in self._items]
            certain = len(best) >= search.limit and best[-1][1] > bound
            done = certain or (search.min_score is not None and bound < search.min_score)
            more = [] if done else list(islice(others, 3 * count))
            if not more and not unread:
                return list(readable(self._hit, best))
            count += len(more)
            filtered = [item_key_of(one.key) for one in more] if search.filter.sql else []
            queries = self.queries([one.key for one in more], [*unread, *filtered])
            self.add((yield Batch((*queries.embeddings, *queries.items), atomic=False)), queries)
            bound = more[-1].bound if more else bound

    def _hit(self, found: tuple[ItemKey, float]) -> MemoryHit:
        key, score = found
        return MemoryHit(item_of(self._search.tenant, self._items[key], self._sealed), score)

    def _add_embeddings(self, embeddings: Sequence[EmbeddingRow]) -> None:
        fitting = [
            row for row in embeddings if len(row.embedding) == 4 * self._search.dims and row.model == self._model
        ]
        scores = self._search.query.scores([row.embedding for row in fitting])
        self.add_scores({(row.path, row.key, row.number): score for row, score in zip(fitting, scores, strict=True)})


def item_key_of(key: VectorKey) -> ItemKey:
    """Return the key of the item that an embedding belongs to."""
    path, item_key, _ = key
    return path, item_key
