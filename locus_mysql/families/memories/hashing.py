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

#: The number of texts that are embedded before the event loop may run other tasks.
_TEXTS_AT_ONCE = 64

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class HashedEmbedding:
    """An embedding as Locus' embedders return it.

    Args:
        embedding: The numbers.
        text: The text that was embedded.
        model: The name of the model.
        tokens: The number of tokens; always None.
    """

    embedding: list[float]
    text: str
    model: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """The configuration of an embedder, as Locus expects it.

    Args:
        dimension: The width of embeddings.
        max_tokens: The documented length of texts; longer ones are not cut off.
        batch_size: The maximum number of texts at a time.
    """

    dimension: int
    max_tokens: int = 1_000_000
    batch_size: int = 1_000


@dataclass(frozen=True, slots=True)
class HashingCapabilities:
    """The capabilities of an embedder, as Locus expects them.

    Args:
        supports_query_vs_doc: Whether queries are embedded differently from stored texts.
        supports_multimodal: Whether inputs other than text are embedded.
        supports_batching: Whether several texts are embedded at a time.
        max_batch_size: The maximum number of texts at a time.
        max_input_tokens: The longest text.
    """

    supports_query_vs_doc: bool = False
    supports_multimodal: bool = False
    supports_batching: bool = True
    max_batch_size: int = 1_000
    max_input_tokens: int = 1_000_000


class HashingEmbedder:
    """Embeds texts by hashing pieces of their words: for tests and offline use, without a model.

    Texts that share words, or parts of words, are near each other: "drinks" is near "drink", and "Kaffeetasse" is near
    "Kaffee"; upper and lower case are the same. Meaning is ignored: "tea" is as far from "beverage" as from "bicycle".
    The same text gives the same embedding in every process, on every machine, in this and later releases.

    It is a function from a list of texts to a list of embeddings of length 1, for ``embed`` of `MemoryStore` and of
    LangGraph's ``IndexConfig``; and an embedder for ``MySQLMemory(embedder=…)`` and other stores of Locus.

    Args:
        dims: The width of embeddings, 1 to 16,383. With fewer dimensions, unrelated texts collide more often.
        pieces: The shortest and the longest piece of a word, counting a mark at each end of the word. For languages
            without spaces between words, ``(1, 2)`` works better.

    Raises:
        ConfigError: An argument is out of range.

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
        #: The name of this way of embedding, for ``model`` of `MemoryStore`.
        self.model = f"hashing-1-{dims}-{least}-{most}"

    def __call__(self, texts: Iterable[str]) -> list[list[float]]:
        """Return the embedding of each text.

        Raises:
            InvalidInput: A value is not text.
        """
        return [self._embedding(text) for text in texts]

    @property
    def dimension(self) -> int:
        """The width of embeddings."""
        return self.dims

    @property
    def config(self) -> HashingConfig:
        """The configuration, as Locus expects it."""
        return HashingConfig(self.dims)

    @property
    def capabilities(self) -> HashingCapabilities:
        """The capabilities, as Locus expects them."""
        return HashingCapabilities()

    async def embed(self, text: str) -> HashedEmbedding:
        """Embed a text."""
        return HashedEmbedding(self._embedding(text), text, self.model)

    async def embed_batch(self, texts: list[str]) -> list[HashedEmbedding]:
        """Embed texts."""
        made = []
        for index, text in enumerate(texts):
            if index and index % _TEXTS_AT_ONCE == 0:
                await asyncio.sleep(0)
            made.append(await self.embed(text))
        return made

    async def embed_query(self, query: str) -> HashedEmbedding:
        """Embed a query."""
        return await self.embed(query)

    async def embed_documents(self, documents: list[str]) -> list[HashedEmbedding]:
        """Embed texts to store."""
        return await self.embed_batch(documents)

    def _embedding(self, text: str) -> list[float]:
        """Uses only operations that IEEE 754 rounds equally everywhere: no logarithms, and sums in a fixed order."""
        if not isinstance(text, str):
            raise InvalidInput(f"What is embedded must be text, not {type(text).__name__}.")
        values = [0.0] * self.dims
        first = 0
        for piece, count in Counter(self._pieces(text)).items():
            hashed = zlib.crc32(piece.encode("utf-8", "surrogatepass"))
            first = (hashed >> 1) % self.dims
            values[first] += math.sqrt(count) if hashed & 1 else -math.sqrt(count)
        length = math.sqrt(math.fsum(value * value for value in values))
        if not length:  # all pieces cancel each other out
            values[first] = length = 1.0
        return [value / length for value in values]

    def _pieces(self, text: str) -> Iterator[str]:
        """Yield pieces of the words, marked at the ends of a word; for a text without words, pieces of the text."""
        plain = unicodedata.normalize("NFKC", text).casefold()
        for word in _WORD.findall(plain) or [plain.strip()]:
            marked = f"\x02{word}\x03"
            yield marked
            for length in self._lengths:
                for start in range(len(marked) - length + 1):
                    yield marked[start : start + length]
