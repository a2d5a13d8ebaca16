"""Unusual states, small and large: each is returned exactly, or refused before anything is written."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, StateTooLarge

from .conftest import (
    ONE_OF_EACH,
    SMALL_PACKET_BYTES,
    MakeConfig,
    OpenStore,
)

pytestmark = [pytest.mark.kept_tables("agents", "current", "dicts"), pytest.mark.slow]

Contents = Callable[[], Any]


KINDS = ("store", "backend")


both_kinds = pytest.mark.parametrize("kind", KINDS)


one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)


def nested(depth: int, leaf: Any = 1) -> Any:
    for level in range(depth):
        leaf = [leaf] if level % 2 else {"k": leaf}
    return leaf


ODD_STATES: dict[str, dict[str, Any]] = {
    "empty": {},
    "empty key": {"": {"": ""}},
    "empty lists": {"a": [], "b": {}, "c": [[]], "d": [{}]},
    "infinities": {"a": math.inf, "b": [-math.inf]},
    "100 digits": {"a": 10**99 + 7, "b": [-(10**99) - 7], "c": {"d": 2**64, "e": -(2**63) - 1}},
    "lone surrogates": {"a": "\ud800", "b": ["x\udfffy"], "c": {"\udc00": "😀"}},
    "floats": {"a": 0.1 + 0.2, "b": 1e308, "c": 5e-324, "d": -0.0, "e": 1.0, "f": 1e22, "g": [1.5e300]},
    "order": {"z": 1, "a": 2, "m": [3], "b": {"y": 1, "x": 2}},
    "text": {"a": "'\"\\`;-- /* */ %s \0\x1a\x1e\n\r", "b": ["\u2028\u2029\ufeff\ufffe"], "東": "京"},
    "booleans": {"a": True, "b": 1, "c": 1.0, "d": [True, 1, 1.0], "e": None},
    "wide": {f"field {n}": [n] for n in range(5_000)},
    "separators": {"a": "],[{}", "b": ["[],", '"],'], "c": [{"d": "}{"}]},
    "250 deep": {"a": nested(190), "b": [nested(190)]},
}


def exactly(one: Any, other: Any) -> bool:
    """Return whether two states are equal in values, types and order."""
    return repr(one) == repr(other)


@both_kinds
@one_of_each
async def test_an_odd_state_comes_back_exactly(open_store: OpenStore, side: str, kind: str) -> None:
    """It is saved alone, after an ordinary state, and before one; its writer and another process load it."""
    store = open_store(side, kind)
    ordinary = {"log": [{"content": "x" * 5000}]}
    for name, state in ODD_STATES.items():
        stranger = open_store(side, kind)
        for given in (state, ordinary, {**state, **ordinary}, state):
            await store.save(name, given)
            assert exactly(await store.load(name), given), name
            assert exactly(await stranger.load(name), given), name
        await stranger.close()


@pytest.mark.parametrize("depth", [50, 200, 249, 250, 251, 300, 1_000, 5_000])
async def test_deep_nesting_comes_back_exactly_or_is_refused_before_anything_is_written(
    open_store: OpenStore, table_contents: Contents, depth: int
) -> None:
    store = open_store()
    await store.save("thread", {"a": 1}, "c1")
    before = table_contents()
    for state in ({"a": nested(depth)}, {"log": [nested(depth)]}):
        refusal = ""
        try:
            await store.save("thread", state, "deep")
        except InvalidInput as error:
            refusal = str(error)
        if refusal:
            assert depth > 190
            assert "nested" in refusal
            assert table_contents() == before
        else:
            assert repr(await store.load("thread", "deep")) == repr(state)
            await store.delete("thread", "deep")
            before = table_contents()


BAD_STATES: dict[str, Any] = {
    "no dict": ["list"],
    "none": None,
    "text": "text",
    "bytes": {"a": b"bytes"},
    "set": {"a": {1}},
    "tuple": {"a": (1, 2)},
    "object": {"a": [object()]},
    "key that is no text": {"a": {1: 2}},
    "top key that is no text": {1: 2},
    "complex": {"a": 1j},
}


@both_kinds
@one_of_each
async def test_a_state_that_json_cannot_hold_is_refused_before_anything_is_written(
    open_store: OpenStore, table_contents: Contents, side: str, kind: str
) -> None:
    store = open_store(side, kind)
    await store.save("thread", {"a": 1}, "c1")
    before = table_contents()
    for name, state in BAD_STATES.items():
        with pytest.raises(InvalidInput, match="state"):
            await store.save("thread", state, "c1")
        assert table_contents() == before, name


async def test_a_state_that_changes_after_the_save_stays_as_it_was(open_store: OpenStore) -> None:
    store = open_store()
    state: dict[str, Any] = {"log": ["x" * 3000]}
    await store.save("thread", state)
    state["log"].append("more")
    assert await store.load("thread") == {"log": ["x" * 3000]}
    await store.save("thread", state)
    state["log"][0] = "changed"
    await store.save("thread", state)
    assert await store.load("thread") == {"log": ["changed", "more"]}


@pytest.mark.slow
@one_of_each
async def test_a_million_small_items_come_back_exactly(open_store: OpenStore, side: str) -> None:
    store = open_store(side)
    state = {"log": list(range(1_000_000)), "map": {str(n): n for n in range(10_000)}}
    await store.save("thread", state)
    assert await store.load("thread") == state
    state["log"].append(-1)  # type: ignore[attr-defined]
    await store.save("thread", state)
    assert await store.load("thread") == state
    assert (await store.get_disk_usage("thread"))["payload_bytes"] < 20_000_000


@one_of_each
@pytest.mark.parametrize("pipeline", [True, False])
async def test_a_state_larger_than_a_packet_is_refused_with_its_size_and_the_setting(
    open_store: OpenStore, own_config: MakeConfig, own_sql: Callable[..., Any], side: str, pipeline: bool
) -> None:
    config = own_config(pipeline=pipeline, compression="none", search=False)
    store = open_store(side, config=config)
    await store.save("thread", {"a": 1}, "c1")
    select = f"SELECT * FROM `{config.database}`.locus_store_%s"
    before = [own_sql(select % table) for table in ("threads", "checkpoints")]
    size = 3 * SMALL_PACKET_BYTES
    with pytest.raises(StateTooLarge, match=rf"{size:d}|{str(size)[:3]}") as caught:
        await store.save("thread", {"log": ["x" * size]}, "c1")
    assert "max_allowed_packet" in str(caught.value)
    assert str(SMALL_PACKET_BYTES) in str(caught.value)
    assert [own_sql(select % table) for table in ("threads", "checkpoints")] == before
    await store.save("thread", {"a": 2}, "c1")
    assert await store.load("thread") == {"a": 2}


@one_of_each
async def test_states_of_any_size_near_the_packet_are_stored_or_refused(
    open_store: OpenStore, own_config: MakeConfig, side: str
) -> None:
    store = open_store(side, config=own_config(compression="none"))
    stored = []
    for size in range(SMALL_PACKET_BYTES // 4, SMALL_PACKET_BYTES + 50_000, SMALL_PACKET_BYTES // 16):
        for text in ("x", "'", "\\"):
            state = {"log": [text * (size // len(json.dumps(text)[1:-1]))]}
            try:
                await store.save("thread", state)
            except StateTooLarge:
                pass
            else:
                stored.append(size)
                assert await store.load("thread") == state
    assert min(stored) < SMALL_PACKET_BYTES // 3
    assert max(stored) > SMALL_PACKET_BYTES // 2


@one_of_each
async def test_search_text_alone_never_makes_a_save_too_large(
    open_store: OpenStore, own_config: MakeConfig, side: str
) -> None:
    store = open_store(side, config=own_config())
    state = {"log": ["needle " + "haystack " * 20_000, "x" * 600_000]}
    await store.save("thread", state)
    assert await store.load("thread") == state
    assert [hit["thread_id"] for hit in await store.search("needle")] == ["thread"]
