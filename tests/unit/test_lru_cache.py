"""`LRUCache`."""

from __future__ import annotations

from locus_mysql.lru_cache import CachePart, LRUCache


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


def test_parts_of_a_cache_share_its_limit_and_keep_their_keys_apart() -> None:
    whole: LRUCache[str] = LRUCache(10)
    one, other = CachePart[str](whole, "one"), CachePart[str](whole, "other")
    one.put("key", "a", size=6)
    other.put("key", "b", size=4)
    assert (one.get("key"), other.get("key")) == ("a", "b")
    other.put("next", "c", size=3)
    assert (one.get("key"), other.get("key"), other.get("next")) == (None, "b", "c")
    assert (one.pop("next"), other.pop("next"), other.get("next")) == (None, "c", None)
