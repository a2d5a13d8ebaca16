"""What is told of checkpoints, from rows; and what is damaged is left out."""

from __future__ import annotations

import inspect
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.records import (
    checkpoint_info,
    checkpoints_of,
    decode_state_text,
    history_entry,
)
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.runtime.damage import readable

AT = datetime(2026, 1, 1)


@pytest.mark.parametrize("text", [b"[1]", b"5", b"null", b'"a"', b"", b"{", b"\xff"])
def test_a_state_that_is_no_object_is_damaged(text: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="thread 't' is not readable JSON of an object"):
        decode_state_text(text, "t")
    assert decode_state_text(b'{"a":[1]}', "t") == {"a": [1]}


@pytest.mark.parametrize("metadata", ["[1]", "5", "null", '"a"', "{", "[" * 100_000])
def test_metadata_that_is_no_object_is_damaged(metadata: str) -> None:
    for parse in (
        lambda: checkpoint_info(("t", "c", metadata, AT)),
        lambda: history_entry("t", ("c", None, AT, 1, metadata)),
    ):
        with pytest.raises(CorruptCheckpoint, match="metadata of checkpoint 'c' of thread 't'"):
            parse()


def test_a_checkpoint_and_an_entry_of_a_history() -> None:
    at = AT.replace(tzinfo=UTC)
    assert checkpoint_info(("t", "c", None, AT)) == {
        "thread_id": "t",
        "checkpoint_id": "c",
        "metadata": {},
        "created_at": at,
        "updated_at": at,
    }
    assert history_entry("t", ("c", "b", AT, 7, '{"a":1}')) == {
        "checkpoint_id": "c",
        "parent_id": "b",
        "created_at": at,
        "size_bytes": 7,
        "metadata": {"a": 1},
    }


def test_rows_of_a_checkpoint_belong_together() -> None:
    rows: list[Any] = [("t", "c", None, 1), ("t", "c", None, 2), ("t", "d", None, 3), ("u", "d", None, 4)]
    assert [[row[-1] for row in group] for group in checkpoints_of(rows)] == [[1, 2], [3], [4]]


def test_what_is_damaged_is_left_out_and_logged_and_names_stand_only_at_the_lowest_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql")
    rows = [("t", "c", "{}", AT), ("secret", "d", "[]", AT), ("t", "e", "{}", AT)]
    assert [info["checkpoint_id"] for info in readable(checkpoint_info, rows)] == ["c", "e"]
    warning, detail = caplog.records
    assert (warning.levelname, detail.levelname) == ("WARNING", "DEBUG")
    assert "damaged" in warning.getMessage()
    assert "secret" not in warning.getMessage()
    assert "'secret'" in detail.getMessage()


def test_without_a_limit_a_store_gives_so_many() -> None:
    defaults = {
        f"{name}.{parameter.name}": parameter.default
        for name in (
            "list_checkpoints",
            "list_threads",
            "query_by_metadata",
            "search",
            "search_data",
            "vacuum",
            "history",
        )
        for parameter in inspect.signature(getattr(StoreOperations, name)).parameters.values()
        if parameter.default is not inspect.Parameter.empty
    }
    assert defaults == {
        "list_checkpoints.limit": 10,
        "list_threads.limit": 100,
        "list_threads.pattern": "*",
        "list_threads.offset": 0,
        "query_by_metadata.limit": 100,
        "search.limit": 10,
        "search_data.limit": 100,
        "vacuum.older_than_days": 30,
        "history.limit": 100,
    }
