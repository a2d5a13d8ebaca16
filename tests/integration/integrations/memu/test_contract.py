"""The contract of memU's repositories, with every driver, synchronous and asynchronous."""

from __future__ import annotations

import enum
import inspect
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from locus_mysql.errors import InvalidInput, NotFound
from locus_mysql.integrations.memu import MemuDatabase

from ...conftest import EACH_WAY
from . import protocols
from .conftest import ADA, BOB, AnyMemu, Make

#: Texts that code might confuse with SQL, a pattern, a path, or another text.
HOSTILE = (
    "'",
    '"',
    "\\",
    "\\'",
    "`",
    "%s",
    "%",
    "_",
    "{x}",
    "a;DROP TABLE x",
    "--",
    "\0",
    "é",
    "e\u0301",
    "N",
    "n ",
    "😀",
)


@pytest.mark.parametrize("side", EACH_WAY)
async def test_the_basic_contract(memu: AnyMemu, make_memu: Make) -> None:
    before = datetime.now(UTC) - timedelta(days=1)
    resource = await memu.resource("https://x/y", ADA, caption="a page", embedding=[0.5, 0.25])
    assert (resource.url, resource.caption, resource.embedding, resource.user_id) == (
        "https://x/y",
        "a page",
        [0.5, 0.25],
        "ada",
    )
    assert uuid.UUID(resource.id)
    assert before < resource.created_at == resource.updated_at

    item = await memu.remember("Ada likes tea", ADA, [1.0, 0.5], resource_id=resource.id)
    assert (item.resource_id, item.memory_type, item.summary, item.embedding) == (
        resource.id,
        "profile",
        "Ada likes tea",
        [1.0, 0.5],
    )
    assert (item.extra, item.happened_at, item.agent_id) == ({}, None, None)
    category = await memu.categorize("drinks", ADA)
    relation = await memu.link(item, category, ADA)
    assert (relation.item_id, relation.category_id, relation.user_id) == (item.id, category.id, "ada")

    other = make_memu()  # read by another process, without load_existing()
    assert await other.memory_item_repo.get_item(item.id) == item
    assert await other.memory_item_repo.list_items(ADA) == {item.id: item}
    assert await other.memory_category_repo.list_categories() == {category.id: category}
    assert await other.resource_repo.list_resources() == {resource.id: resource}
    assert await other.category_item_repo.list_relations(ADA) == [relation]
    assert await other.category_item_repo.get_item_categories(item.id) == [relation]
    (hit,) = await other.memory_item_repo.vector_search_items([1.0, 0.5], 5, ADA)
    assert hit == (item.id, pytest.approx(1.0))

    changed = await other.memory_item_repo.update_item(
        item_id=item.id, summary="Ada likes coffee", embedding=[0.0, 1.0], extra={"ref_id": "r1"}
    )
    assert (changed.summary, changed.embedding, changed.extra) == ("Ada likes coffee", [0.0, 1.0], {"ref_id": "r1"})
    assert changed.updated_at > item.updated_at
    assert await memu.memory_item_repo.list_items_by_ref_ids(["r1", "r2"], ADA) == {item.id: changed}
    (hit,) = await memu.memory_item_repo.vector_search_items([1.0, 0.0], 5)
    assert hit == (item.id, pytest.approx(0.0))
    renamed = await other.memory_category_repo.update_category(category_id=category.id, name="drink", summary="tea")
    assert (renamed.name, renamed.description, renamed.summary) == ("drink", "about it", "tea")

    await other.category_item_repo.unlink_item_category(item.id, category.id)
    assert await memu.category_item_repo.get_item_categories(item.id) == []
    await memu.link(item, category, ADA)
    await memu.memory_item_repo.delete_item(item.id)
    assert await memu.memory_item_repo.get_item(item.id) is None
    assert await memu.category_item_repo.list_relations() == []
    assert await memu.memory_item_repo.vector_search_items([1.0, 0.0], 5) == []
    assert await other.memory_item_repo.vector_search_items([1.0, 0.0], 5) == []
    assert await memu.memory_category_repo.clear_categories(ADA) == {category.id: renamed}
    assert await memu.resource_repo.clear_resources(BOB) == {}
    assert await memu.resource_repo.clear_resources(ADA) == {resource.id: resource}


