"""Embeddings without a model: `HashingEmbedder`, for tests and offline use."""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

from ...errors import ConfigError, InvalidInput
from .vectors.coding import DIMENSIONS_LIMIT

#: The number of texts that are embedded before the event loop may run other tasks.
_TEXTS_AT_ONCE = 64

#: The documented length of texts, of which longer ones are not cut off, and the maximum number at a time.
_TOKENS, _BATCH = 1_000_000, 1_000

_WORD = re.compile(r"\w+")


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
    def config(self) -> SimpleNamespace:
        """The configuration, as Locus expects it."""
        return SimpleNamespace(dimension=self.dims, max_tokens=_TOKENS, batch_size=_BATCH)

    @property
    def capabilities(self) -> SimpleNamespace:
        """The capabilities, as Locus expects them."""
        limits = {"max_batch_size": _BATCH, "max_input_tokens": _TOKENS}
        return SimpleNamespace(supports_query_vs_doc=False, supports_multimodal=False, supports_batching=True, **limits)

    async def embed(self, text: str) -> SimpleNamespace:
        """Embed a text. The result has the fields of Locus' results: ``embedding``, ``text``, ``model``, ``tokens``."""
        return SimpleNamespace(embedding=self._embedding(text), text=text, model=self.model, tokens=None)

    async def embed_batch(self, texts: list[str]) -> list[SimpleNamespace]:
        """Embed texts."""
        made = []
        for index, text in enumerate(texts):
            if index and index % _TEXTS_AT_ONCE == 0:
                await asyncio.sleep(0)
            made.append(await self.embed(text))
        return made

    async def embed_query(self, query: str) -> SimpleNamespace:
        """Embed a query."""
        return await self.embed(query)

    async def embed_documents(self, documents: list[str]) -> list[SimpleNamespace]:
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
