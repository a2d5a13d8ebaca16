"""Rows that SQL damages or moves: each read returns what was written, leaves it out, or raises an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from locus_mysql.dialect.resealing import SealedColumn
from locus_mysql.errors import CorruptCheckpoint, DecryptionFailed, EncryptionError

from ...thoroughness import FULL
from ..conftest import MakeConfig
from ..damaging import damages
from ..encryption.conftest import RunSQL, keys
from .conftest import Open
from .samples import Facts, Read, Sample, every_family
from .tampering import Tampering

pytestmark = pytest.mark.slow

each_family = every_family(kept=False)
encrypted_or_not = pytest.mark.parametrize("encrypted", [False, True], ids=["clear", "encrypted"])

NAMES = ("t", "u")


@pytest.mark.usefixtures("without_keys")
@pytest.mark.parametrize("encrypted", [False, True] if FULL else [False])
@each_family
async def test_no_damage_to_a_column_gives_another_value(
    sample: Sample, open_sample: Open, make_config: MakeConfig, run_sql: RunSQL, database: str, encrypted: bool
) -> None:
    store = open_sample(keys() if encrypted and sample.encrypts else None, cache_bytes=0)
    for name in NAMES:
        await sample.fill(store, name)
    reads = {name: sample.reads(store, name) for name in NAMES}
    written = {name: [await read() for read in reads[name]] for name in NAMES}
    assert all(all(facts) for facts in written.values())
    for tables, table in sample.every_table(make_config()):
        # The digest of memU's scopes finds records, and is never returned.
        sealed = {one.column for one in table.sealed} | {*table.made} - {"locus_scope"}
        noticed: dict[str, int] = {}
        for damage in damages(run_sql, database, tables.names[table.role]):
            if damage.column == "unlinked":  # marks a removal, which hides the parent
                continue
            if sample.family == "working" and damage.column == "value" and damage.change in {"NULL", "empty"}:
                continue  # like a deleted variable; reads of a note or a task miss it, and exports do not
            refused, lost = 0, set[Any]()
            for name in NAMES:
                errors, missing = await compare(reads[name], written[name], damage)
                refused += len(errors)
                lost |= missing
            assert refused or not lost or damage.column not in sealed, (damage, lost)
            noticed[damage.column] = noticed.get(damage.column, 0) + refused + len(lost)
        assert {column for column in sealed & noticed.keys() if not noticed[column]} == set()
    assert {name: [await read() for read in reads[name]] for name in NAMES} == written


async def compare(reads: list[Read], written: list[Facts], what: object) -> tuple[list[Exception], set[Any]]:
    """Compare reads of damaged tables with what they returned; return their errors, and what others left out."""
    errors: list[Exception] = []
    lost: set[Any] = set()
    known = {place: value for facts in written for place, value in facts.items()}
    for read, before in zip(reads, written, strict=True):
        try:
            found = await read()
        except (CorruptCheckpoint, EncryptionError) as error:
            errors.append(error)
        else:
            assert {place: known.get(place) for place in found} == found, what
            lost |= before.keys() - found.keys()
    return errors, lost


def place_of(column: SealedColumn, row: dict[str, Any], *, encrypted: bool) -> tuple[Any, ...]:
    """Return what the bytes of a row are bound to."""
    identity = column.identity(row) if column.identity and encrypted else tuple(row[name] for name in column.row)
    return (row["tenant"], *(row[name] for name in column.owner), *identity)


def pairs(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each row of tenant a with another one: the next, one half the table away, and so on in turns."""
    for number, row in enumerate(rows):
        if row["tenant"] == "a":
            yield row, rows[(number + (1, len(rows) // 2)[number % 2]) % len(rows)]


@encrypted_or_not
@every_family(lambda sample: sample.encrypts, kept=False)
async def test_bytes_of_another_row_owner_or_tenant_are_refused(
    sample: Sample, open_sample: Open, make_config: MakeConfig, tampering: Tampering, encrypted: bool
) -> None:
    options: dict[str, Any] = {"encryption": keys() if encrypted else None, "cache_bytes": 0}
    stores = {tenant: open_sample(**options, tenant=tenant) for tenant in ("a", "b")}
    for store in stores.values():
        for name in NAMES:
            await sample.fill(store, name)
    reads = {name: sample.reads(stores["a"], name) for name in NAMES}
    written = {name: [await read() for read in reads[name]] for name in NAMES}
    checked = 0
    for column in sample.tables(make_config()).encrypted_columns():
        for target, other in pairs(tampering.rows(column)):
            # Not an older value of the same place; without keys, text has its seal in another column.
            places = [place_of(column, row, encrypted=encrypted) for row in (target, other)]
            if places[0] == places[1] or target[column.column] == other[column.column]:
                continue
            tampering.put(column, target, other[column.column])
            compared = [await compare(reads[name], written[name], (column.table, target)) for name in NAMES]
            tampering.put(column, target, target[column.column])
            errors = [error for one, _ in compared for error in one]
            assert any(isinstance(error, DecryptionFailed if encrypted else CorruptCheckpoint) for error in errors)
            checked += 1
    assert checked >= sample.rows
    assert {name: [await read() for read in reads[name]] for name in NAMES} == written


@pytest.mark.usefixtures("without_keys")
@each_family
async def test_rows_that_were_moved_to_another_tenant_or_owner_are_refused(
    sample: Sample, open_sample: Open, make_config: MakeConfig, run_sql: RunSQL, database: str
) -> None:
    await sample.fill(open_sample(), "t")
    tables = sample.tables(make_config())

    def move(column: str, value: str) -> None:
        for _, table in sample.every_table(make_config()):
            if column == tables.tenant or column in table.key:
                run_sql(f"UPDATE {database}.`{tables.names[table.role]}` SET {column} = %s", value)

    async def refused(tenant: str, name: str) -> int:
        count = 0
        for read in sample.reads(open_sample(cache_bytes=0, tenant=tenant), name):
            try:
                assert await read() == {}
            except CorruptCheckpoint:
                count += 1
        return count

    move(tables.tenant, "new")
    assert await refused("new", "t") > 0
    move(tables.tenant, "default")
    assert await sample.read(open_sample(), "t") != {}
    if tables.owner.named in tables.owner.key:
        move(tables.owner.named, "new")
        assert await refused("default", "new") > 0
