"""`CrewMemoryStorage` keeps the contract of `StorageBackend`, also under CrewAI's `Memory`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import MagicMock

import pytest
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory

from .conftest import Make

pytestmark = pytest.mark.kept_tables("memories")

START = datetime(2026, 11, 28, 12)


def record(name: str, scope: str = "/", embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    return MemoryRecord(id=name, content=f"content of {name}", scope=scope, embedding=embedding, **fields)


def ids(records: Any) -> list[str]:
    return [getattr(one, "id", None) or one[0].id for one in records]


@pytest.fixture
def storage(make_memory: Make) -> Any:
    """Return a storage with records in several scopes."""
    storage = make_memory()
    storage.save(
        [
            record("root", "/", [1, 0, 0], created_at=START),
            record("a", "/crew/a", [1, 1, 0], created_at=START + timedelta(hours=1), categories=["x"]),
            record("deep", "/crew/a/notes", [0, 1, 0], created_at=START + timedelta(hours=2), categories=["x", "y"]),
            record("ab", "/crew/ab", [0, 1, 1], created_at=START + timedelta(hours=3), metadata={"n": 1, "of": []}),
            record("none", "crew/b/", created_at=(START + timedelta(hours=4)).replace(tzinfo=UTC), categories=["y"]),
        ]
    )
    return storage


def test_a_record_comes_back_whole(storage: Any, make_memory: Make) -> None:
    assert isinstance(storage, StorageBackend)
    kept = record("whole", "/s", [0.5, 0.25, 0], categories=["é"], metadata={"z": 1, "a": [None]}, importance=0.9)
    kept.source, kept.private, kept.last_accessed = "ada", True, START
    storage.save([kept])
    other = make_memory()
    assert other.get_record("whole") == kept
    assert other.get_record("none").embedding is None
    assert other.get_record("missing") is None
    assert make_memory(tenant="acme").list_records() == []


def test_scopes_are_whole_names_and_have_those_below(storage: Any) -> None:
    assert ids(storage.list_records()) == ["none", "ab", "deep", "a", "root"]
    assert ids(storage.list_records("/crew/a")) == ids(storage.list_records("crew//a/")) == ["deep", "a"]
    assert ids(storage.list_records(limit=2, offset=1)) == ["ab", "deep"]
    assert storage.list_records(limit=0) == storage.list_records(offset=-1) == []
    assert (storage.count(), storage.count("/crew"), storage.count("/crew/a"), storage.count("/cr")) == (5, 4, 2, 0)
    assert (storage.list_scopes(), storage.list_scopes("/crew")) == (["/crew"], ["/crew/a", "/crew/ab", "/crew/b"])
    assert storage.list_categories() == {"x": 2, "y": 2}
    assert storage.list_categories("/crew/a/notes") == {"x": 1, "y": 1}
    info = storage.get_scope_info("/crew/a/")
    assert (info.path, info.record_count, info.categories) == ("/crew/a", 2, ["x", "y"])
    assert (info.oldest_record, info.newest_record) == (START + timedelta(hours=1), START + timedelta(hours=2))
    assert info.child_scopes == ["/crew/a/notes"]
    nothing = storage.get_scope_info("/none")
    assert (nothing.record_count, nothing.oldest_record, nothing.child_scopes) == (0, None, [])
    assert storage.get_scope_info("/").path == "/"


async def test_a_search_finds_the_nearest_that_fit(storage: Any) -> None:
    found = storage.search([1, 0, 0])
    assert ids(found) == ["root", "a", "ab", "deep"] or ids(found) == ["root", "a", "deep", "ab"]
    assert found[0][1] == pytest.approx(1)
    assert found[1][1] == pytest.approx(0.5**0.5)
    assert ids(storage.search([1, 0, 0], "/crew/a")) == ["a", "deep"]
    assert ids(storage.search([1, 0, 0], min_score=0.5)) == ["root", "a"]
    assert ids(storage.search([1, 0, 0], limit=1)) == ["root"]
    assert ids(storage.search([1, 0, 0], categories=["y", "z"], limit=1)) == ["deep"]
    assert ids(await storage.asearch([1, 0, 0], metadata_filter={"n": 1, "of": []}, limit=1)) == ["ab"]
    assert storage.search([1, 0, 0], metadata_filter={"n": 2}) == []


async def test_what_is_deleted_fits_all_that_is_given(storage: Any, make_memory: Make) -> None:
    assert storage.delete("/crew/ab", record_ids=["a", "root", "missing"]) == 0
    assert storage.delete(categories=["x"], older_than=START + timedelta(hours=2)) == 1
    assert await storage.adelete(metadata_filter={"n": 1}) == 1
    assert storage.delete(older_than=(START + timedelta(hours=1)).replace(tzinfo=UTC)) == 1
    assert storage.delete(record_ids=["none", "none"]) == 1
    assert ids(make_memory().list_records()) == ["deep"]
    storage.save([record("other", "/other")])
    storage.reset("/crew")
    assert ids(storage.list_records()) == ["other"]
    storage.reset()
    assert (storage.count(), storage.delete()) == (0, 0)


async def test_an_update_replaces_a_record_and_moves_it(storage: Any, make_memory: Make) -> None:
    storage.update(record("a", "/moved", metadata={"v": 2}))
    moved = make_memory().get_record("a")
    assert (moved.scope, moved.metadata, moved.embedding) == ("/moved", {"v": 2}, [1, 1, 0])
    assert ids(storage.list_records("/crew/a")) == ["deep"]
    storage.update(record("a", "/moved", [0, 0, 1]))
    assert ids(storage.search([0, 0, 1], "/moved")) == ["a"]
    await storage.asave([record("a", "/again", [0, 0, 1]), record("new", "/again")])
    assert storage.count() == 6


def test_what_cannot_be_stored_is_refused_and_nothing_changes(storage: Any) -> None:
    for bad in ([1.0], [1.0] * 4):
        with pytest.raises(EmbeddingDimensionMismatchError, match="3-dimensional"):
            storage.save([record("new", "/", [1, 0, 0]), record("bad", "/", bad)])
        with pytest.raises(EmbeddingDimensionMismatchError):
            storage.search(bad)
    for bad in (START, {1}):
        with pytest.raises(TypeError, match="not JSON serializable"):
            storage.update(record("a", metadata={"bad": bad}))
    assert storage.count() == 5


def test_crewais_memory_remembers_recalls_updates_and_forgets(make_memory: Make) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[float("tea" in text), float("lamp" in text), 0.1] for text in texts]

    memory = Memory(storage=make_memory(), llm=MagicMock(), embedder=embed, root_scope="/crew/shop")
    options: dict[str, Any] = {"categories": ["facts"], "importance": 0.5}
    tea = memory.remember("Ada drinks tea.", scope="/ada", **options)
    memory.remember("The lamp blinks.", scope="/house", **options)
    other = Memory(storage=make_memory(), llm=MagicMock(), embedder=embed, root_scope="/crew/shop")
    assert [match.record.content for match in other.recall("tea", limit=1, depth="shallow")] == ["Ada drinks tea."]
    assert other.list_scopes("/") == ["/crew/shop/ada", "/crew/shop/house"]
    memory.update(tea.id, importance=1.0)
    assert [match.record.importance for match in other.recall("tea", limit=1, depth="shallow")] == [1.0]
    assert other.forget(scope="/house") == 1
    memory.reset()
    assert other.list_records() == []
