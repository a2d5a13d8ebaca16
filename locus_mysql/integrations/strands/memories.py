"""The memory store of Strands Agents: `StrandsMemoryStore`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from pydantic import SecretStr
from strands.memory.types import MemoryStore

from ...config import Keywords, MySQLConfig
from ...families.memories.base import AsyncMemories
from ...families.memories.embedding import EmbedFunction
from ...families.memories.embedding_options import VECTOR_CACHE_BYTES, EmbeddingOptions
from ...families.memories.vectors.scoring import Metric
from ...runtime.database import Database, share
from ...runtime.stores import awaited
from .memory_operations import MemoryStoreOperations

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig

#: The maximum number of memories that a search returns if neither the store nor the call names a number.
DEFAULT_RESULTS = 5


class StrandsMemoryStore(AsyncMemories[MemoryStoreOperations], MemoryStore):
    """Long-term memory for Strands Agents in MySQL: a `strands.memory.MemoryStore` with `search` and `add`.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        name: The name of the store, by which the manager and its tools know it.
        namespace: The labels under which memories are stored; by default the name. Stores of different users have
            different labels, or different tenants.
        description: For the model, in the descriptions of tools.
        max_search_results: The maximum number of memories that a search returns.
        writable: Whether memories may be added.
        extraction: Whether and how the manager extracts memories from conversations.
        dims: The width of embeddings, 1 to 16,383; without it, memories are searched by word.
        embed: A function that embeds a list of texts; sync (run in a thread) or async. With it, memories are searched
            by word and by meaning.
        metric: How embeddings are compared: ``cosine``, ``dot`` or ``euclidean``.
        model: The name of the model; by default that which ``embed`` has. Embeddings of other models are not compared.
        vector_cache_bytes: Memory for the cache of repeated searches by meaning.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search_parser`` apply to memories.

    Example:
        ```python
        async with StrandsMemoryStore("mysql://user:password@localhost/app", name="facts") as memory:
            await memory.add("Ada lives in Lisbon.", {"source": "chat"})
            (found,) = await memory.search("Who lives in Lisbon?")
            assert found.content == "Ada lives in Lisbon."
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        name: str,
        namespace: Sequence[str] | None = None,
        description: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        embedding = EmbeddingOptions(dims, embed, metric=metric, model=model, vector_cache_bytes=vector_cache_bytes)
        labels = (name,) if namespace is None else tuple(namespace)
        limit = DEFAULT_RESULTS if max_search_results is None else max_search_results
        operations = MemoryStoreOperations(config, embedding, labels, limit, writable=writable)
        super().__init__(operations, database, owned=owned)
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction

    @awaited(MemoryStoreOperations.search)
    def search(self) -> None: ...
    @awaited(MemoryStoreOperations.add)
    def add(self) -> None: ...
