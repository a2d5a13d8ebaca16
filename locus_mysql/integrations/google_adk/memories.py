"""The memory service of Google ADK: `AdkMemoryService`."""

from __future__ import annotations

from typing import Unpack

from google.adk.memory.base_memory_service import BaseMemoryService
from pydantic import SecretStr

from ...config import Keywords, MySQLConfig
from ...families.memories.base import AsyncMemories
from ...families.memories.embedding import EmbedFunction
from ...families.memories.embedding_options import VECTOR_CACHE_BYTES, EmbeddingOptions
from ...families.memories.vectors.scoring import Metric
from ...runtime.database import Database, share
from ...runtime.stores import awaited
from .memory_operations import MemoryServiceOperations


class AdkMemoryService(AsyncMemories[MemoryServiceOperations], BaseMemoryService):
    """Long-term memory for Google ADK in MySQL: a `google.adk.memory.BaseMemoryService` with all its methods.

    Args:
        where: A `Database` that is shared with other stores, a DSN, or a `MySQLConfig`; or give options as keywords.
        dims: The width of embeddings, 1 to 16,383; without it, memories are searched by word.
        embed: A function that embeds a list of texts; sync (run in a thread) or async. With it, memories are searched
            by word and by meaning.
        metric: How embeddings are compared: ``cosine``, ``dot`` or ``euclidean``.
        model: The name of the model; by default that which ``embed`` has. Embeddings of other models are not compared.
        vector_cache_bytes: Memory for the cache of repeated searches by meaning.
        limit: The maximum number of memories that a search returns.
        options: Options of `MySQLConfig`, of which ``tenant``, ``ttl_s`` and ``search_parser`` apply to memories.

    Example:
        ```python
        async with AdkMemoryService("mysql://user:password@localhost/app") as memory:
            event = Event(author="user", invocation_id="1", message="I live in Lisbon.")
            await memory.add_events_to_memory(app_name="shop", user_id="ada", events=[event])
            found = await memory.search_memory(app_name="shop", user_id="ada", query="Who lives in Lisbon?")
            assert found.memories[0].id == event.id
        ```
    """

    def __init__(
        self,
        where: str | SecretStr | MySQLConfig | Database | None = None,
        *,
        dims: int | None = None,
        embed: EmbedFunction | None = None,
        metric: Metric = "cosine",
        model: str = "",
        vector_cache_bytes: int = VECTOR_CACHE_BYTES,
        limit: int = 10,
        **options: Unpack[Keywords],
    ) -> None:
        database, config, owned = share(where, options)
        embedding = EmbeddingOptions(dims, embed, metric=metric, model=model, vector_cache_bytes=vector_cache_bytes)
        super().__init__(MemoryServiceOperations(config, embedding, limit), database, owned=owned)

    @awaited(MemoryServiceOperations.add_session_to_memory)
    def add_session_to_memory(self) -> None: ...
    @awaited(MemoryServiceOperations.add_events_to_memory)
    def add_events_to_memory(self) -> None: ...
    @awaited(MemoryServiceOperations.add_memory)
    def add_memory(self) -> None: ...
    @awaited(MemoryServiceOperations.search_memory)
    def search_memory(self) -> None: ...
    @awaited(MemoryServiceOperations.delete_memory)
    def delete_memory(self) -> None: ...