@pytest.mark.parametrize("known", protocols.known())
async def test_the_protocols_are_fulfilled(memu: AnyMemu, known: dict[str, Any]) -> None:
    database = memu.wrapped
    for name, protocol in known.items():
        offering = getattr(database, name) if name else database
        assert isinstance(offering, protocol)
        for method, promised in vars(protocol).items():
            if inspect.isfunction(promised) and not method.startswith("_"):
                offered = inspect.signature(getattr(offering, method)).parameters
                for parameter in list(inspect.signature(promised).parameters.values())[1:]:
                    assert offered[parameter.name].kind is parameter.kind
                    if parameter.default is not inspect.Parameter.empty:
                        assert offered[parameter.name].default == parameter.default


async def test_a_filter_names_fields_and_skips_none(memu: AnyMemu) -> None:
    item = await memu.remember("a", ADA)
    event = await memu.remember("b", BOB, memory_type="event")
    agent = await memu.remember("c", {**BOB, "agent_id": "x"})
    listed = memu.memory_item_repo.list_items
    assert list(await listed({"user_id": None})) == [item.id, event.id, agent.id]
    assert list(await listed({"user_id__in": ["ada", "nobody"]})) == [item.id]
    assert list(await listed({"user_id__in": "bob", "memory_type": "profile"})) == [agent.id]
    assert list(await listed({"agent_id__in": [None]})) == [item.id, event.id]
    assert list(await listed({"agent_id__in": {"x", None}, "user_id": "bob"})) == [event.id, agent.id]
    assert await listed({"user_id__in": []}) == {}
    assert list(await listed({"id": event.id})) == [event.id]
    assert list(await listed({"created_at": agent.created_at})) == [agent.id]
    for wrong in (
        {"nobody": 1},
        {"user_id__gt": "a"},
        {"user_id": 0},
        {"user_id__in": 5},
        {"user_id__in": {"ada": 1}},
        {"embedding": [1.0]},
        {"locus_tenant": "default"},
        {"created_at": "2020-01-01"},
        {7: "x"},
    ):
        for ask in (listed, memu.memory_item_repo.clear_items):
            with pytest.raises(ValueError, match=r"\w"):
                await ask(wrong)
    with pytest.raises(ValueError, match="Unknown filter field 'summary' for CategoryItem"):
        await memu.category_item_repo.list_relations({"summary": "x"})
    assert len(await memu.items.copy()) == 3


async def test_no_text_is_anything_but_itself(memu: AnyMemu) -> None:
    items = {}
    for text in HOSTILE:
        user = {"user_id": f"u{text}", "agent_id": text}
        items[text] = await memu.remember(f"s{text}", user, memory_type=f"t{text}")
        category = await memu.categorize(f"n{text}", user, description=text)
        await memu.link(items[text], category, user)
        await memu.memory_item_repo.update_item(item_id=items[text].id, extra={f"k{text}": text, text: [text]})
        await memu.memory_item_repo.update_item(item_id=items[text].id, extra={text: {text: 1}, "ref_id": f"r{text}"})
    for text in HOSTILE:
        user = {"user_id": f"u{text}", "agent_id": text}
        (item,) = (await memu.memory_item_repo.list_items(user)).values()
        assert item.id == items[text].id
        assert (item.summary, item.memory_type) == (f"s{text}", f"t{text}")
        assert item.extra == {f"k{text}": text, text: {text: 1}, "ref_id": f"r{text}"}
        assert list(await memu.memory_item_repo.list_items_by_ref_ids([f"r{text}"])) == [item.id]
        assert list(await memu.memory_item_repo.list_items({"summary__in": [f"s{text}"]})) == [item.id]
        ((found, _),) = await memu.memory_item_repo.vector_search_items([1.0, 0.0], 50, user)
        assert found == item.id
        (category,) = (await memu.memory_category_repo.list_categories({"name": f"n{text}"})).values()
        assert category.description == text
        assert len(await memu.category_item_repo.list_relations(user)) == 1


