"""A copy of memU's database contains everything that the source contains."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import String
from sqlalchemy.orm import DeclarativeBase, mapped_column

from locus_mysql.errors import InvalidInput
from locus_mysql.integrations.memu import (
    AsyncMemuDatabase,
    AsyncRecallDatabase,
    CategoryItem,
    MemoryCategory,
    MemoryItem,
    MemuDatabase,
    RecallDatabase,
    RecallUserModel,
    Resource,
    copy_database,
)
from locus_mysql.integrations.memu.records import scoped

from ...conftest import MakeConfig
from .conftest import ADA, BOB, AnyMemu, Make, UserModel


class InMemory:
    """A database of dicts that implements the part of memU's protocols that copying needs."""

    def __init__(self) -> None:
        self.resource_repo = self.memory_item_repo = self.memory_category_repo = self.category_item_repo = self
        self.resources: dict[str, Any] = {}
        self.items: dict[str, Any] = {}
        self.categories: dict[str, Any] = {}
        self.relations: list[Any] = []
        self.models = {kind: scoped(UserModel, kind) for kind in (Resource, MemoryItem, MemoryCategory, CategoryItem)}

    def list_resources(self, where: Any = None) -> dict[str, Any]:
        return dict(self.resources)

    def list_items(self, where: Any = None) -> dict[str, Any]:
        return dict(self.items)

    def list_categories(self, where: Any = None) -> dict[str, Any]:
        return dict(self.categories)

    def list_relations(self, where: Any = None) -> list[Any]:
        return list(self.relations)

    def create_resource(self, *, user_data: Any, **fields: Any) -> Any:
        made: Any = self.models[Resource](**fields, **user_data)
        self.resources[made.id] = made
        return made

    def create_item(self, *, user_data: Any, **fields: Any) -> Any:
        made: Any = self.models[MemoryItem](**fields, **user_data)
        self.items[made.id] = made
        return made

    def update_item(self, *, item_id: str, extra: Any) -> None:
        self.items[item_id].extra = {**self.items[item_id].extra, **extra}

    def get_or_create_category(self, *, user_data: Any, **fields: Any) -> Any:
        made: Any = self.models[MemoryCategory](**fields, **user_data)
        self.categories[made.id] = made
        return made

    def update_category(self, *, category_id: str, summary: str) -> None:
        self.categories[category_id].summary = summary

    def link_item_category(self, item_id: str, cat_id: str, user_data: Any) -> None:
        self.relations.append(self.models[CategoryItem](item_id=item_id, category_id=cat_id, **user_data))


