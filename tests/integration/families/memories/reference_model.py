"""A reference model of a memory store: a dict that each search scans."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from typing import Any, TypeAlias

from locus_mysql.families.memories.vectors.coding import floats_of

Key: TypeAlias = tuple[tuple[str, ...], str]

#: The number of hits that a hybrid search takes from each search, and the constant of the rank fusion, as documented.
FUSED, SOFTENING = 100, 60


@dataclass
class Item:
    """An item of the model.

    Args:
        value: Dict with a number ``n`` and a text ``t``.
        metadata: As given.
        embeddings: As 32-bit floats.
        version: Rises with each write.
        written: Rises with each write of any item.
        expires: Whether it was given a time to live.
    """

    value: dict[str, Any]
    metadata: dict[str, Any]
    embeddings: list[list[float]]
    version: int
    written: int
    expires: bool

    @property
    def words(self) -> set[str]:
        """Return the words by which a search finds the item."""
        return set(self.value["t"].split())


@dataclass
class Found:
    """A hit of the model."""

    key: Key
    score: float | None


@dataclass
class ModelMemories:
    """Items by namespace and key."""

    items: dict[Key, Item] = field(default_factory=dict)
    writes: int = 0

    def put(
        self, key: Key, value: dict[str, Any], metadata: dict[str, Any], embeddings: Sequence[Any], expires: bool
    ) -> int:
        """Write an item; returns its version."""
        before = self.items.get(key)
        version = 1 if before is None else before.version + 1
        rounded = [list(floats_of(vector, None)) for vector in embeddings]
        self.items[key] = Item(copy.deepcopy(value), dict(metadata), rounded, version, self.writes, expires)
        return version

    def delete(self, key: Key) -> bool:
        """Delete an item."""
        return self.items.pop(key, None) is not None

    def version(self, key: Key) -> int:
        """Return an item's version; 0 if there is none."""
        return self.items[key].version if key in self.items else 0

    def within(self, prefix: tuple[str, ...], filter: Mapping[str, Any] | None, *, only_here: bool) -> dict[Key, Item]:
        """Return the items that a search may find."""
        return {
            key: item
            for key, item in self.items.items()
            if (key[0] == prefix if only_here else key[0][: len(prefix)] == prefix) and fulfils(item.value, filter)
        }

    def newest(self, among: Mapping[Key, Item]) -> list[Found]:
        """Return matching items, most recently written first."""
        return [Found(key, None) for key in sorted(among, key=lambda key: (-among[key].written, key))]

    def words(self, among: Mapping[Key, Item], query: str) -> list[Found]:
        """Return matching items by the weights of the query's words in them, then the newest. Rare words weigh more."""
        wanted = list(dict.fromkeys(query.split()))
        hits = {key: item for key, item in among.items() if item.words.intersection(wanted)}
        weights = {
            word: log(1 + len(hits) / max(1, sum(word in item.words for item in hits.values()))) for word in wanted
        }
        whole = sum(weights.values())
        found = [
            (sum(weights[word] for word in wanted if word in item.words) / whole, -item.written, key)
            for key, item in hits.items()
        ]
        return [Found(key, score) for score, _, key in sorted(found, key=lambda one: (-one[0], *one[1:]))]

    def nearest(self, among: Mapping[Key, Item], query: Sequence[float]) -> list[Found]:
        """Return matching items ordered by their nearest embedding."""
        asked = list(floats_of(query, None))
        scored = [
            (-max(cosine(asked, vector) for vector in item.embeddings), key)
            for key, item in among.items()
            if item.embeddings
        ]
        return [Found(key, -score) for score, key in sorted(scored)]

    def hybrid(self, among: Mapping[Key, Item], words: str, query: Sequence[float]) -> list[Found]:
        """Return the hits of both searches, fused by rank."""
        scores: dict[Key, float] = {}
        for found in (self.nearest(among, query)[:FUSED], self.words(among, words)[:FUSED]):
            for rank, hit in enumerate(found, 1):
                scores[hit.key] = scores.get(hit.key, 0.0) + (SOFTENING + 1) / 2 / (SOFTENING + rank)
        return [Found(key, scores[key]) for key in sorted(scores, key=lambda key: (-scores[key], key))]


def fulfils(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Return whether a value's ``n`` matches a filter of the state machine."""
    wanted = (filter or {}).get("n")
    if isinstance(wanted, Mapping):
        return bool(value["n"] >= wanted["$gte"])
    return wanted is None or value["n"] == wanted


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine similarity of two vectors."""
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    lengths = [math.sqrt(math.fsum(value * value for value in vector)) for vector in (one, other)]
    return product / lengths[0] / lengths[1]
