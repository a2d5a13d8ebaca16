"""Records of checkpoints made from rows; damaged rows are skipped."""

from __future__ import annotations

import inspect
from datetime import datetime

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.records import (
    checkpoint_info,
    decode_state_text,
    history_entry,
    row_seal,
)
from locus_mysql.families.checkpoints.statements.queries import HistoryRow, MetadataRow
from locus_mysql.families.checkpoints.store import StoreOperations

from .states import CLEAR

AT = datetime(2026, 1, 1)
TOKEN = b"t" * 16


@pytest.mark.parametrize("text", [b"[1]", b"5", b"null", b'"a"', b"", b"{", b"\xff"])
def test_a_state_that_is_not_an_object_is_damaged(text: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="thread 't' is not readable JSON of an object"):
        decode_state_text(text, "t")
    assert decode_state_text(b'{"a":[1]}', "t") == {"a": [1]}


@pytest.mark.parametrize("metadata", ["[1]", "5", "null", '"a"', "{", "[" * 100_000])
def test_metadata_that_is_not_an_object_is_damaged(metadata: str) -> None:
    for parse in (
        lambda: checkpoint_info(MetadataRow("c", metadata, AT, TOKEN, seal_of("c", metadata)), "t", CLEAR),
        lambda: history_entry(HistoryRow(1, "c", None, AT, 1, metadata, TOKEN, seal_of("c", metadata)), "t", CLEAR),
    ):
        with pytest.raises(CorruptCheckpoint, match="metadata of checkpoint 'c' of thread 't'"):
            parse()


def seal_of(checkpoint_id: str, metadata: str | None, thread_id: str = "t") -> int:
    return row_seal(CLEAR.of("tenant", thread_id), checkpoint_id, TOKEN, metadata)


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
