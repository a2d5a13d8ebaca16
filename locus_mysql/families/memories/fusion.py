"""Reciprocal rank fusion: joins the hits of a search by word and of one by meaning."""

from __future__ import annotations

from .records import Hits, MemoryHit, MemoryItem, Namespace

#: Number of hits that each search returns for fusion, unless more are requested. For later ranks, only the best rank of
#: an item counts.
FUSED = 100

#: The constant k of reciprocal rank fusion: Cormack, Clarke and Büttcher, SIGIR 2009.
_SOFTENING = 60


def fuse(*found: Hits) -> Hits:
    """Join the hits of several searches, best first; equal ones by namespace and key.

    The score of an item is the sum of 1 / (60 + rank) over the searches that found it among their first `FUSED` hits,
    divided by the sum of an item that is first in all. For an item that is in none of these lists, only its best rank
    counts. So no score depends on the number of hits, and consecutive pages are consistent.
    """
    most = len(found) / (_SOFTENING + 1)
    scores: dict[tuple[Namespace, str], float] = {}
    deeper: dict[tuple[Namespace, str], int] = {}
    items: dict[tuple[Namespace, str], MemoryItem] = {}
    for hits in found:
        for rank, hit in enumerate(hits, 1):
            key = (hit.item.namespace, hit.item.key)
            items[key] = hit.item
            if rank <= FUSED:
                scores[key] = scores.get(key, 0.0) + 1 / (_SOFTENING + rank) / most
            else:
                deeper[key] = min(rank, deeper.get(key, rank))
    for key, rank in deeper.items():
        scores.setdefault(key, 1 / (_SOFTENING + rank) / most)
    ranked = sorted(scores, key=lambda key: (-scores[key], key))
    return Hits((MemoryHit(items[key], scores[key]) for key in ranked), exact=all(hits.exact for hits in found))
