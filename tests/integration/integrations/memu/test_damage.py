"""Records moved to other scopes, or damaged before a change. The rest: `tests/integration/contract/test_damage.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.integrations.memu import MemuDatabase, RecallDatabase

from ...conftest import MakeConfig
from .conftest import ADA, UserModel

pytestmark = [pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]

CARL = {"user_id": "carl"}

TABLES = (
    *("resources", "memory_items", "memory_categories", "category_items"),
    *("recall_files", "recall_file_segments"),
)


@pytest.fixture
def memu(make_config: MakeConfig) -> Iterator[MemuDatabase]:
    """A database that caches no embeddings."""
    config = make_config(driver="pymysql", table_prefix="")
    with MemuDatabase(config, user_model=UserModel, vector_cache_bytes=0) as memu:
        yield memu


def fill(memu: MemuDatabase, recall: RecallDatabase, user: dict[str, Any]) -> None:
    """Store a record of each kind."""
    memu.resource_repo.create_resource(
        url="u", modality="text", local_path="p", caption=None, embedding=None, user_data=user
    )
    item = memu.memory_item_repo.create_item(memory_type="event", summary="s", embedding=[3.0, 4.0], user_data=user)
    category = memu.memory_category_repo.get_or_create_category(
        name="n", description="d", embedding=[1.0], user_data=user
    )
    memu.category_item_repo.link_item_category(item.id, category.id, user)
    recall.recall_file_repo.get_or_create_recall_file(name="n", description="", embedding=[], user_data=user)
    recall.recall_file_segment_repo.create_segment(recall_file_id="f", text="t", embedding=None, user_data=user)


def test_a_change_of_a_damaged_record_does_not_make_it_pass_for_sound(
    memu: MemuDatabase, run_sql: RunSQL, database: str
) -> None:
    def create() -> Any:
        return memu.memory_item_repo.create_item(
            resource_id=None, memory_type="event", summary="a", embedding=[1.0, 2.0], user_data=ADA, reinforce=True
        )

    item = create()
    run_sql(f"UPDATE {database}.memory_items SET embedding = x'0000803F0000803F' WHERE id = %s", item.id)
    for change in (lambda: memu.memory_item_repo.update_item(item_id=item.id, extra={"a": 1}), create):
        with pytest.raises(CorruptCheckpoint, match=f"Item '{item.id}' cannot be read: its checksum is wrong"):
            change()
    assert item.id not in dict(memu.memory_item_repo.vector_search_items([1.0, 1.0], 10))
    memu.memory_item_repo.delete_item(item.id)
    assert memu.memory_item_repo.get_item(item.id) is None


#: Moves of a record to another scope, each as the assignments of an UPDATE.
MOVES = {
    "to another user": "user_id = 'bob'",
    "to another agent": "agent_id = 'x'",
    "to nobody": "user_id = NULL",
    "of the checksums too": "locus_seals = (SELECT * FROM (SELECT locus_seals FROM {table} "
    "WHERE user_id = 'carl' LIMIT 1) AS other), user_id = 'carl'",
}


@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_record_that_was_moved_to_another_scope_is_refused(
    memu: MemuDatabase, run_sql: RunSQL, database: str, table: str, move: str
) -> None:
    recall = RecallDatabase(memu.database, user_model=UserModel)
    for user in (ADA, CARL):
        fill(memu, recall, user)
    name = f"{database}.{table}"
    moved = [id for (id,) in run_sql(f"SELECT id FROM {name} WHERE user_id = 'ada'")]
    run_sql(f"UPDATE {name} SET {move.format(table=name)} WHERE user_id = 'ada'")
    reads: dict[str, Callable[..., Any]] = {
        "resources": memu.resource_repo.list_resources,
        "memory_items": memu.memory_item_repo.list_items,
        "memory_categories": memu.memory_category_repo.list_categories,
        "category_items": memu.category_item_repo.list_relations,
        "recall_files": recall.recall_file_repo.list_recall_files,
        "recall_file_segments": recall.recall_file_segment_repo.list_segments,
    }
    for where in ({"user_id": "bob"}, {"agent_id": "x"}, None, CARL):
        found: Any = ()
        with contextlib.suppress(CorruptCheckpoint):
            found = reads[table](where)
        assert not {*moved} & {record if isinstance(record, str) else record.id for record in found}, where
        if table == "memory_items":
            assert not {*moved} & dict(memu.memory_item_repo.vector_search_items([1.0, 1.0], 10, where)).keys()
    with pytest.raises(CorruptCheckpoint, match="its checksum is wrong"):
        reads[table](None)
