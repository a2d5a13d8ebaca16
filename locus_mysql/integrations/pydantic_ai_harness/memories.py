"""The memory store of Pydantic AI Harness: `PydanticMemoryStore`."""

from __future__ import annotations

from typing import Unpack

from pydantic import SecretStr
from pydantic_ai_harness.memory import MemorySearchResult

from ...config import Keywords, MySQLConfig
from ...runtime.database import Database, share
from ...runtime.methods import awaited
from ...runtime.stores import AsyncStore
from . import searching
from .file_operations import FileOperations
from .paths import check_prefix


class PydanticMemoryStore(AsyncStore[FileOperations]):
    """Keeps the memory files of Pydantic AI Harness in MySQL.

    A `MemoryStore`, `MetadataMemoryStore` and `SearchableMemoryStore` of `pydantic_ai_harness.memory`. The server
    checks versions, so no writer overwrites the change of another one, and a version is never used again. An operation
    is carried out once.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``compression`` apply to files.

    Example:
        ```python
        async with PydanticMemoryStore("mysql://user:password@localhost/app") as store:
            written = await store.write("ada/MEMORY.md", "- likes tea", expected_version=None)
            written = await store.write("ada/MEMORY.md", "- likes green tea", expected_version=written.version)
            assert await store.list_paths("ada/", limit=10) == ["ada/MEMORY.md"]
            await store.delete("ada/MEMORY.md", expected_version=written.version)
        ```
    """

    def __init__(
        self, where: str | SecretStr | MySQLConfig | Database | None = None, **options: Unpack[Keywords]
    ) -> None:
        database, config, owned = share(where, options)
        super().__init__(FileOperations(config), database, owned=owned)

    @awaited(FileOperations.read)
    def read(self) -> None: ...
    @awaited(FileOperations.get_operation)
    def get_operation(self) -> None: ...
    @awaited(FileOperations.write)
    def write(self) -> None: ...
    @awaited(FileOperations.write_with_metadata)
    def write_with_metadata(self) -> None: ...
    @awaited(FileOperations.delete)
    def delete(self) -> None: ...
    @awaited(FileOperations.list_paths)
    def list_paths(self) -> None: ...

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """Search files by words, with the results of the framework's `InMemoryStore`. One round trip.

        Args:
            prefix: The start of their paths. Files behind a further slash are not searched.
            query: Words that are searched in contents and paths, as substrings and without regard to case.
            limit: The maximum number of matches.
            max_files: The maximum number of files to read, in the order of their paths.
            max_chars: The maximum number of characters of all paths, without the prefix, and snippets together.
            max_file_chars: Search only this many of the first characters of each file.

        Raises:
            ValueError: The prefix is invalid.
        """
        check_prefix(prefix)
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return searching.NOTHING
        read = await self._run(self._operations.files_in(prefix, max_files + 1))
        files = [(path, content[:max_file_chars]) for path, content in read[:max_files]]
        found = await searching.search(files, query, prefix=prefix, limit=limit, max_chars=max_chars)
        is_cut = len(read) > max_files or any(len(content) > max_file_chars for _, content in read[:max_files])
        return MemorySearchResult(found.matches, found.scanned, found.truncated or is_cut)
