"""memU's records damaged by SQL, column by column: a read returns the saved record, or an error names it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.integrations.memu import MemuDatabase, RecallDatabase

from ...conftest import MakeConfig
from ...damaging import Damage, damages
from .conftest import ADA, UserModel

pytestmark = [pytest.mark.slow]

RunSQL = Callable[..., tuple[Any, ...]]

#: The tables, each with columns that may be exchanged, and the name of a record in errors.
TABLES = {
    "resources": (["caption", "url"], "Resource"),
    "memory_items": (["summary", "extra"], "Item"),
    "memory_categories": (["description", "summary"], "Category"),
    "category_items": (["item_id", "category_id"], "Relation"),
    "recall_files": (["description", "content"], "Recall file"),
    "recall_file_segments": (["text", "recall_file_id"], "Segment"),
}

#: Columns that the server writes.
TIMES = {"created_at", "updated_at"}

#: Columns that find or rank records and are never returned.
HIDDEN = {"locus_tenant", "locus_scope", "locus_hash", "locus_dims", "locus_mark", "locus_ref"}


def _fill(memu: MemuDatabase, recall: RecallDatabase, number: int) -> None:
    recall.resource_repo.create_resource(
        url=f"w{number}", local_path="p", caption="c", embedding=[1.0, number], user_data=ADA, track="workspace"
    )
    file = recall.recall_file_repo.get_or_create_recall_file(
        name=f"n{number}", description="", embedding=[], user_data=ADA
    )
    recall.recall_file_repo.get_or_create_recall_file(
        name=f"n{number}", description=f"d{number}", embedding=[2.0, number], user_data=ADA
    )
    recall.recall_file_repo.update_recall_file(recall_file_id=file.id, content=f"süß {number}")
    recall.recall_file_segment_repo.create_segment(
        recall_file_id=file.id, text=f"süß {number}", embedding=[1.0, number], user_data=ADA
    )
    resource = memu.resource_repo.create_resource(
        url=f"u{number}", modality="text", local_path="p", caption=f"caption {number}", embedding=None, user_data=ADA
    )
    item = memu.memory_item_repo.create_item(
        resource_id=resource.id,
        memory_type="event",
        summary=f"süß {number}",
        embedding=[1.0, number],
        user_data={**ADA, "extra": {"b": 1, "a": [1.5, number]}},
    )
    memu.memory_item_repo.update_item(item_id=item.id, summary=f"süßer ☕ {number}", extra={"ref_id": f"r{number}"})
    for _ in range(3):
        memu.memory_item_repo.create_item(
            resource_id=None, memory_type="event", summary=f"again {number}", embedding=[0.0, 1.0], user_data=ADA,
            reinforce=True,
        )  # fmt: skip
    category = memu.memory_category_repo.get_or_create_category(
        name=f"n{number}", description="", embedding=[1.0], user_data=ADA
    )
    memu.memory_category_repo.get_or_create_category(
        name=f"n{number}", description=f"d{number}", embedding=[2.0], user_data=ADA
    )
    memu.memory_category_repo.update_category(category_id=category.id, summary=f"s{number}")
    memu.category_item_repo.link_item_category(item.id, category.id, ADA)


class Saved:
    """Compares the saved records with the reads of a database.

    Args:
        memu: The database.
    """

    def __init__(self, memu: MemuDatabase) -> None:
        self.memu = memu
        self.recall = RecallDatabase(memu.database, user_model=UserModel)
        self._records = {name: self._listed(name) for name in TABLES}
        self._scores = dict(self._search())
        assert len(self._scores) == 4 + 2
        assert all(self._records.values())

    def _listed(self, table: str) -> dict[str, Any]:
        repositories = {
            "resources": self.memu.resource_repo.list_resources,
            "memory_items": self.memu.memory_item_repo.list_items,
            "memory_categories": self.memu.memory_category_repo.list_categories,
            "recall_files": self.recall.recall_file_repo.list_recall_files,
        }
        if table in repositories:
            return dict(repositories[table]())
        if table == "recall_file_segments":
            return {record.id: record for record in self.recall.segments}
        return {record.id: record for record in self.memu.category_item_repo.list_relations()}

    def _search(self) -> list[tuple[str, float]]:
        query = [1.0, 1.0]
        return [
            *self.memu.memory_item_repo.vector_search_items(query, 10),
            *self.recall.resource_repo.vector_search_resources(query, 10),
        ]

    def check(self, table: str, damage: Damage) -> int:
        """Compare all reads with the saved records, and return the number of refused reads."""
        refused = 0
        for name, saved in self._records.items():
            try:
                found = self._listed(name)
            except CorruptCheckpoint as error:
                message = str(error)
                refused += 1
                named = message.startswith(TABLES[table][1]) and "cannot be read: its checksum is wrong" in message
                if name != table or not named or damage.column in TIMES:
                    raise
            else:
                assert _without_times(found).items() <= _without_times(saved).items(), (damage, found)
                assert len(found) == len(saved) or damage.column in HIDDEN, damage
        for id, score in self._search():
            assert score == self._scores[id], damage
        return refused


def _without_times(records: dict[str, Any]) -> dict[str, Any]:
    return {id: record.model_dump(exclude=TIMES) for id, record in records.items()}


@pytest.fixture
def saved(make_config: MakeConfig) -> Any:
    """A database with two records of each kind, which caches no embeddings."""
    memu = MemuDatabase(make_config(driver="pymysql", table_prefix=""), user_model=UserModel, vector_cache_bytes=0)
    recall = RecallDatabase(memu.database, user_model=UserModel)
    for number in (1, 2):
        _fill(memu, recall, number)
    yield Saved(memu)
    memu.close()


@pytest.fixture
def without_keys(run_sql: RunSQL) -> Any:
    """Allow changes of rows that other rows refer to."""
    run_sql("SET SESSION foreign_key_checks = 0")
    yield
    run_sql("SET SESSION foreign_key_checks = 1")


@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize("table", TABLES)
def test_no_damage_to_a_column_gives_another_value(saved: Saved, run_sql: RunSQL, database: str, table: str) -> None:
    refused: dict[str, int] = {}
    for damage in damages(run_sql, database, table):
        refused[damage.column] = refused.get(damage.column, 0) + saved.check(table, damage)
    assert saved.check(table, Damage("", "", "none", 0)) == 0
    assert all(count > 0 for column, count in refused.items() if column not in HIDDEN | TIMES), refused


@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize("table", TABLES)
def test_contents_that_are_exchanged_are_noticed(saved: Saved, run_sql: RunSQL, database: str, table: str) -> None:
    columns = [*TABLES[table][0], "locus_seals"]
    name = f"{database}.{table}"
    setting = ", ".join(f"{column} = %s" for column in columns)
    rows = run_sql(f"SELECT id, {', '.join(columns)} FROM {name}")
    (one, other), *_ = itertools.combinations(rows, 2)
    for row, content in ((one, ["x", *other[2:]]), (other, one[1:]), (one, other[1:])):
        run_sql(f"UPDATE {name} SET {setting} WHERE id = %s", *content, row[0])
    assert saved.check(table, Damage(table, str(columns), "exchanged", 0)) > 0
    for row in (one, other):
        run_sql(f"UPDATE {name} SET {setting} WHERE id = %s", "x", *row[2:], row[0])
    for row in (one, other):
        run_sql(f"UPDATE {name} SET {setting} WHERE id = %s", *row[1:], row[0])
    assert saved.check(table, Damage("", "", "none", 0)) == 0


@pytest.mark.usefixtures("without_keys")
def test_records_of_another_tenant_are_refused(
    saved: Saved, run_sql: RunSQL, database: str, make_config: MakeConfig
) -> None:
    for table in TABLES:
        run_sql(f"UPDATE {database}.{table} SET locus_tenant = 'new'")
    memu = MemuDatabase(make_config(driver="pymysql", table_prefix="", tenant="new"), user_model=UserModel)
    for read in (
        memu.resource_repo.list_resources,
        memu.memory_item_repo.list_items,
        memu.memory_category_repo.list_categories,
        memu.category_item_repo.list_relations,
    ):
        with pytest.raises(CorruptCheckpoint, match="cannot be read: its checksum is wrong"):
            read()
    assert memu.memory_item_repo.vector_search_items([1.0, 1.0], 10) == []
    memu.close()


def test_a_change_of_a_damaged_record_does_not_make_it_pass_for_sound(
    saved: Saved, run_sql: RunSQL, database: str
) -> None:
    memu = saved.memu
    item = memu.memory_item_repo.create_item(
        resource_id=None, memory_type="event", summary="a", embedding=[1.0, 2.0], user_data=ADA, reinforce=True
    )
    run_sql(f"UPDATE {database}.memory_items SET embedding = x'0000803F0000803F' WHERE id = %s", item.id)
    with pytest.raises(CorruptCheckpoint, match=f"Item '{item.id}' cannot be read: its checksum is wrong"):
        memu.memory_item_repo.update_item(item_id=item.id, extra={"a": 1})
    with pytest.raises(CorruptCheckpoint, match=f"Item '{item.id}' cannot be read: its checksum is wrong"):
        memu.memory_item_repo.create_item(
            resource_id=None, memory_type="event", summary="a", embedding=[1.0, 2.0], user_data=ADA, reinforce=True
        )
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
    saved: Saved, run_sql: RunSQL, database: str, table: str, move: str
) -> None:
    carl = {"user_id": "carl"}
    memu = saved.memu
    memu.resource_repo.create_resource(
        url="u", modality="text", local_path="p", caption=None, embedding=None, user_data=carl
    )
    item = memu.memory_item_repo.create_item(memory_type="event", summary="s", embedding=[3.0, 4.0], user_data=carl)
    category = memu.memory_category_repo.get_or_create_category(
        name="n", description="d", embedding=[1.0], user_data=carl
    )
    memu.category_item_repo.link_item_category(item.id, category.id, carl)
    recall = saved.recall
    recall.recall_file_repo.get_or_create_recall_file(name="n", description="", embedding=[], user_data=carl)
    recall.recall_file_segment_repo.create_segment(recall_file_id="f", text="t", embedding=None, user_data=carl)
    name = f"{database}.{table}"
    moved = [id for (id,) in run_sql(f"SELECT id FROM {name} WHERE user_id = 'ada'")]
    run_sql(f"UPDATE {name} SET {move.format(table=name)} WHERE user_id = 'ada'")
    for where in ({"user_id": "bob"}, {"agent_id": "x"}, None, {"user_id": "carl"}):
        reads = {
            "resources": memu.resource_repo.list_resources,
            "memory_items": memu.memory_item_repo.list_items,
            "memory_categories": memu.memory_category_repo.list_categories,
            "category_items": memu.category_item_repo.list_relations,
            "recall_files": recall.recall_file_repo.list_recall_files,
            "recall_file_segments": recall.recall_file_segment_repo.list_segments,
        }
        found: Any = ()
        with contextlib.suppress(CorruptCheckpoint):
            found = reads[table](where)
        assert not {*moved} & {record if isinstance(record, str) else record.id for record in found}, where
        if table == "memory_items":
            assert not {*moved} & dict(memu.memory_item_repo.vector_search_items([1.0, 1.0], 10, where)).keys()
    with pytest.raises(CorruptCheckpoint, match="its checksum is wrong"):
        reads[table](None)
