"""Loading ranges into the cache of codes, and bringing them up to date, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...dialect.memories.dialect import MemoryDialect
from ...dialect.memories.ranges import Range
from ...dialect.memories.vectors import CodeRow, EmbeddingRow
from ...engine.operation import Batch, Operation, fetch
from .range_state import RangeState
from .sealed_items import SealedItems
from .shortlist import NearestSearch
from .vectors.cache import CachedRange, VectorCache, Write, Writes
from .vectors.table import CodeTable, VectorKey

#: If more namespaces of a range have changed, the whole range is loaded again.
MAX_CHANGED_NAMESPACES = 100


class CachedRanges:
    """Loads ranges, and brings them up to date.

    Args:
        sql: The statements.
        cache: The cache.
        sealed: Decrypts codes.
        model: The model whose embeddings are loaded.
    """

    def __init__(self, sql: MemoryDialect, cache: VectorCache, sealed: SealedItems, model: int) -> None:
        self._sql = sql
        self._model = model
        self._sealed = sealed
        self._cache = cache

    def load(self, search: NearestSearch) -> Operation[CachedRange | None]:
        """Return the codes of a search's range, and add them to the cache if they fit.

        None if they do not fit, unless the search must be exact, or the rows are encrypted.
        """
        vectors = self._sql.vectors
        size = vectors.size_by_codes if self._sealed.is_on else vectors.size
        ((count,),) = yield from fetch(size(search.tenant, search.where))
        fits = self._cache.fits(count, search.dims)
        if not fits and not search.exact and not self._sealed.is_on:
            return None
        loaded = yield from self._read(search)
        if fits:
            self._cache.put(search.range_key, loaded)
        return loaded

    def keep_embeddings(self, cached: CachedRange) -> None:
        """Keep the embeddings of a range beside their codes if they are few."""
        with cached.lock:
            table = cached.table
            if not table.can_keep_embeddings or not self._cache.fits_embeddings(len(table), table.dims):
                return
            table.keep_embeddings()
        self._cache.evict()

    def refresh(
        self, search: NearestSearch, cached: CachedRange, state: RangeState, known: Writes, *, with_changes: bool
    ) -> Operation[bool]:
        """Bring a range up to date; returns False if nothing has changed.

        Args:
            search: The search.
            cached: The range.
            state: The state of the range on the server.
            known: The last known writes of the range when its state was requested.
            with_changes: Whether the state has the changes since these writes.
        """
        changed = state.changed_since(known)
        if not changed and len(state.scopes) == len(known):
            return False
        if len(changed) > MAX_CHANGED_NAMESPACES:
            loaded = yield from self._read(search)
            with cached.lock:
                cached.table, cached.writes = loaded.table, loaded.writes
        else:
            yield from self._apply_changes(search, cached, state, known, changed, with_changes=with_changes)
        self._cache.evict()
        return True

    def _apply_changes(
        self,
        search: NearestSearch,
        cached: CachedRange,
        state: RangeState,
        known: Writes,
        changed: Sequence[bytes],
        *,
        with_changes: bool,
    ) -> Operation[None]:
        tenant, vectors = search.tenant, self._sql.vectors
        since = {path: known[path] for path in changed if path in known}
        if since and not with_changes:
            state = RangeState.of((yield from fetch(vectors.range_state(tenant, search.where, since))))
            changed = [path for path in changed if path in state.scopes]
        reread = {path for path in changed if state.must_be_read_anew(path, known)}
        loads = [vectors.all_codes(tenant, Range(path, exact=True)) for path in changed if path in reread]
        loaded: list[CodeRow] = []
        if loads:
            results = yield Batch(tuple(loads), atomic=False)
            loaded = [row for load in loads for row in results.rows(load)]
        with cached.lock:
            if cached.writes != known:
                return  # another thread was faster
            for path in changed:
                if path not in reread:
                    self._apply(search.tenant, cached, state, path)
            for path in (*reread, *(path for path in known if path not in state.scopes)):
                cached.table.remove_path(path)
                cached.writes.pop(path, None)
            cached.writes.update(_writes_in(loaded))
            cached.table.fill(self._codes_in(tenant, loaded))

    def _read(self, search: NearestSearch) -> Operation[CachedRange]:
        rows = yield from fetch(self._sql.vectors.all_codes(search.tenant, search.where))
        table = CodeTable(search.dims, self._model)
        table.fill(self._codes_in(search.tenant, rows))
        return CachedRange(table, _writes_in(rows))

    def _apply(self, tenant: str, cached: CachedRange, state: RangeState, path: bytes) -> None:
        """Apply the recorded changes of a namespace."""
        for key, code in state.changes.get(path, ()):
            if code is None:
                cached.table.remove(key)
            else:
                cached.table.put(key, self._sealed.code(tenant, *key, code))
        cached.writes[path] = state.scopes[path].last_write

    def _codes_in(self, tenant: str, rows: Iterable[CodeRow]) -> list[tuple[VectorKey, bytes]]:
        return [
            ((path, key, number), self._sealed.code(tenant, path, key, number, code))
            for path, key, number, code, _ in rows
            if number is not None and code is not None
        ]


def add_embeddings(cached: CachedRange, embeddings: Iterable[EmbeddingRow], writes: Writes) -> None:
    """Keep embeddings that were read when these were the last writes to a range, unless it was refreshed meanwhile."""
    with cached.lock:
        if cached.writes == writes:
            for row in embeddings:
                cached.table.add_embedding((row.path, row.key, row.number), row.embedding)


def _writes_in(rows: Iterable[CodeRow]) -> dict[bytes, Write]:
    return {path: Write(stamp, token) for path, token, number, _, stamp in rows if number is None and stamp is not None}
