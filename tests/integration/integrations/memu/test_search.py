"""A search by meaning is exact despite concurrent changes."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from locus_mysql.families.memories.vectors import coding, matrix
from locus_mysql.integrations.memu import MemuDatabase, searching

from ...conftest import MakeConfig
from .conftest import ADA, BOB, AnyMemu, Make, UserModel

DIMS = 12


def cosine(one: list[float], other: list[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def expected(query: list[float], there: Any, wanted: int) -> list[tuple[str, float]]:
    """Rank the loaded items by brute force."""
    scores = [(item.id, cosine(query, item.embedding)) for item in there if len(item.embedding or ()) == len(query)]
    return sorted(scores, key=lambda found: (-found[1], found[0]))[:wanted]


def same(found: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> bool:
    """Check for the same items in the same order, except among equally near items."""
    scores = dict(wanted)
    return [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-9) and all(
        scores.get(id, score) == pytest.approx(score, abs=1e-9) for id, score in found
    )


def vector(rng: random.Random) -> list[float]:
    """Return random numbers that 32-bit floats represent exactly."""
    return array("f", (rng.gauss(0, 1) for _ in range(DIMS))).tolist()


async def change(memu: AnyMemu, rng: random.Random) -> None:
    """Add, change or delete an item."""
    user = rng.choice([ADA, BOB, {**BOB, "agent_id": "x"}])
    kind = rng.choice(["add", "add", "update", "delete", "other"])
    there = list((await memu.memory_item_repo.list_items(user)).values())
    if kind == "add" or not there:
        embedding = rng.choice([vector(rng), vector(rng), [0.0] * DIMS, [1.0, 2.0], None])
        await memu.remember(str(rng.random()), user, embedding)
    elif kind == "update":
        await memu.memory_item_repo.update_item(item_id=rng.choice(there).id, embedding=vector(rng))
    elif kind == "delete":
        await memu.memory_item_repo.delete_item(rng.choice(there).id)
    else:
        await memu.memory_item_repo.update_item(item_id=rng.choice(there).id, memory_type="event")


@pytest.mark.parametrize("fingerprinted", [0, 500])
@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "python"])
async def test_searches_of_one_process_see_what_another_changes(
    make_memu: Make, numpy: bool, fingerprinted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FINGERPRINTED", fingerprinted)
    if not numpy:
        monkeypatch.setattr(matrix, "np", None)
        monkeypatch.setattr(coding, "np", None)
    rng = random.Random(7)
    one, other = make_memu(), make_memu()
    for _ in range(40):
        await change(one, rng)
    for turn in range(30):
        await change(other, rng)
        where = rng.choice([None, ADA, BOB, {"memory_type": "event"}, {"user_id__in": ["ada", "bob"]}])
        query, wanted = vector(rng), rng.choice([1, 3, 100])
        there = (await other.memory_item_repo.list_items(where)).values()
        for asked in (one, other):
            found = await asked.memory_item_repo.vector_search_items(query, wanted, where)
            assert same(found, expected(query, there, wanted)), turn


async def test_salience_is_memus_formula(memu: AnyMemu) -> None:
    async def item(embedding: list[float], **extra: Any) -> Any:
        made = await memu.remember(str(extra), ADA, embedding)
        return await memu.memory_item_repo.update_item(item_id=made.id, extra=extra)

    def ago(**time: float) -> str:
        return (datetime.now(UTC) - timedelta(**time)).isoformat()

    fresh = await item([1.0, 0.0], reinforcement_count=3, last_reinforced_at=ago(days=0))
    old = await item([1.0, 0.0], reinforcement_count=3, last_reinforced_at=ago(days=30))
    often = await item([1.0, 1.0], reinforcement_count=100, last_reinforced_at=ago(days=0).replace("+00:00", ""))
    unknown = await item([1.0, 0.0])
    opposite = await item([-1.0, 0.0], reinforcement_count=1, last_reinforced_at="long ago")
    wanted = {
        often.id: math.sqrt(0.5) * math.log(101),
        fresh.id: math.log(4),
        old.id: math.log(4) * math.exp(-0.693),
        unknown.id: math.log(2) * 0.5,
        opposite.id: -math.log(2) * 0.5,
    }
    for _ in range(2):
        found = await memu.memory_item_repo.vector_search_items([2.0, 0.0], 10, ADA, ranking="salience")
        assert [id for id, _ in found] == list(wanted)
        assert [score for _, score in found] == pytest.approx(list(wanted.values()), rel=0.01)
    slow = dict(
        await memu.memory_item_repo.vector_search_items([2.0, 0.0], 3, ADA, ranking="salience", recency_decay_days=1e9)
    )
    assert slow == pytest.approx({often.id: wanted[often.id], fresh.id: math.log(4), old.id: math.log(4)}, rel=0.01)
    for endless in (10**400, float("inf")):
        found = await memu.memory_item_repo.vector_search_items(
            [2.0, 0.0], 3, ADA, ranking="salience", recency_decay_days=endless
        )
        assert dict(found) == pytest.approx(slow, rel=1e-6)
    reinforced = [await memu.remember("again", ADA, [1.0, 0.0], reinforce=True) for _ in range(4)][-1]
    ((_, score),) = await memu.memory_item_repo.vector_search_items(
        [1.0, 0.0], 1, {"id": reinforced.id}, ranking="salience"
    )
    assert score == pytest.approx(math.log(5), rel=0.01)


def test_a_small_cache_changes_nothing(make_config: MakeConfig) -> None:
    with MemuDatabase(make_config(driver="pymysql"), user_model=UserModel, vector_cache_bytes=1) as memu:
        item = memu.memory_item_repo.create_item(memory_type="event", summary="a", embedding=[1.0, 0.0], user_data=ADA)
        for _ in range(3):
            assert [id for id, _ in memu.memory_item_repo.vector_search_items([1.0, 0.0], 1)] == [item.id]


NEAR, FAR = [1e-3, 0.97e-3], [1.0, -1.0]


@pytest.mark.parametrize(
    ("query", "there", "nearest"),
    [
        ([3e38, 2.9e38], [[3e38, -3e38], NEAR, FAR], 1),  # sums exceed the range of 32-bit floats
        ([0.7, 0.3], [[1e-45, 1e-45], [3e-45, 1e-45], [1e-45, 0.0]], 1),  # products are below it
    ],
    ids=["huge", "tiny"],
)
async def test_the_nearest_is_found_at_the_ends_of_what_floats_hold(
    make_memu: Make, query: list[float], there: list[list[float]], nearest: int
) -> None:
    memu = make_memu()
    ids = [(await memu.remember(str(number), ADA, embedding)).id for number, embedding in enumerate(there)]
    ((found, _),) = await memu.memory_item_repo.vector_search_items(query, 1, ADA)
    assert found == ids[nearest]


@pytest.mark.parametrize("numpy", [True, False], ids=["numpy", "python"])
@pytest.mark.parametrize(
    "damage",
    ["embedding = x'0000803F'", "embedding = x'00'", "embedding = NULL", "locus_mark = NULL"],
    ids=["short", "odd", "missing", "unmarked"],
)
async def test_a_damaged_embedding_is_passed_over(
    make_memu: Make, sql: Callable[..., Any], damage: str, numpy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not numpy:
        monkeypatch.setattr(matrix, "np", None)
        monkeypatch.setattr(coding, "np", None)
    memu = make_memu()
    bad, good = [await memu.remember(text, ADA, [1.0, number]) for number, text in enumerate("ab")]
    sql(f"UPDATE memory_items SET {damage} WHERE id = %s", bad.id)
    for ranked in ("similarity", "salience", "similarity"):
        ((found, _),) = await memu.memory_item_repo.vector_search_items([1.0, 0.0], 2, ADA, ranking=ranked)
        assert found == good.id
