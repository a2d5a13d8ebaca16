"""Embeddings without a model: `HashingEmbedder`, for tests and offline use."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...errors import ConfigError, InvalidInput
from .vectors.coding import DIMENSIONS_LIMIT

#: How many texts are embedded before the event loop is given a turn.
_TEXTS_AT_ONCE = 64

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HashedEmbedding:
    """An embedding as Locus' embedders return it.

    Args:
        embedding: The numbers.
        text: What was embedded.
        model: What made it.
        tokens: How many tokens that took; not known here.
    """

    embedding: list[float]
    text: str
    model: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """What Locus asks of an embedder's configuration.

    Args:
        dimension: The width of embeddings.
        max_tokens: Texts may be longer; nothing is cut off.
        batch_size: How many texts may be given at a time.
    """

    dimension: int
    max_tokens: int = 1_000_000
    batch_size: int = 1_000


@dataclass(frozen=True, slots=True)
class HashingCapabilities:
    """What Locus asks of an embedder's capabilities.

    Args:
        supports_query_vs_doc: Texts that are asked for are embedded as those that are stored.
        supports_multimodal: Only texts.
        supports_batching: Several texts at a time.
        max_batch_size: How many.
        max_input_tokens: How long a text may be.
    """

    supports_query_vs_doc: bool = False
    supports_multimodal: bool = False
    supports_batching: bool = True
    max_batch_size: int = 1_000
    max_input_tokens: int = 1_000_000


class HashingEmbedder:
    """Embeds texts by their words' pieces, hashed: for tests and offline use, where no model can be asked.

    Texts that share words, or parts of words, come near each other: "drinks" is near "drink", and "Kaffeetasse" near
    "Kaffee"; upper and lower case are the same. It knows nothing of meaning: "tea" is as far from "beverage" as from
    "bicycle". The same text gives the same embedding in every process, on every machine, in this and later releases.

    It is a function from a list of texts to a list of embeddings, of length 1: for ``embed`` of `MemoryStore` and of
    LangGraph's ``IndexConfig``; and an embedder for ``MySQLMemory(embedder=…)`` and others of Locus' stores.

    Args:
        dims: The width of embeddings, 1 to 16,383. With fewer, texts that share nothing look alike more often.
        pieces: How long the pieces are, at least and at most, counting a mark at each end of a word. For languages
            without blanks between words, ``(1, 2)`` suits better.

    Raises:
        ConfigError: An argument is none of these.

    Example:
        ```python
        embedder = HashingEmbedder()
        async with MemoryStore("mysql://user:password@localhost/app", dims=embedder.dims, embed=embedder) as store:
            await store.put(("users", "ada"), "drink", "Ada drinks green tea in the morning.")
            await store.put(("users", "ada"), "home", "Ada lives in Lisbon.")
            (hit,) = await store.search(("users", "ada"), query="What does she like to drink?", limit=1)
            assert hit.item.key == "drink"
        ```
    """

    def __init__(self, dims: int = 256, *, pieces: tuple[int, int] = (3, 5)) -> None:
        if isinstance(dims, bool) or not isinstance(dims, int) or not 1 <= dims <= DIMENSIONS_LIMIT:
            raise ConfigError(f"dims must be a whole number from 1 to {DIMENSIONS_LIMIT}, not {dims!r:.50}.")
        match pieces:
            case (int(least), int(most)) if 1 <= least <= most <= 100:
                self._lengths = range(least, most + 1)
            case _:
                raise ConfigError(f"pieces must be two lengths from 1 to 100, as in (3, 5), not {pieces!r:.50}.")
        self.dims = dims
        #: Names the way of embedding, as a model's name does: for ``model`` of `MemoryStore`.
        self.model = f"hashing-1-{dims}-{least}-{most}"

    def __call__(self, texts: Iterable[str]) -> list[list[float]]:
        """The embedding of each text.

        Raises:
            InvalidInput: One is no text.
        """
        return [self._embedding(text) for text in texts]

    @property
    def dimension(self) -> int:
        """The width of embeddings."""
        return self.dims

    @property
    def config(self) -> HashingConfig:
        """The configuration, as Locus asks for it."""
        return HashingConfig(self.dims)

    @property
    def capabilities(self) -> HashingCapabilities:
        """What it can do, as Locus asks for it."""
        return HashingCapabilities()

    async def embed(self, text: str) -> HashedEmbedding:
        """Embed a text."""
        return HashedEmbedding(self._embedding(text), text, self.model)

    async def embed_batch(self, texts: list[str]) -> list[HashedEmbedding]:
        """Embed texts."""
        made = []
        for place, text in enumerate(texts):
            if place and place % _TEXTS_AT_ONCE == 0:
                await asyncio.sleep(0)
            made.append(await self.embed(text))
        return made

    async def embed_query(self, query: str) -> HashedEmbedding:
        """Embed what is asked for."""
        return await self.embed(query)

    async def embed_documents(self, documents: list[str]) -> list[HashedEmbedding]:
        """Embed what is to be stored."""
        return await self.embed_batch(documents)

    def _embedding(self, text: str) -> list[float]:
        """Only operations that IEEE 754 rounds the same everywhere: no logarithm, no sum in another order."""
        if not isinstance(text, str):
            raise InvalidInput(f"What is embedded must be text, not {type(text).__name__}.")
        values = [0.0] * self.dims
        first = 0
        for piece, count in Counter(self._pieces(text)).items():
            hashed = zlib.crc32(piece.encode("utf-8", "surrogatepass"))
            first = (hashed >> 1) % self.dims
            values[first] += math.sqrt(count) if hashed & 1 else -math.sqrt(count)
        length = math.sqrt(math.fsum(value * value for value in values))
        if not length:  # all pieces cancelled each other out
            values[first] = length = 1.0
        return [value / length for value in values]

    def _pieces(self, text: str) -> Iterator[str]:
        """Pieces of words, each marked where it begins or ends one; of a text without words, of the text."""
        plain = unicodedata.normalize("NFKC", text).casefold()
        for word in _WORD.findall(plain) or [plain.strip()]:
            marked = f"\x02{word}\x03"
            yield marked
            for length in self._lengths:
                for start in range(len(marked) - length + 1):
                    yield marked[start : start + length]
