"""Scopes of memU's records in exports and imports. The rest: `tests/integration/records/test_moving.py`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from locus_mysql import MySQLConfig
from locus_mysql.cli.main import main
from locus_mysql.integrations.memu import MemuDatabase, RecallDatabase

from ...commands import dsn_of
from ...conftest import MakeConfig

pytestmark = pytest.mark.slow

RunSql = Callable[..., tuple[Any, ...]]
SCOPED = ["--family", "memu", "--scope", "user_id,agent_id"]
COLUMNS = {
    "resources": "id, url, modality, local_path, caption, track, embedding, user_id, agent_id",
    "memory_categories": "id, name, description, embedding, summary, locus_scope, user_id, agent_id",
    "memory_items": "id, resource_id, memory_type, summary, embedding, happened_at, extra, locus_scope, locus_hash, "
    "locus_dims, user_id, agent_id",
    "category_items": "id, item_id, category_id, user_id, agent_id",
    "recall_files": "id, name, track, description, content, embedding, locus_scope, user_id, agent_id",
    "recall_file_segments": "id, recall_file_id, track, text, embedding, user_id, agent_id",
}


class UserModel(BaseModel):
    user_id: str | None = None
    agent_id: str | None = None


ADA = {"user_id": "ada", "agent_id": "é🙂"}
BOB = {"user_id": "bob"}


@pytest.fixture
def config(make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch) -> MySQLConfig:
    monkeypatch.setenv("LOCUS_MYSQL_DSN", dsn_of(make_config()))
    return make_config(driver="pymysql")


@pytest.fixture
def filled(config: MySQLConfig) -> int:
    """Add records of two scopes, and return their number."""
    with MemuDatabase(config, user_model=UserModel) as db:
        for user in (ADA, BOB):
            resource = db.resource_repo.create_resource(
                url="https://example.com/é",
                modality="document",
                local_path="/tmp/\n",
                caption=None,
                embedding=[0.1, -1e-30],
                user_data=user,
            )
            category = db.memory_category_repo.get_or_create_category(
                name="tastes", description="", embedding=[1.0, 2.0, 3.0], user_data=user
            )
            db.memory_category_repo.update_category(category_id=category.id, summary="what they like")
            for n in range(4):
                item = db.memory_item_repo.create_item(
                    resource_id=resource.id if n else None,
                    memory_type="profile",
                    summary=f"likes tea {n} \u2028",
                    embedding=[n, 0.5, 1 / 3] if n != 3 else None,
                    user_data=user,
                    reinforce=n < 2,
                )
                db.category_item_repo.link_item_category(item.id, category.id, user)
            db.memory_item_repo.create_item(
                memory_type="profile", summary="likes tea 0 \u2028", embedding=[1], user_data=user, reinforce=True
            )
            db.memory_item_repo.update_item(item_id=item.id, extra={"ref_id": "r-1", "π": [1.5, None, {"a": "é"}]})
    with RecallDatabase(config, user_model=UserModel) as recall:
        for user in (ADA, BOB):
            recall.resource_repo.create_resource(
                url="é.md", local_path="", caption="c", embedding=None, user_data=user, track="workspace"
            )
            file = recall.recall_file_repo.get_or_create_recall_file(
                name="tastes", description="", embedding=[], user_data=user, track="skill"
            )
            recall.recall_file_repo.update_recall_file(recall_file_id=file.id, content="likes tea \u2028")
            for text in ("tea", "é"):
                recall.recall_file_segment_repo.create_segment(
                    recall_file_id=file.id, text=text, embedding=[1 / 3], user_data=user, track="skill"
                )
    return 2 * (1 + 1 + 4 + 4 + 1 + 1 + 2)


@pytest.fixture
def kept(run_sql: RunSql, database: str) -> Callable[..., dict[str, Any]]:
    def rows(prefix: str = "", where: str = "TRUE") -> dict[str, Any]:
        return {
            name: run_sql(
                f"SELECT {columns}, created_at, updated_at FROM {database}.{prefix}{name} WHERE {where} ORDER BY id"
            )
            for name, columns in COLUMNS.items()
        }

    return rows


def test_only_one_scope_is_exported_if_asked_for(
    filled: int, kept: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memu.jsonl"
    assert main(["export", str(file), *SCOPED, "--where", "user_id=ada"]) == 0
    assert main(["import", str(file), "--table-prefix", "other_"]) == 0
    assert capsys.readouterr().out == f"Imported {filled // 2} rows.\n"
    assert kept("other_") == kept(where="user_id = 'ada'")
    for wrong in (["--where", "colour=red"], ["--namespace", "n"], ["--scope", "id"]):
        assert main(["export", str(tmp_path / "none.jsonl"), "--family", "memu", *wrong]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["export", str(tmp_path / "none.jsonl"), "--where", "user_id=ada"]) == 1


def test_no_field_of_the_scope_is_left_out_unnoticed(
    filled: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memu.jsonl"
    assert main(["export", str(file), "--family", "memu"]) == 1
    assert "--scope does not name: agent_id." in (output := capsys.readouterr().err)
    assert "Give --scope user_id,agent_id.\n" in output
    assert not file.exists()
    assert main(["export", str(file), *SCOPED]) == 0  # the failed export does not block this one
    assert f"Exported {filled} rows." in capsys.readouterr().err


class Kind(enum.Enum):
    HUMAN = "human"


class OfAllKinds(BaseModel):
    user_id: str | None = None
    level: int | None = None
    active: bool | None = None
    device: UUID | None = None
    since: datetime | None = None
    kind: Kind | None = None


def test_scopes_that_are_no_texts_are_exported_and_imported(
    config: MySQLConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, again, scope = tmp_path / "memu.jsonl", tmp_path / "again.jsonl", "user_id,level:int,active:bool"
    scope += ",device:uuid,since:datetime,kind"
    since = datetime(2026, 1, 31, 12, 0, 0, 1, UTC)
    some = {"user_id": "ada", "level": 3, "active": False, "device": UUID(int=7), "since": since, "kind": Kind.HUMAN}
    with MemuDatabase(config, user_model=OfAllKinds) as db:
        for user in (some, {"level": -1, "active": True}, {}):
            item = db.memory_item_repo.create_item(
                memory_type="event", summary="a", embedding=[1], user_data=user, reinforce=True
            )
            category = db.memory_category_repo.get_or_create_category(
                name="N", description="", embedding=None, user_data=user
            )
            db.category_item_repo.link_item_category(item.id, category.id, user)
        for wrong in ("user_id,level,active,device,since,kind", "user_id,level:int"):
            assert main(["export", str(file), "--family", "memu", "--scope", wrong]) == 1
            given = capsys.readouterr().err.partition("Give --scope ")[2].rstrip(".\n")
            assert sorted(given.split(",")) == sorted(scope.split(","))
        assert main(["export", str(file), "--family", "memu", "--scope", "user_id,level:float"]) == 1
        assert "one of str, int, bool, uuid, datetime" in capsys.readouterr().err
        assert main(["export", str(file), "--family", "memu", "--scope", scope]) == 0
        assert main(["import", str(file), "--table-prefix", "other_"]) == 0
        assert main(["import", str(file), "--table-prefix", "other_"]) == 0
        assert "9 already present" in capsys.readouterr().out
        assert main(["export", str(again), "--family", "memu", "--scope", scope, "--table-prefix", "other_"]) == 0
        assert again.read_bytes() == file.read_bytes()
        with MemuDatabase(config.for_store(table_prefix="other_"), user_model=OfAllKinds) as other:
            assert other.items == db.items
            assert other.categories == db.categories
            assert other.relations == db.relations
            (found,) = other.memory_item_repo.list_items({"since": since, "device": UUID(int=7)}).values()
            assert (found.level, found.active, found.kind) == (3, False, Kind.HUMAN)
    for where in ("level=3", "active=FALSE", f"device={UUID(int=7)}", "since=2026-01-31T13:00:00.000001+01:00"):
        assert main(["export", str(tmp_path / where[:5]), "--family", "memu", "--scope", scope, "--where", where]) == 0
        assert "Exported 3 rows." in capsys.readouterr().err
    for where in ("level=x", "active=maybe", "device=d", "since=now"):
        assert main(["export", str(file), "--family", "memu", "--scope", scope, "--where", where]) == 1
        assert f"{where.partition('=')[0]} is no " in capsys.readouterr().err


def test_records_that_are_there_as_something_else_are_left_alone(
    config: MySQLConfig, filled: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "memu.jsonl"
    assert main(["export", str(file), *SCOPED, "--where", "user_id=bob"]) == 0
    other = config.for_store(table_prefix="other_")
    with MemuDatabase(other, user_model=UserModel) as db:
        own = db.memory_category_repo.get_or_create_category(
            name="tastes", description="own", embedding=None, user_data=BOB
        )
        assert main(["import", str(file), "--table-prefix", "other_"]) == 1
        output = capsys.readouterr()
        assert "1 different in the target" in output.out
        assert "another one has its locus_once." in output.err
        assert output.err.count("was left out: a row that it refers to is not stored.") == 4  # its relations
        assert len(db.items) == 4
        assert db.categories[own.id].description == "own"
        changed = next(iter(db.items.values()))
        db.memory_item_repo.update_item(item_id=changed.id, summary="changed")
        assert main(["import", str(file), "--table-prefix", "other_"]) == 1
        assert f"Item '{changed.id}' differs in the tables." in capsys.readouterr().err
        assert db.items[changed.id].summary == "changed"
    assert main(["import", str(file), "--tenant", "acme"]) == 1  # ids are unique among all tenants
    assert "Imported 0 rows" in capsys.readouterr().out
    assert main(["import", str(file), "--overwrite"]) == 1
    assert "Rows of memu are not replaced (--overwrite)" in capsys.readouterr().err


def test_a_changed_record_is_named_and_left_out(
    config: MySQLConfig, filled: int, run_sql: RunSql, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_sql(f"UPDATE {config.database}.resources SET url = 'x' LIMIT 1")
    run_sql(f"UPDATE {config.database}.memory_categories SET user_id = 'eve' LIMIT 1")
    assert main(["export", str(tmp_path / "memu.jsonl"), *SCOPED]) == 1
    assert capsys.readouterr().err.count("does not fit its seal") == 2
