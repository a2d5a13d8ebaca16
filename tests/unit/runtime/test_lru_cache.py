"""`LRUCache`."""

from __future__ import annotations

from locus_mysql.runtime.lru_cache import LRUCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache: LRUCache[str] = LRUCache(3)
    for key in "abc":
        cache.put(key, key.upper())
    assert cache.get("a") == "A"
    cache.put("d", "D")
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]


def test_sizes_count_and_a_value_that_is_too_large_replaces_nothing_but_its_own_key() -> None:
    cache: LRUCache[int] = LRUCache(10)
    cache.put("a", 1, 4)
    cache.put("b", 2, 4)
    cache.put("a", 3, 6)
    assert (cache.get("a"), cache.get("b")) == (3, 2)
    cache.put("a", 4, 11)
    assert (cache.get("a"), cache.get("b")) == (None, 2)


def test_a_popped_entry_frees_its_size() -> None:
    cache: LRUCache[int] = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert (cache.pop("a"), cache.pop("a")) == (1, None)
    cache.put("c", 3)
    assert (cache.get("b"), cache.get("c")) == (2, 3)
