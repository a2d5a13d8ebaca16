"""Joining what was found by word and by meaning: reciprocal rank fusion."""

from __future__ import annotations

from .records import Hits, MemoryHit, MemoryItem, Namespace

#: Each way gives this many hits to be joined, or as many as are wanted if that is more.
FUSED = 100

#: Softens the first ranks' lead: Cormack, Clarke and Büttcher, SIGIR 2009.
_SOFTENING = 60


def fuse(*found: Hits) -> Hits:
    """Hits of several searches as one list, best first.

    The score of an item is the sum of 1 / (60 + rank) over the searches that found it, divided by what it would be if
    it were first in all.
    """
    most = len(found) / (_SOFTENING + 1)
    scores: dict[tuple[Namespace, str], float] = {}
    items: dict[tuple[Namespace, str], MemoryItem] = {}
    for hits in found:
        for rank, hit in enumerate(hits, 1):
            key = (hit.item.namespace, hit.item.key)
            scores[key] = scores.get(key, 0.0) + 1 / (_SOFTENING + rank) / most
            items[key] = hit.item
    ranked = sorted(scores, key=lambda key: (-scores[key], key))
    return Hits((MemoryHit(items[key], scores[key]) for key in ranked), exact=all(hits.exact for hits in found))