async def test_names_that_differ_are_different_categories(memu: AnyMemu) -> None:
    names = ["N", "n", "n ", "ñ", "n\u0303", ""]
    made = [await memu.categorize(name, ADA) for name in names]
    made.append(await memu.categorize("N", BOB))
    made.append(await memu.categorize("N", {**ADA, "agent_id": "x"}))
    assert len({category.id for category in made}) == len(made)
    again = await memu.categorize("N", ADA, description="other", embedding=[9.0])
    assert again == made[0]
    with pytest.raises(InvalidInput, match="another category named 'n'"):
        await memu.memory_category_repo.update_category(category_id=made[0].id, name="n", summary="x")
    assert await memu.categorize("N", ADA) == made[0]


async def test_a_category_gets_what_it_lacks(memu: AnyMemu) -> None:
    bare = await memu.categorize("N", ADA, description="", embedding=None)
    assert (bare.description, bare.embedding) == ("", None)
    full = await memu.categorize("N", ADA, description="d", embedding=[2.0])
    assert (full.id, full.description, full.embedding) == (bare.id, "d", [2.0])
    assert full.updated_at > bare.updated_at


async def test_an_item_with_the_same_summary_is_reinforced(memu: AnyMemu) -> None:
    first = await memu.remember("Ada  likes\ttea", ADA, reinforce=True)
    assert first.extra["reinforcement_count"] == 1
    assert datetime.fromisoformat(first.extra["last_reinforced_at"]) <= first.created_at
    again = await memu.remember(" ada likes TEA ", ADA, [0.0, 1.0], reinforce=True, tool_record={"metadata": {}})
    assert (again.id, again.summary, again.embedding) == (first.id, first.summary, first.embedding)
    assert again.extra["reinforcement_count"] == 2
    assert again.extra["last_reinforced_at"] > first.extra["last_reinforced_at"]
    assert again.extra["content_hash"] == first.extra["content_hash"] == "6bfc703d90dd415d"
    others = [
        await memu.remember("ada likes tea", ADA),
        await memu.remember("ada likes tea", ADA, reinforce=True, memory_type="event"),
        await memu.remember("ada likes tea", BOB, reinforce=True),
        await memu.remember("ada likes tea", {**ADA, "agent_id": "x"}, reinforce=True),
        *[await memu.remember("ada likes tea", ADA, reinforce=True, memory_type="tool") for _ in range(2)],
    ]
    assert len({first.id, *(other.id for other in others)}) == 7
    assert others[0].extra == {}


async def test_a_counter_set_by_hand_continues_from_that_number(memu: AnyMemu) -> None:
    item = await memu.remember("tea", ADA, reinforce=True)
    for before, after in ((41, 42), ("many", 2), (None, 2), (2.5, 2)):
        await memu.memory_item_repo.update_item(item_id=item.id, extra={"reinforcement_count": before})
        assert (await memu.remember("tea", ADA, reinforce=True)).extra["reinforcement_count"] == after


async def test_tool_records_are_merged_into_the_extra_fields(memu: AnyMemu) -> None:
    record = {"when_to_use": "often", "metadata": {"a": 1}, "tool_calls": [{"x": None}], "other": 1}
    item = await memu.remember("t", ADA, memory_type="tool", tool_record=record)
    assert item.extra == {"when_to_use": "often", "metadata": {"a": 1}, "tool_calls": [{"x": None}]}
    changed = await memu.memory_item_repo.update_item(
        item_id=item.id, extra={"n": None, "big": 2**63}, tool_record={"metadata": {"b": 2}, "tool_calls": None}
    )
    assert changed.extra == {**item.extra, "metadata": {"b": 2}, "n": None, "big": 2**63}


async def test_missing_records_are_reported_as_missing(memu: AnyMemu) -> None:
    item, category = await memu.remember("a", ADA), await memu.categorize("N", ADA)
    for unknown in ("none", "x" * 5_000, "'", ""):
        for call in (
            memu.memory_item_repo.update_item(item_id=unknown, summary="x"),
            memu.memory_category_repo.update_category(category_id=unknown, summary="x"),
            memu.category_item_repo.link_item_category(unknown, category.id, ADA),
            memu.category_item_repo.link_item_category(item.id, unknown, ADA),
            memu.remember("b", ADA, resource_id=unknown),
        ):
            with pytest.raises(KeyError) as raised:
                await call
            assert isinstance(raised.value, NotFound)
            assert str(raised.value).endswith("not found")
        assert await memu.memory_item_repo.get_item(unknown) is None
        assert await memu.category_item_repo.get_item_categories(unknown) == []
        await memu.memory_item_repo.delete_item(unknown)
        await memu.category_item_repo.unlink_item_category(unknown, category.id)
    assert len(await memu.memory_item_repo.list_items()) == 1