def filled() -> InMemory:
    """Return a source with data that only stores without keys allow: duplicates and dangling relations."""
    source = InMemory()
    long_ago = datetime(2020, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    for number, user in enumerate([ADA, BOB, {**BOB, "agent_id": "x"}]):
        resource = source.create_resource(
            url=f"u{number}", modality="text", local_path="p", caption=None, embedding=[0.5], user_data=user
        )
        categories = [
            source.get_or_create_category(name="N", description="d", embedding=None, user_data=user) for _ in range(2)
        ]
        source.update_category(category_id=categories[0].id, summary="s")
        for index in range(3):
            item = source.create_item(
                resource_id=[resource.id, None, "gone"][index],
                memory_type="profile",
                summary="Ada likes tea",
                embedding=[0.5, 0.25],
                happened_at=long_ago,
                created_at=long_ago,
                extra={"content_hash": "d1ce11a30dc62dad", "reinforcement_count": index, "ref_id": f"r{number}"},
                user_data=user,
            )
            source.link_item_category(item.id, categories[index % 2].id, user)
        source.link_item_category("gone", categories[0].id, user)
    return source


def test_a_copy_has_ids_times_and_all(make_config: MakeConfig) -> None:
    source = filled()
    with MemuDatabase(make_config(driver="pymysql"), user_model=UserModel) as memu:
        for _ in range(2):  # copying again changes nothing
            copied = copy_database(source, memu)
            assert copied.kinds == {"resources": 3, "categories": 6, "items": 9, "relations": 9}
            assert memu.resources == source.resources
            assert len(memu.categories) == 3
            for id, item in memu.items.items():
                there = source.items[id]
                assert item == (
                    there if there.resource_id != "gone" else there.model_copy(update={"resource_id": None})
                )
            assert len(memu.relations) == 9
        for category in source.categories.values():
            kept = memu.categories[copied.ids.get(category.id, category.id)]
            assert (kept.name, kept.user_id, kept.agent_id) == (category.name, category.user_id, category.agent_id)
        # from now on, a repeated summary reinforces exactly one item
        items = memu.memory_item_repo
        found = [
            items.create_item(memory_type="profile", summary="x", embedding=None, user_data=ADA, reinforce=True).extra[
                "reinforcement_count"
            ]
            for _ in range(2)
        ]
        assert found == [1, 2]
        assert len(items.vector_search_items([0.5, 0.25], 50, ADA)) == 3

        back = InMemory()
        again = copy_database(memu, back)
        assert again.kinds == {"resources": 3, "categories": 3, "items": 10, "relations": 9}
        assert again.complete
        assert sorted((item.summary, item.user_id, str(item.extra)) for item in back.items.values()) == sorted(
            (item.summary, item.user_id, str(item.extra)) for item in memu.items.values()
        )
        assert {category.summary for category in back.categories.values()} == {
            category.summary for category in memu.categories.values()
        }
        assert all(
            relation.item_id in back.items and relation.category_id in back.categories for relation in back.relations
        )


def test_the_rows_of_memus_sql_stores_are_read_whole(make_config: MakeConfig) -> None:
    """The records that memU's SQL stores list lack scope and extra."""
    source = filled()
    for item in source.items.values():
        item.embedding_json, item.embedding = "[0.5, 0.25]", None
    rows = {
        "Resource": source.resources.values(),
        "MemoryItem": source.items.values(),
        "MemoryCategory": source.categories.values(),
        "CategoryItem": source.relations,
    }

    class Base(DeclarativeBase):
        pass

    models = {
        name: type(name, (Base,), {"__tablename__": name, "id": mapped_column(String, primary_key=True)})
        for name in rows
    }

    class Session:
        def __enter__(self) -> Session:
            return self

        def __exit__(self, *error: object) -> None: ...

        def scalars(self, statement: Any) -> Any:
            (column,) = statement.column_descriptions
            return SimpleNamespace(all=lambda: list(rows[column["name"]]))

    repo = SimpleNamespace(_sessions=SimpleNamespace(session=Session), _sqla_models=SimpleNamespace(**models))
    stored = SimpleNamespace(
        resource_repo=repo, memory_item_repo=repo, memory_category_repo=repo, category_item_repo=repo
    )
    with MemuDatabase(make_config(driver="pymysql"), user_model=UserModel) as memu:
        copy_database(stored, memu)
        assert [item.embedding for item in memu.items.values()] == [[0.5, 0.25]] * 9
        assert {(item.user_id, item.agent_id) for item in memu.items.values()} == {
            ("ada", None),
            ("bob", None),
            ("bob", "x"),
        }


def test_one_tenant_s_copy_is_not_taken_for_another_s(make_config: MakeConfig) -> None:
    source = filled()
    with (
        MemuDatabase(make_config(driver="pymysql", tenant="one"), user_model=UserModel) as one,
        MemuDatabase(make_config(driver="pymysql", tenant="other"), user_model=UserModel) as other,
    ):
        copy_database(source, one)
        with pytest.raises(InvalidInput, match="another tenant"):
            copy_database(source, other)
        assert len(other.resources) == len(other.items) == 0


async def test_records_are_restored_on_both_sides(memu: AnyMemu, make_memu: Make) -> None:
    item, category = await memu.remember("a", ADA, reinforce=True), await memu.categorize("N", ADA)
    relation = await memu.link(item, category, ADA)
    other = make_memu(table_prefix="copy_")
    theirs = await other.categorize("N", ADA)
    renamed = await other.restore(
        categories=[category.model_dump(mode="json")], items=[item.model_dump(mode="json")], relations=[relation]
    )
    assert renamed == {category.id: theirs.id}
    assert await other.memory_item_repo.get_item(item.id) == item
    (found,) = await other.category_item_repo.list_relations()
    assert (found.id, found.category_id, found.created_at) == (relation.id, theirs.id, relation.created_at)
    assert (await other.remember("a", ADA, reinforce=True)).id == item.id
    for wrong in ({"id": "x"}, 5, {**item.model_dump(), "created_at": "yesterday"}, {**item.model_dump(), "x": 1}):
        with pytest.raises(InvalidInput):
            await other.restore(items=[wrong])
    assert await other.restore() == {}
    lost = relation.model_copy(update={"id": str(uuid.uuid4()), "item_id": "none"})
    await other.restore(relations=[lost])
    assert len(await other.category_item_repo.list_relations()) == 1


def test_an_awaited_database_is_not_copied(make_config: MakeConfig) -> None:
    with pytest.raises(InvalidInput, match="synchronous"):
        copy_database(InMemory(), AsyncMemuDatabase(make_config()))


def committed(database: Any) -> Any:
    """Fill a database with memu-cli's protocol, and return it."""
    for user in (ADA, {**BOB, "agent_id": "x"}):
        for track in ("memory", "skill"):
            file = database.recall_file_repo.get_or_create_recall_file(
                name="n", description="d", embedding=[0.5], user_data=user, track=track
            )
            database.recall_file_repo.update_recall_file(recall_file_id=file.id, content=f"content of {track}")
            database.recall_file_segment_repo.create_segment(
                recall_file_id=file.id, text=track, embedding=[0.25, 1.0], user_data=user, track=track
            )
        database.resource_repo.create_resource(
            url="u", local_path="p", caption=None, embedding=[0.5], user_data=user, track="workspace"
        )
    return database


def listed(database: Any) -> dict[str, Any]:
    """Return all records of a database with memu-cli's protocol, by id."""
    lists = (database.resource_repo.list_resources(), database.recall_file_repo.list_recall_files())
    segments = {one.id: one for one in database.recall_file_segment_repo.list_segments()}
    return {id: one.model_dump() for id, one in {**lists[0], **lists[1], **segments}.items()}


@pytest.mark.parametrize("kind", ["inmemory", "sqlite"])
def test_a_database_of_memu_cli_is_copied_exactly_and_back(make_config: MakeConfig, tmp_path: Path, kind: str) -> None:
    stores = {
        "inmemory": lambda name: import_module("memu.database.inmemory.repo").InMemoryStore(
            scope_model=RecallUserModel
        ),
        "sqlite": lambda name: import_module("memu.database.sqlite.sqlite").SQLiteStore(
            dsn=f"sqlite:///{tmp_path}/{name}.db", scope_model=RecallUserModel
        ),
    }
    source, back = committed(stores[kind]("source")), stores[kind]("back")
    records = {"resources": 2, "recall_files": 4, "segments": 4}
    with RecallDatabase(make_config(driver="pymysql")) as recall:
        for _ in range(2):  # copying again changes nothing
            copied = copy_database(source, recall)
            assert (copied.kinds, copied.complete, copied.ids) == (records, True, {})
            found = listed(recall)
            assert {(one["user_id"], one["agent_id"]) for one in found.values()} == {("ada", None), ("bob", "x")}
            for id, one in listed(source).items():
                times = {name: time.replace(tzinfo=UTC) for name, time in one.items() if name.endswith("_at")}
                assert {**one, **times} == {name: found[id][name] for name in one}
        assert copy_database(recall, back).kinds == records
        assert len(listed(back)) == 10
        files = back.recall_file_repo.list_recall_files()
        for segment in back.recall_file_segment_repo.list_segments():
            file = files[segment.recall_file_id]
            assert (file.track, file.content) == (segment.track, f"content of {segment.track}")
    source.close()
    back.close()


def test_a_file_of_the_same_name_keeps_its_id_and_gets_the_segments(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with RecallDatabase(config.for_store(table_prefix="source_")) as source, RecallDatabase(config) as recall:
        committed(source)
        own = recall.recall_file_repo.get_or_create_recall_file(
            name="n", description="own", embedding=[], user_data=ADA
        )
        for _ in range(2):
            copied = copy_database(source, recall)
            assert list(copied.ids.values()) == [own.id]
            (segment,) = recall.recall_file_segment_repo.list_segments_for_file(own.id)
            assert (segment.text, recall.recall_files[own.id].description) == ("memory", "own")


def test_databases_with_different_protocols_are_not_copied(make_config: MakeConfig) -> None:
    config = make_config(driver="pymysql")
    with MemuDatabase(config) as memu, RecallDatabase(config.for_store(table_prefix="other_")) as recall:
        for pair in ((memu, recall), (recall, memu)):
            with pytest.raises(InvalidInput, match="memu-cli's"):
                copy_database(*pair)
    with pytest.raises(InvalidInput, match=r"RecallDatabase\(database.database"):
        copy_database(recall, AsyncRecallDatabase(make_config()))
