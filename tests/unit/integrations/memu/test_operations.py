"""memU's operations, driven with plain values."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from locus_mysql.config import MySQLConfig
from locus_mysql.dialect.sql import SQL
from locus_mysql.dialect.statement import Text
from locus_mysql.drivers.interface import Result
from locus_mysql.engine.operation import Duplicate, Operation, Outdated
from locus_mysql.errors import NotFound
from locus_mysql.integrations.memu import statements
from locus_mysql.integrations.memu.items import ItemOperations
from locus_mysql.integrations.memu.operations import MemuStore
from locus_mysql.integrations.memu.records import content_hash

from ...driven import Driven, Landed
from .statements import memu_statements


class UserModel(BaseModel):
    user_id: str


@pytest.fixture
def store() -> MemuStore:
    return MemuStore(MySQLConfig(host="h", table_prefix=""), UserModel, 1_000)


def drive(operation: Operation[Any], *answers: Any) -> Any:
    """Run an operation on these answers: rows of each batch's only statement, `Landed`, or an error."""
    driven = Driven(operation)
    next(driven)
    for answer in answers:
        try:
            if isinstance(answer, Exception):
                driven.throw(answer)
            else:
                driven.send(answer if isinstance(answer, Landed) else [Result(answer, 0)])
        except StopIteration as done:
            return done.value
    raise AssertionError(f"It goes on with {driven.batch}")


def test_an_item_deleted_before_it_is_read_back_still_counts_as_created(store: MemuStore) -> None:
    creating = ItemOperations(store).create_item(
        memory_type="event", summary="s", embedding=[1.0], user_data={"user_id": "ada"}, reinforce=True
    )
    item = drive(creating, Landed(b"token"), ())
    assert (item.summary, item.embedding, item.user_id) == ("s", [1.0], "ada")
    assert item.extra == {"content_hash": content_hash("s", "event"), "reinforcement_count": 1}


def test_a_hash_that_another_item_has_stays_in_the_extra_only(store: MemuStore) -> None:
    updating = ItemOperations(store).update_item(item_id="i", extra={"content_hash": "0123456789abcdef"})
    first = next(updating)
    assert "0123456789abcdef" in first.statements[0].params
    second = updating.throw(Duplicate("memory_items", "locus_once", "Duplicate entry"))
    assert second.statements[0].params[:2] == (None, '$."content_hash"')
    with pytest.raises(NotFound):
        updating.throw(Outdated("no row"))


def test_the_tests_of_all_statements_make_each_declared_one() -> None:
    declared = {one.text for one in vars(statements).values() if isinstance(one, SQL)}
    assert declared <= {one.sql.template for _, one in memu_statements() if isinstance(one.sql, Text)}


def test_case_and_white_space_make_no_difference_to_a_hash() -> None:
    assert content_hash(" Ada\tlikes\n TEA ", "event") == content_hash("ada likes tea", "event")
    assert content_hash("ada likes tea", "event") != content_hash("ada likes tea", "profile")
    assert len(content_hash("", "")) == 16