async def test_linking_twice_is_linking_once(memu: AnyMemu) -> None:
    item, category = await memu.remember("a", ADA), await memu.categorize("N", ADA)
    first = await memu.link(item, category, ADA)
    assert await memu.link(item, category, ADA) == first
    assert await memu.link(item, category, BOB) == first  # as in memU, the same for every caller
    assert await memu.category_item_repo.list_relations(BOB) == []
    assert await memu.memory_category_repo.clear_categories() == {category.id: category}
    assert await memu.category_item_repo.list_relations() == []


async def test_records_that_cannot_be_stored_are_refused_before_anything_is_sent(memu: AnyMemu) -> None:
    item = await memu.remember("a", ADA)
    for call in (
        memu.remember("a", {}),
        memu.remember("a", {"user_id": 5}),
        memu.remember("a", {**ADA, "colour": "red"}),
        memu.remember("a", {"user_id": "x" * 256}),
        memu.remember("a", "ada"),
        memu.remember("a", ADA, memory_type="x" * 33),
        memu.remember("\ud800", ADA),
        memu.remember(None, ADA),
        memu.remember("a", ADA, [float("nan")]),
        memu.remember("a", ADA, [float("inf")]),
        memu.remember("a", ADA, [1e39]),
        memu.remember("a", ADA, ["x"]),
        memu.remember("a", ADA, [0.5] * 16_384),
        memu.categorize("x" * 256, ADA),
        memu.resource("x" * 2_049, ADA),
        memu.resource("x", ADA, local_path="x" * 1_025),
        memu.resource("x", ADA, modality="x" * 65),
        memu.memory_item_repo.update_item(item_id=item.id, extra={"a": 2**64}),
        memu.memory_item_repo.update_item(item_id=item.id, extra={"a": float("nan")}),
        memu.memory_item_repo.update_item(item_id=item.id, extra={"a": {1}}),
        memu.memory_item_repo.update_item(item_id=item.id, extra={"\ud800": 1}),
        memu.memory_item_repo.update_item(item_id=item.id, extra={1: 1}),
        memu.memory_item_repo.update_item(item_id=item.id, tool_record=[1]),
        memu.memory_item_repo.update_item(item_id=item.id, extra="a"),
        memu.memory_item_repo.update_item(item_id=item.id, extra=[("a", 1)]),
        memu.memory_item_repo.vector_search_items(None, 5),
        memu.memory_item_repo.vector_search_items([1.0], 5, recency_decay_days=True),
        memu.memory_item_repo.vector_search_items([1.0], 5, recency_decay_days="30"),
        memu.memory_item_repo.vector_search_items("x", 5),
        memu.memory_item_repo.vector_search_items([1.0], -1),
        memu.memory_item_repo.vector_search_items([1.0], 5, ranking="best"),
        memu.memory_item_repo.vector_search_items([1.0], 5, recency_decay_days=0),
    ):
        with pytest.raises(InvalidInput):
            await call
    assert await memu.memory_item_repo.list_items() == {item.id: item}


async def test_long_texts_and_wide_embeddings_come_back(memu: AnyMemu) -> None:
    long, wide = "ö" * 200_000, [1.0 / (1 + n) for n in range(16_383)]
    item = await memu.remember(long, ADA, wide)
    (kept,) = (await memu.memory_item_repo.list_items()).values()
    assert kept.summary == long
    assert kept.embedding == pytest.approx(wide, rel=1e-6)
    ((found, score),) = await memu.memory_item_repo.vector_search_items(wide, 1)
    assert (found, score) == (item.id, pytest.approx(1.0))
    resource = await memu.resource("x" * 2_048, ADA, local_path="y" * 1_024, caption=long, embedding=wide)
    assert (await memu.resource_repo.list_resources())[resource.id].caption == long


