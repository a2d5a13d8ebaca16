"""Embeddings of recently searched ranges in memory, and how they follow the server. Generators that do no I/O."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from ...engine.operation import Batch, Operation, fetch
from ...lru_cache import CachePart, LRUCache
from ...runtime.database import Database
from .sealed_items import SealedItems
from .statements.tables import MemoryDialect, Range
from .statements.vectors import SIZE, EmbeddingRow, StateRow, range_state, whole_range
from .vectors.matrix import Matrix, size_bytes

#: The path, item key and number of an embedding.
VectorKey: TypeAlias = tuple[bytes, bytes, int]

#: If more namespaces of a range have changed, the whole range is loaded again.
MAX_CHANGED_NAMESPACES = 100

#: The number of ranges whose search is remembered.
_SEARCHED_REMEMBERED = 1_000


class Write(NamedTuple):
    """A write to a namespace.

    Args:
        stamp: The stamp that the write gave to the namespace.
        token: The write's random token.
    """

    stamp: int
    token: bytes


#: The last known write to each namespace, by the namespace's path.
Writes: TypeAlias = Mapping[bytes, Write]


class Scope(NamedTuple):
    """The current state of a namespace.

    Args:
        last_write: The last write.
        purged: Removals up to this stamp are no longer recorded: a cache that is older must read the namespace again.
        previous_token: The token of the write before the last one.
    """

    last_write: Write
    purged: int
    previous_token: bytes | None


@dataclass(slots=True)
class RangeState:
    """The rows of `range_state` or `whole_range`, from one consistent read.

    Args:
        scopes: The namespaces of the range, by path.
        found_tokens: The tokens of known writes that the server still has.
        removed: Embeddings that were removed since the known writes, and those of other models.
        embeddings: Embeddings of the model that were written since, or all.
    """

    scopes: dict[bytes, Scope] = field(default_factory=dict)
    found_tokens: set[bytes] = field(default_factory=set)
    removed: list[VectorKey] = field(default_factory=list)
    embeddings: list[EmbeddingRow] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Iterable[StateRow]) -> RangeState:
        """Return the state that some rows describe."""
        state = cls()
        for stamp, purged, token, previous, path, key, number, embedding in rows:
            if path is not None and key is not None and number is not None:
                if embedding is None:
                    state.removed.append((path, key, number))
                else:
                    state.embeddings.append(EmbeddingRow(path, key, number, embedding))
            elif path is not None and stamp is not None and purged is not None and token is not None:
                state.scopes[path] = Scope(Write(stamp, token), purged, previous)
            elif token is not None:
                state.found_tokens.add(token)
        return state

    @property
    def writes(self) -> dict[bytes, Write]:
        """The last write to each namespace."""
        return {path: scope.last_write for path, scope in self.scopes.items()}

    def changed_since(self, last_writes: Writes) -> list[bytes]:
        """Return the namespaces whose last write is not the known one."""
        return [path for path, scope in self.scopes.items() if last_writes.get(path) != scope.last_write]

    def must_be_read_anew(self, path: bytes, last_writes: Writes) -> bool:
        """Check whether the recorded changes since the known write are incomplete.

        They are incomplete if removals since then were purged, or if the server no longer has the known write: it is
        too old, or the server lost it, and with it all later writes that this process has read.
        """
        if path not in last_writes:
            return True
        stamp, token = last_writes[path]
        scope = self.scopes[path]
        return scope.purged > stamp or (scope.previous_token != token and token not in self.found_tokens)


@dataclass(slots=True)
class CachedRange:
    """The embeddings of a range, as of the last known write to each of its namespaces. Hold the lock to use it.

    Args:
        matrix: The embeddings.
        writes: The last known writes.
        others: The number of embeddings of other models that were left out.
    """

    matrix: Matrix[VectorKey]
    writes: dict[bytes, Write]
    others: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class CachedRanges:
    """Loads ranges that are searched repeatedly, and brings them up to date. Safe to share between threads.

    Args:
        sql: The names of the tables.
        limit_bytes: The maximum memory of all ranges; the least recently used ones are evicted.
        sealed: Opens embeddings.
        model: The model whose embeddings are loaded.
    """

    def __init__(self, sql: MemoryDialect, limit_bytes: int, sealed: SealedItems, model: int) -> None:
        self._sql = sql
        self._model = model
        self._sealed = sealed
        self._limit_bytes = limit_bytes
        self._ranges: LRUCache[CachedRange] | CachePart[CachedRange] = LRUCache(limit_bytes)
        self._is_small: LRUCache[bool] = LRUCache(_SEARCHED_REMEMBERED)

    def attach(self, database: Database, tables: Hashable) -> None:
        """Use the caches of a database. All stores with the same limit share it, whatever their tables and models."""
        own = tables, self._model
        self._ranges = CachePart(database.embeddings(self._limit_bytes), own)
        self._is_small = database.cache(("searched ranges", own), lambda: self._is_small)

    def get(self, tenant: str, where: Range) -> CachedRange | None:
        """Return a range; None if it is not in memory."""
        return self._ranges.get((tenant, where))

    def was_searched(self, tenant: str, where: Range) -> bool:
        """Check whether a range was searched on the server lately."""
        return self._is_small.get((tenant, where)) is not None

    def remember_search(self, tenant: str, where: Range, *, is_small: bool) -> None:
        """Remember that a range was searched on the server, and whether it has few embeddings."""
        self._is_small.put((tenant, where), is_small)

    def load(self, tenant: str, where: Range, dims: int) -> Operation[CachedRange | None]:
        """Return the embeddings of a range, and keep them; None if they do not fit into the memory."""
        least = 1 if self._is_small.get((tenant, where)) else None
        if least is None:
            ((least,),) = yield from fetch(
                SIZE(self._sql, tenant=tenant, pieces={"range": where.condition("v")}, **where.params)
            )
        if size_bytes(least, dims) > self._limit_bytes:
            return None
        cached = CachedRange(Matrix(dims), {})
        yield from self._read(tenant, where, cached)
        self._ranges.put((tenant, where), cached, cached.matrix.size_bytes)
        return cached

    def refresh(
        self,
        tenant: str,
        where: Range,
        cached: CachedRange,
        state: RangeState,
        last_writes: Writes,
        *,
        with_changes: bool,
    ) -> Operation[bool]:
        """Bring a range up to date; returns False if nothing has changed.

        Args:
            tenant: The tenant.
            where: The range.
            cached: Its embeddings.
            state: The state of the range on the server.
            last_writes: The last known writes of the range when its state was requested.
            with_changes: Whether the state has the changes since these writes.
        """
        changed = state.changed_since(last_writes)
        if not changed and len(state.scopes) == len(last_writes):
            return False
        if len(changed) > MAX_CHANGED_NAMESPACES:
            yield from self._read(tenant, where, cached)
        else:
            if not with_changes and (since := {path: last_writes[path] for path in changed if path in last_writes}):
                state = RangeState.of((yield from fetch(range_state(self._sql, tenant, where, self._model, since))))
                changed = [path for path in changed if path in state.scopes]
            yield from self._apply(tenant, cached, state, last_writes, changed)
        self._ranges.put((tenant, where), cached, cached.matrix.size_bytes)
        return True

    def _read(self, tenant: str, where: Range, cached: CachedRange) -> Operation[None]:
        """Read a whole range."""
        state = RangeState.of((yield from fetch(whole_range(self._sql, tenant, where, self._model))))
        matrix: Matrix[VectorKey] = Matrix(cached.matrix.dims)
        matrix.fill(self._sealed.open_undamaged(tenant, state.embeddings, self._model))
        with cached.lock:
            cached.matrix, cached.writes = matrix, state.writes
            cached.others = len(state.removed)

    def _apply(
        self, tenant: str, cached: CachedRange, state: RangeState, last_writes: Writes, changed: Sequence[bytes]
    ) -> Operation[None]:
        """Apply the recorded changes of some namespaces; namespaces with incomplete records are read anew."""
        anew = {path for path in changed if state.must_be_read_anew(path, last_writes)}
        dropped = anew | {path for path in last_writes if path not in state.scopes}
        writes = {path: state.scopes[path].last_write for path in changed if path not in anew}
        rows = [row for row in state.embeddings if row.path in writes]
        if anew:
            queries = [whole_range(self._sql, tenant, Range(path, exact=True), self._model) for path in anew]
            results = yield Batch(tuple(queries), atomic=False)
            for query in queries:
                read = RangeState.of(results.rows(query))
                writes |= read.writes
                rows += read.embeddings
        undamaged = self._sealed.open_undamaged(tenant, rows, self._model)
        with cached.lock:
            if cached.writes != last_writes:
                return  # another thread was faster
            matrix = cached.matrix
            for key in [key for key in matrix if key[0] in dropped] if dropped else ():
                matrix.remove(key)
            for key in (*state.removed, *(row.vector_key for row in rows)):  # a damaged embedding is removed as well
                if key[0] in writes:
                    matrix.remove(key)
            matrix.fill(undamaged)
            for path in dropped:
                cached.writes.pop(path, None)
            cached.writes.update(writes)
