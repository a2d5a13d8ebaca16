"""The memory store of Strands Agents, `StrandsMemoryStore`, and its operations, which do no I/O."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Unpack

from strands.memory.types import MemoryEntry, MemoryStore, Metadata, SearchOptions

from ...config import ENVIRONMENT, Keywords, MySQLConfig
from ...engine.retry import Backoff
from ...errors import InvalidInput, VersionConflict
from ...families.memories.embedding import VECTOR_CACHE_BYTES, EmbeddingOptions, EmbedFunction, Procedure
from ...families.memories.operations import FrameworkMemories, MemoryOperations
from ...families.memories.puts import Put
from ...families.memories.store import AsyncMemories
from ...families.memories.vectors.coding import Metric
from ...runtime.arguments import check_limit, tenant_of
from ...runtime.database import Where, share
from ...runtime.sealing import content_digest
from ...runtime.stores import awaited_method

if TYPE_CHECKING:
    from strands.memory.extraction.types import ExtractionConfig


#: The first label of the namespaces.
LABEL = "strands"

#: The namespace and the key of the secret from which keys of encrypted memories are derived.
SECRET = (("strands-secret",), "keys")

#: The maximum number of memories that a search returns if neither the store nor the call names a number.
DEFAULT_RESULTS = 5


class StrandsMemoryOperations(FrameworkMemories):
    """Stores the memories of one store.

    Args:
        config: The options.
        options: The options about embeddings.
        namespace: The labels of the store's memories, after `LABEL`.
        limit: The maximum number of memories that a search returns if the call names no number.
        writable: Whether memories may be added.
    """

    def __init__(
        self, config: MySQLConfig, options: EmbeddingOptions, namespace: Sequence[str], limit: int, *, writable: bool
    ) -> None:
        super().__init__(MemoryOperations(config, options))
        self._namespace = self.items.root = (LABEL, *namespace)
        self._limit = check_limit(limit, "max_search_results", 1)
        self._writable = writable
        #: By tenant.
        self._secrets: dict[str, bytes] = {}

    def search(self, query: str, options: SearchOptions | None = None) -> Procedure[list[MemoryEntry]]:
        """Return the memories that fit a query, the best first: by word; with an embed function, by word and meaning.

        Args:
            query: A text. Without a word in it, nothing is found.
            options: ``max_search_results``, at least 1: the most memories that are returned.

        Raises:
            ValueError: ``max_search_results`` is less than 1.
        """
        limit = (options or {}).get("max_search_results")
        limit = self._limit if limit is None else check_limit(limit, "max_search_results", 1)
        hits = yield from self.items.search_text(self._namespace, query, limit)
        return [MemoryEntry(content=hit.item.value, metadata=hit.item.metadata or None) for hit in hits]

    def add(self, content: str, metadata: Metadata | None = None) -> Procedure[str]:
        """Store a memory; returns its key. Two round trips; with ``encryption``, one to three more at first.

        A memory of the same content, but for white space around it, is stored once, with the metadata it had first: the
        framework may add what it extracted several times.

        Args:
            content: The text.
            metadata: JSON values, which `search` returns with it.

        Raises:
            ValueError: The content is empty, the store is not writable, or something cannot be stored exactly.
        """
        if not self._writable:
            raise InvalidInput("The memory store is not writable. Create it with writable=True to add memories.")
        if not content.strip():
            raise InvalidInput("The content of a memory must not be empty.")
        tenant = tenant_of(self.config)
        if self.items.sealed.is_on and tenant not in self._secrets:
            self._secrets[tenant] = yield from self._stored_secret()
        encoded = content.strip().encode(errors="surrogatepass")
        key = content_digest(encoded, self._secrets.get(tenant), tenant, *self._namespace)[:32]
        if (yield from self.items.get(self._namespace, key)) is None:
            yield from self.items.put(self._namespace, key, content, metadata=metadata)
        else:
            yield from self.items.embed_stored([(self._namespace, key)])
        return key

    def _stored_secret(self) -> Procedure[bytes]:
        """Return the tenant's secret, which is stored by the first call."""
        backoff = Backoff("The secret of the tenant's memories was neither found nor stored")
        while (text := (yield from self.items.get(*SECRET))) is None:
            backoff.check()
            new = Put(*SECRET, secrets.token_hex(32), ttl_s=None, index=False)
            with suppress(VersionConflict):  # another process stored one
                yield from self.items.write_batch([new], [], absent=[SECRET])
        return bytes.fromhex(text)


class StrandsMemoryStore(AsyncMemories[StrandsMemoryOperations], MemoryStore):
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
        where: Where = ENVIRONMENT,
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
        database, config, owned = share(type(self), where, options)
        embedding = EmbeddingOptions(dims, embed, metric=metric, model=model, vector_cache_bytes=vector_cache_bytes)
        labels = (name,) if namespace is None else tuple(namespace)
        limit = DEFAULT_RESULTS if max_search_results is None else max_search_results
        operations = StrandsMemoryOperations(config, embedding, labels, limit, writable=writable)
        super().__init__(operations, database, owned=owned)
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction

    search = awaited_method(StrandsMemoryOperations.search)
    add = awaited_method(StrandsMemoryOperations.add)
