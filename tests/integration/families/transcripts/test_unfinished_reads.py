"""Answers that are cut off, and reads that never agree, are errors: nothing is taken for absent or empty."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.dialect.sql import SQL
from locus_mysql.engine import retry
from locus_mysql.engine.operation import Batch, Operation
from locus_mysql.errors import Unavailable
from locus_mysql.families.transcripts.statements import writing
from locus_mysql.transcripts import NewItem, TranscriptKey

from ...conftest import ONE_OF_EACH
from .conftest import Make

pytestmark = [
    pytest.mark.kept_tables("transcripts"),
    pytest.mark.parametrize("side", ONE_OF_EACH, indirect=True),
]

KEY = TranscriptKey("kind", "", "session")


def truncated() -> Operation[None]:
    yield Batch((Statement("SET SESSION sql_select_limit = 2"),))


async def test_items_that_were_cut_off_are_an_error(make_store: Make) -> None:
    store: Any = make_store(pool_size=1)
    await store.append(KEY, [NewItem(number) for number in range(3)])
    await store._run(truncated())
    with pytest.raises(Unavailable, match="cut off after 2 rows"):
        await store.read(KEY)
    assert [item.content for item in (await make_store().read(KEY)).items] == [0, 1, 2]


async def test_a_transcript_that_others_change_before_each_attempt_is_an_error_at_the_deadline(
    make_store: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "GIVE_UP_AFTER_S", 0.2)
    store: Any = make_store()
    await store.append(KEY, [NewItem(1)])
    monkeypatch.setattr(writing, "GUARD", SQL("SELECT CAST('' AS JSON)"))
    with pytest.raises(
        Unavailable, match="Other writers changed transcript 'session' before its last item was removed"
    ):
        await store.pop(KEY)
    assert [item.content for item in (await make_store().read(KEY)).items] == [1]
