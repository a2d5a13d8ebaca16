"""Makes the published package ``langgraph-checkpoint-mysql`` work on MySQL 9.

MySQL 9 does not allow ``MD5`` in generated columns, so it is replaced by ``SHA2`` while a test runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.checkpoint.mysql.base import BaseMySQLSaver

_STATEMENTS = (
    "UPSERT_CHECKPOINT_BLOBS_SQL",
    "UPSERT_CHECKPOINTS_SQL",
    "UPSERT_CHECKPOINT_WRITES_SQL",
    "INSERT_CHECKPOINT_WRITES_SQL",
)


@contextmanager
def working_on_mysql_9() -> Iterator[None]:
    """Replace ``MD5`` by ``SHA2`` inside the block."""
    select = BaseMySQLSaver._select_sql
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseMySQLSaver, "MIGRATIONS", [_exchanged(text) for text in BaseMySQLSaver.MIGRATIONS])
        for name in _STATEMENTS:
            patch.setattr(BaseMySQLSaver, name, _exchanged(getattr(BaseMySQLSaver, name)))

        def exchanged_select(where: str) -> Any:
            return select(_exchanged(where))

        patch.setattr(BaseMySQLSaver, "_select_sql", staticmethod(exchanged_select))
        yield


def _exchanged(text: str) -> str:
    for argument in ("%s", "checkpoint_ns", "%(checkpoint_ns)s"):
        text = text.replace(f"MD5({argument})", f"LEFT(SHA2({argument}, 256), 32)")
    return text