async def test_tenants_see_nothing_of_each_other(make_memu: Make) -> None:
    one, other = make_memu(tenant="one"), make_memu(tenant="other")
    item, category = await one.remember("a", ADA, reinforce=True), await one.categorize("N", ADA)
    resource = await one.resource("u", ADA)
    await one.link(item, category, ADA)
    assert await other.memory_item_repo.list_items() == {}
    assert await other.memory_item_repo.get_item(item.id) is None
    assert await other.memory_item_repo.vector_search_items([1.0, 0.0], 5) == []
    assert await other.category_item_repo.list_relations() == []
    assert (await other.remember("a", ADA, reinforce=True)).id != item.id
    assert (await other.categorize("N", ADA)).id != category.id
    for call in (
        other.memory_item_repo.update_item(item_id=item.id, summary="x"),
        other.link(item, category, ADA),
        other.remember("b", ADA, resource_id=resource.id),
    ):
        with pytest.raises(NotFound):
            await call
    await other.memory_item_repo.delete_item(item.id)
    await other.memory_item_repo.clear_items()
    await other.memory_category_repo.clear_categories()
    await other.resource_repo.clear_resources()
    await other.category_item_repo.unlink_item_category(item.id, category.id)
    assert await one.memory_item_repo.get_item(item.id) == item
    assert len(await one.category_item_repo.list_relations()) == 1


async def test_deleting_a_resource_deletes_what_was_made_of_it(memu: AnyMemu) -> None:
    resource = await memu.resource("u", ADA)
    await memu.remember("a", ADA, resource_id=resource.id)
    kept = await memu.remember("b", ADA)
    assert list(await memu.resource_repo.clear_resources()) == [resource.id]
    assert await memu.memory_item_repo.list_items() == {kept.id: kept}


async def test_scopes_of_all_types_come_back(make_memu: Make) -> None:
    class Kind(enum.StrEnum):
        PERSON = "person"

    class Wide(BaseModel):
        label: Literal["a", "b"]
        number: int
        flag: bool = False
        owner: uuid.UUID | None = None
        since: datetime | None = None
        kind: Kind = Kind.PERSON

    memu = make_memu(Wide)
    scope = {
        "label": "a",
        "number": -(2**63),
        "flag": True,
        "owner": uuid.uuid4(),
        "since": datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    }
    item = await memu.remember("x", scope)
    assert {name: getattr(item, name) for name in Wide.model_fields} == {**scope, "kind": Kind.PERSON}
    await memu.remember("y", {"label": "b", "number": 1})
    for name, value in scope.items():
        assert list(await memu.memory_item_repo.list_items({name: value})) == [item.id]
    with pytest.raises(InvalidInput):
        await memu.memory_item_repo.list_items({"number": "1"})
    with pytest.raises(InvalidInput):
        await memu.remember("x", {"label": "c", "number": 1})


async def test_views_answer_from_the_database(memu: AnyMemu, make_memu: Make) -> None:
    other: Any = make_memu()
    item, category = await memu.remember("a", ADA), await memu.categorize("N", ADA)
    relation = await memu.link(item, category, ADA)
    resource = await memu.resource("u", ADA)
    assert await other.items.copy() == {item.id: item}
    assert await other.categories.get(category.id) == category
    assert await other.resources.get("none") is None
    assert await other.resources.get(resource.id) == resource
    views = other.wrapped
    if isinstance(views, MemuDatabase):
        assert views.items[item.id] == item
        assert (len(views.items), list(views.items), item.id in views.items) == (1, [item.id], True)
        assert ("none" in views.items, 5 in views.items) == (False, False)
        assert list(views.categories.values()) == [category]
        assert dict(views.resources.items()) == {resource.id: resource} == views.resources
        assert views.relations == [relation]
        assert (len(views.relations), views.relations[0], views.relations[:1]) == (1, relation, [relation])
        with pytest.raises(KeyError):
            views.items["none"]
    else:
        assert [id async for id in views.items] == [item.id]
        assert await views.relations.copy() == {relation.id: relation}
        assert await views.categories.count() == 1
    await memu.memory_item_repo.delete_item(item.id)
    assert await other.items.copy() == {}
