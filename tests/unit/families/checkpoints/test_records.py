"""Records of checkpoints made from rows; damaged rows are skipped."""

from __future__ import annotations

import inspect
import logging
from datetime import UTC, datetime
from functools import partial

import pytest

from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.records import (
    checkpoint_info,
    checkpoints_of,
    decode_state_text,
    found_info,
    history_entry,
)
from locus_mysql.families.checkpoints.state_rows import SealedRow, check_row, row_seal
from locus_mysql.families.checkpoints.statements.queries import ChosenRow, HistoryRow, MetadataRow, NewestRow
from locus_mysql.families.checkpoints.store import StoreOperations
from locus_mysql.runtime.damaged_rows import readable

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
        lambda: history_entry(HistoryRow("c", None, AT, 1, metadata, TOKEN, seal_of("c", metadata)), "t", CLEAR),
    ):
        with pytest.raises(CorruptCheckpoint, match="metadata of checkpoint 'c' of thread 't'"):
            parse()


def test_a_row_that_does_not_fit_its_seal_is_damaged() -> None:
    right = SealedRow("c", TOKEN, "{}", seal_of("c", "{}"))
    check_row(right, "t", CLEAR)
    for wrong in (
        right._replace(checkpoint_id="d"),
        right._replace(token=bytes(16)),
        right._replace(metadata=None),
        right._replace(metadata='{"a":1}'),
        right._replace(seal=right.seal ^ 1),
        right._replace(seal=None),
    ):
        for parse in (
            lambda row=wrong: check_row(row, "t", CLEAR),
            lambda row=wrong: checkpoint_info(MetadataRow(row[0], row[2], AT, row[1], row[3]), "t", CLEAR),
            lambda row=wrong: history_entry(HistoryRow(row[0], None, AT, 1, row[2], row[1], row[3]), "t", CLEAR),
        ):
            with pytest.raises(CorruptCheckpoint, match="of thread 't' does not fit its seal"):
                parse()
    with pytest.raises(CorruptCheckpoint, match="of thread 'u' does not fit its seal"):
        check_row(right, "u", CLEAR.of("tenant", "u"))


def seal_of(checkpoint_id: str, metadata: str | None, thread_id: str = "t") -> int:
    return row_seal(CLEAR.of("tenant", thread_id), checkpoint_id, TOKEN, metadata)


def test_a_checkpoint_and_an_entry_of_a_history() -> None:
    at = AT.replace(tzinfo=UTC)
    assert checkpoint_info(MetadataRow("c", None, AT, TOKEN, seal_of("c", None)), "t", CLEAR) == {
        "thread_id": "t",
        "checkpoint_id": "c",
        "metadata": {},
        "created_at": at,
        "updated_at": at,
    }
    assert history_entry(HistoryRow("c", "b", AT, 7, '{"a":1}', TOKEN, seal_of("c", '{"a":1}')), "t", CLEAR) == {
        "checkpoint_id": "c",
        "parent_id": "b",
        "created_at": at,
        "size_bytes": 7,
        "metadata": {"a": 1},
    }


def test_rows_of_a_checkpoint_belong_together() -> None:
    rows = [
        ChosenRow(thread_id, name, None, AT, 1, seq, b"", b"", AT)
        for seq, (thread_id, name) in enumerate([("t", "c"), ("t", "c"), ("t", "d"), ("u", "d")])
    ]
    assert [[row.seq for row in group] for group in checkpoints_of(rows)] == [[0, 1], [2], [3]]


def test_damaged_rows_are_skipped_and_logged_with_names_only_at_debug_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "locus_mysql")
    rows = [
        NewestRow(thread_id, name, metadata, AT, TOKEN, seal_of(name, metadata, thread_id))
        for thread_id, name, metadata in (("t", "c", "{}"), ("secret", "d", "[]"), ("t", "e", "{}"))
    ]
    info = partial(found_info, tenant="tenant", sealing=CLEAR)
    assert [one["checkpoint_id"] for one in readable(info, rows)] == ["c", "e"]
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
