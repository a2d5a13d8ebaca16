"""Keys, and a search for clear text in every column of every table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Encryption

#: Keys of tests, by their ids.
KEYS = {"2026-10": b"\x0a" * 32, "2026-11": b"\x0b" * 32}

#: The text that must not be found in any table. No coding but compression and encryption hides it.
MARKER = "Zanzibar-7f3a91"

RunSQL = Callable[..., tuple[Any, ...]]


def keys(active: str = "2026-11", *known: str) -> Encryption:
    """Return an encryption with some of `KEYS`, all by default."""
    return Encryption(keys={key_id: KEYS[key_id] for key_id in known or KEYS}, active=active)


@pytest.fixture
def columns_with(run_sql: RunSQL, database: str) -> Callable[..., list[str]]:
    """Return ``columns_with(text)``: the columns, as ``table.column``, in which bytes of a text are found."""

    def places(text: str = MARKER) -> list[str]:
        found = []
        columns = run_sql(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s", database
        )
        for table, column in columns:
            (rows,) = run_sql(
                f"SELECT COUNT(*) FROM {database}.`{table}` WHERE LOCATE(%s, CAST(`{column}` AS BINARY)) > 0",
                text.encode(),
            )
            if rows[0]:
                found.append(f"{table}.{column}")
        return found

    return places
