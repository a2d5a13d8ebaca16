"""Records of checkpoints made from rows; damaged rows are skipped."""

from __future__ import annotations

import inspect
import logging
from datetime import datetime

import pytest

from locus_mysql.dialect.checkpoints.queries import HistoryRow, MetadataRow, NewestRow
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.records import (
    checkpoint_info,
    decode_state_text,
    found_info,
    history_entry,
)
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.runtime.damaged_rows import readable

AT = datetime(2026, 1, 1)


@pytest.mark.parametrize("text", [b"[1]", b"5", b"null", b'"a"', b"", b"{", b"\xff"])
def test_a_state_that_is_not_an_object_is_damaged(text: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="thread 't' is not readable JSON of an object"):
        decode_state_text(text, "t")
    assert decode_state_text(b'{"a":[1]}', "t") == {"a": [1]}


@pytest.mark.parametrize("metadata", ["[1]", "5", "null", '"a"', "{", "[" * 100_000])
def test_metadata_that_is_not_an_object_is_damaged(metadata: str) -> None:
    for parse in (
        lambda: checkpoint_info("t", MetadataRow("c", metadata, AT, 1)),
        lambda: history_entry("t", HistoryRow("c", None, AT, 1, metadata, 1)),
    ):
        with pytest.raises(CorruptCheckpoint, match="metadata of checkpoint 'c' of thread 't'"):
            parse()


def test_damaged_rows_are_skipped_and_logged_with_names_only_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql")
    rows = [NewestRow("t", "c", "{}", AT, 1), NewestRow("secret", "d", "[]", AT, 1), NewestRow("t", "e", "{}", AT, 1)]
    assert [info["checkpoint_id"] for info in readable(found_info, rows)] == ["c", "e"]
    warning, detail = caplog.records
    assert (warning.levelname, detail.levelname) == ("WARNING", "DEBUG")
    assert "damaged" in warning.getMessage()
    assert "secret" not in warning.getMessage()
    assert "'secret'" in detail.getMessage()


def test_without_a_limit_a_store_returns_the_default_number() -> None:
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
