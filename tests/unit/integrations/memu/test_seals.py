"""The seals of memU's records cover their place: tenant, kind and id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from locus_mysql.integrations.memu.seals import RecordSeals

FILE: dict[str, Any] = {
    "id": "one", "track": "memory", "name": "n", "description": "d", "content": None, "embedding": b"abcd",
    "user_id": "ada",
}  # fmt: skip


@pytest.mark.parametrize("column", ["id", "track", "name", "description", "content", "embedding", "user_id"])
def test_a_changed_column_does_not_fit(column: str) -> None:
    seals = RecordSeals("t", "recall_files", ("user_id",))
    stored = seals.text(FILE)
    assert seals.fit({**FILE, "locus_seals": stored})
    assert not seals.fit({**FILE, column: "x", "locus_seals": stored})


@pytest.mark.parametrize(("tenant", "role"), [("u", "categories"), ("t", "recall_files")])
def test_a_record_of_another_tenant_or_kind_does_not_fit(tenant: str, role: str) -> None:
    record = {**FILE, "summary": None}
    stored = RecordSeals("t", "categories", ("user_id",)).text(record)
    assert not RecordSeals(tenant, role, ("user_id",)).fit({**record, "locus_seals": stored})


def test_a_value_is_sealed_for_a_record_whose_id_is_unknown() -> None:
    seals = RecordSeals("t", "recall_files", ("user_id",))
    stored = {**FILE, "id": "two", "description": ""}
    kept = json.loads(seals.text(stored))
    kept["description"] = (seals.difference(FILE, "description") or 0) ^ kept["locus_row"]
    assert seals.fit({**stored, "description": "d", "locus_seals": json.dumps(kept)})
