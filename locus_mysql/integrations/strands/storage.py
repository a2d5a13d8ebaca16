"""The storage of Strands Agents: `StrandsStorage`."""

from __future__ import annotations

import copy
from collections.abc import Generator
from typing import Any, Self, TypeAlias, TypeVar, Unpack

from pydantic import SecretStr
from strands.storage.search import KeywordSearchStrategy
from strands.storage.search.types import SearchStrategy
from strands.storage.storage import _NAMESPACED, StorageSearchResult
from strands.types.exceptions import StorageError

from ...config import Keywords, MySQLConfig
from ...errors import LocusMySQLError
from ...runtime.database import Database, share
from ...runtime.stores import AsyncStore, awaited
from .keys import normalized_key
from .storage_operations import StorageOperations

T = TypeVar("T")

Results: TypeAlias = list[StorageSearchResult]


class StrandsStorage(AsyncStore[StorageOperations]):
    """Keeps bytes under keys in MySQL: a `strands.storage.Storage` for sessions, memories and offloaded contexts.

    A snapshot of an agent is stored as what it adds to the agent's snapshot before it.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        search_strategy: Indexes what is written and searches it. Without one, `search` reads all keys and compares
            words, as the framework's own storages do.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s``, ``compression`` and ``search`` apply.

    Example:
        ```python
        async with StrandsStorage("mysql://user:password@localhost/app") as storage:
            await storage.write("notes/today.md", b"The router blinks.")
            assert await storage.read("notes/today.md") == b"The router blinks."
            assert await storage.list("notes/") == ["notes/today.md"]
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        search_strategy: SearchStrategy[Any] | None = None,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(StorageOperations(config), database, owned=owned)
        self._search_strategy = search_strategy

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key, and replace those that it had. One round trip.

        Args:
            key: Any text but a backslash, a segment ``..`` and NUL; at most 504 characters with the namespace.
                ``//a///b/`` is ``a/b``.
            data: The bytes. `read` returns the same.

        Raises:
            StorageError: The key is invalid, or the server failed; the bytes under the key are the old or the new ones.
        """
        await self._run(self._operations.write(key, data))
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, normalized_key(key), data)
            except Exception as error:
                raise StorageError(f"Wrote '{key}' but indexing failed") from error

    @awaited(StorageOperations.read)
    def read(self) -> None: ...
    @awaited(StorageOperations.delete)
    def delete(self) -> None: ...

    async def search(self, query: str) -> Results:
        """Return the keys whose content fits a query, the best first, with scores and content.

        Args:
            query: A text. Without a search strategy, the score is the number of its words that key and content have.
        """
        return await (self._search_strategy or KeywordSearchStrategy()).search(self, query)

    def namespace(self, prefix: str) -> Self:
        """Return a storage of the keys below a prefix, on the same connections.

        Args:
            prefix: Put before all keys; ``a`` and ``a/`` are the same.
        """
        scoped = copy.copy(self)
        scoped._operations = self._operations.below(prefix)
        scoped._owned = False
        scoped._namespaced = _NAMESPACED  # type: ignore[attr-defined]  # the framework then adds no prefix of its own
        return scoped

    @awaited(StorageOperations.list)
    def list(self) -> None: ...

    async def _run(self, operation: Generator[Any, Any, T]) -> T:
        try:
            return await super()._run(operation)
        except LocusMySQLError as error:
            raise StorageError(str(error)) from error
