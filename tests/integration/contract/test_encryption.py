"""What holds for every family that encrypts: nothing in clear text, bytes bound to their place, rotation, transfers."""

from __future__ import annotations

import asyncio
import itertools
import re
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus_mysql import Database, Encryption, MySQLConfig, reencrypt
from locus_mysql.cli.family_files import export_rows, import_lines
from locus_mysql.dialect.resealing import SealedColumn
from locus_mysql.errors import DecryptionFailed, EncryptionError
from locus_mysql.families import reencryption
from locus_mysql.families.family import EncryptsColumns
from locus_mysql.families.registry import find_family
from locus_mysql.inspection.inspector import Inspector
from locus_mysql.records.transfer import RowSource
from locus_mysql.runtime.sealing import of_text, sealed_by
from locus_mysql.transfer.engine import TransferReport

from ...either_side import AnyStore
from ..conftest import EACH_WAY, MakeConfig
from ..encryption.conftest import KEYS, MARKER, keys
from .conftest import SIDE, Open
from .samples import Sample, every_family
from .tampering import Tampering

pytestmark = pytest.mark.slow

Places = Callable[..., list[str]]

encrypting = every_family(lambda sample: sample.encrypts, kept=False)


def columns_of(sample: Sample, config: MySQLConfig) -> list[SealedColumn]:
    family = find_family(sample.family)
    assert isinstance(family, EncryptsColumns)
    return list(family.encrypted_columns(config))


@pytest.mark.parametrize("side", EACH_WAY)
@encrypting
async def test_content_is_returned_equal_and_no_column_holds_clear_text(
    sample: Sample, open_sample: Open, columns_with: Places, side: str
) -> None:
    sealed, clear = open_sample(keys(), side, cache_bytes=0), open_sample(None, side, table_prefix="clear_")
    await sample.fill(sealed, "t")
    assert columns_with() == []
    await sample.fill(clear, "t")
    assert columns_with()  # the search finds clear text
    assert await sample.read(sealed, "t") == await sample.read(clear, "t")


@encrypting
async def test_every_encrypted_value_is_stored_with_the_active_key(
    sample: Sample, open_sample: Open, make_config: MakeConfig, tampering: Tampering
) -> None:
    await sample.fill(open_sample(keys()), "t")
    stored = []
    for column in columns_of(sample, make_config()):
        values = [row[column.column] for row in tampering.rows(column)]
        assert len(set(values)) == len(values)
        stored += values
    assert len(stored) >= sample.rows
    assert {sealed_by(of_text(value) if isinstance(value, str) else value) for value in stored} == {"2026-11"}


@encrypting
async def test_a_program_without_keys_or_without_the_key_names_it(sample: Sample, open_sample: Open) -> None:
    await sample.fill(open_sample(keys("2026-10")), "t")
    with pytest.raises(EncryptionError, match="is encrypted with key '2026-10'; set encryption="):
        await sample.read(open_sample(None, search=False), "t")
    with pytest.raises(EncryptionError, match="'2026-10' is unknown; known are '2026-11'"):
        await sample.read(open_sample(keys("2026-11", "2026-11")), "t")
    wrong = Encryption(keys={"2026-10": bytes(32)}, active="2026-10")
    with pytest.raises(DecryptionFailed, match="2026-10"):
        await sample.read(open_sample(wrong), "t")


@encrypting
async def test_clear_text_is_refused_until_it_is_encrypted(
    sample: Sample, open_sample: Open, make_config: MakeConfig, columns_with: Places
) -> None:
    clear = open_sample(None, search=False)
    await sample.fill(clear, "t")
    before = await sample.read(clear, "t")
    with pytest.raises(EncryptionError, match=r"stored in clear text.*reencrypt"):
        await sample.read(open_sample(keys()), "t")
    config = make_config(encryption=keys())
    counts = await rotated(sample, config, dry_run=True)
    assert set(counts.rows) == {None}
    assert counts.rows[None] >= sample.rows
    await rotated(sample, config)
    assert columns_with() == []
    assert await sample.read(open_sample(keys("2026-11", "2026-11")), "t") == before


@encrypting
async def test_encryption_is_switched_on_while_programs_run(
    sample: Sample, open_sample: Open, make_config: MakeConfig, columns_with: Places
) -> None:
    switching = Encryption(keys=KEYS, active="2026-11", reads_clear=True)
    old, new = open_sample(None), open_sample(switching, cache_bytes=0)
    await sample.fill(old, "t")
    before = await sample.read(old, "t")
    assert await sample.read(new, "t") == before
    for step in range(6):
        await sample.write(old if step < 3 else new, "begun", step)

    async def write(store: AnyStore, name: str) -> None:
        for step in range(8):
            await sample.write(store, name, step)

    async def follow(name: str) -> None:
        seen = -1
        while seen < 7:
            steps = await sample.steps(new, name)
            assert steps == list(range(len(steps)))
            seen = len(steps) - 1

    await asyncio.gather(write(old, "old"), write(new, "new"), follow("old"), follow("new"))
    await sample.fill(new, "u")
    assert await sample.steps(new, "begun") == list(range(6))
    with pytest.raises(EncryptionError, match="is encrypted with key '2026-11'; set encryption="):
        await sample.steps(old, "begun")
    if sample.inspected:
        async with Inspector(make_config(encryption=switching)) as inspector:
            assert all([MARKER in str(await sample.inspect(inspector, name)) for name in "tu"])
    config = make_config(encryption=switching)
    assert {None, "2026-11"} == set((await rotated(sample, config, dry_run=True)).rows)
    await rotated(sample, config)
    assert set((await rotated(sample, config, dry_run=True)).rows) == {"2026-11"}
    assert columns_with() == []
    strict = open_sample(keys("2026-11", "2026-11"))
    for store in (new, strict):
        assert await sample.read(store, "t") == before
        assert await sample.steps(store, "begun") == list(range(6))
        assert await sample.steps(store, "old") == await sample.steps(store, "new") == list(range(8))


@every_family(lambda sample: sample.family in {"dicts", "agents", "current", "memories"}, kept=False)
async def test_a_row_that_is_written_again_while_encryption_is_switched_on_loses_its_words(
    sample: Sample, open_sample: Open, columns_with: Places
) -> None:
    old = open_sample(None)
    await sample.fill(old, "t")
    assert columns_with()
    new = open_sample(Encryption(keys=KEYS, active="2026-11", reads_clear=True))
    await sample.fill(new, "t")
    assert columns_with() == []


async def rotated(sample: Sample, config: MySQLConfig, **options: Any) -> Any:
    async with Database(config) as database:
        (found,) = await reencrypt(database, family=sample.family, **options)
        return found


@encrypting
async def test_a_rotation_killed_in_the_middle_is_finished_by_another(
    sample: Sample, open_sample: Open, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = open_sample(keys("2026-10"), cache_bytes=0)
    for name in ("t", "u", "w"):
        await sample.fill(old, name)
    before = [await sample.read(old, name) for name in ("t", "u", "w")]
    monkeypatch.setattr(reencryption, "PAGE_ROWS", 1)
    pages = itertools.count()

    def killed(family: str, rows: int) -> None:
        if next(pages) == 1:
            raise KeyboardInterrupt

    config = make_config(encryption=keys("2026-11"))
    with pytest.raises(KeyboardInterrupt):
        await rotated(sample, config, progress=killed)
    assert set((await rotated(sample, config, dry_run=True)).rows) == {"2026-10", "2026-11"}
    both = open_sample(keys("2026-11"), cache_bytes=0)
    assert [await sample.read(both, name) for name in ("t", "u", "w")] == before
    await rotated(sample, config)
    counts = await rotated(sample, config)
    assert (counts.replaced, counts.damaged, set(counts.rows)) == (0, (), {"2026-11"})
    only_new = open_sample(keys("2026-11", "2026-11"), cache_bytes=0)
    assert [await sample.read(only_new, name) for name in ("t", "u", "w")] == before
    # A process that had read before the rotation writes on.
    await sample.fill(both, "v")
    assert await sample.read(only_new, "v") == await sample.read(both, "v")


@encrypting
async def test_a_moved_row_is_reported_by_a_rotation_and_left(
    sample: Sample, open_sample: Open, make_config: MakeConfig, tampering: Tampering
) -> None:
    for name in ("t", "u"):
        await sample.fill(open_sample(keys("2026-10")), name)
    column = columns_of(sample, make_config())[-1]
    target, other = tampering.rows(column)[:2]
    tampering.put(column, target, other[column.column])
    counts = await rotated(sample, make_config(encryption=keys("2026-11")))
    assert len(counts.damaged) == 1
    assert counts.replaced == sum(counts.rows.values()) - 1


@encrypting
async def test_a_function_returns_the_keys(sample: Sample, open_sample: Open) -> None:
    await sample.fill(open_sample(keys("2026-10")), "t")
    asked: list[str] = []

    async def ask(key_id: str) -> bytes:
        asked.append(key_id)
        return KEYS[key_id]

    for side in ("mysql-connector-async", SIDE):
        asked.clear()
        store = open_sample(Encryption(keys=ask, active="2026-11"), side)
        await sample.read(store, "t")
        assert sorted(asked) == ["2026-10", "2026-11"]


@encrypting
def test_an_export_needs_the_keys_and_an_import_encrypts(
    sample: Sample, make_config: MakeConfig, columns_with: Places, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source: Any = make_config(driver="pymysql", encryption=keys("2026-10", "2026-10"), compression="none")
    target: Any = make_config(driver="pymysql", encryption=keys(), compression="none", table_prefix="other_")
    file = tmp_path / "lines"

    async def fill() -> object:
        store = sample.open(source, SIDE)
        await sample.fill(store, "t")
        found = await sample.read(store, "t")
        await store.close()
        return found

    before = asyncio.run(fill())

    def export(config: MySQLConfig) -> int:
        return export_rows(find_family(sample.family), config, str(file))

    async def imported() -> TransferReport:
        report = TransferReport()
        async with Database(target) as database:
            await import_lines(database, file.read_bytes().splitlines(keepends=True), report)
        return report

    for config in (make_config(driver="pymysql", search=False), target.model_copy(update={"table_prefix": "locus_"})):
        if config.encryption is not None:
            config = config.model_copy(update={"encryption": keys("2026-11", "2026-11")})
        with pytest.raises(EncryptionError, match="is encrypted with key '2026-10'"):
            export(config)
        file.unlink(missing_ok=True)
    assert export(source) == 0
    text = file.read_text()
    assert MARKER in text + "".join(b64decode(one).decode("latin-1") for one in re.findall('"b":"([^"]*)"', text))
    for _ in range(2):  # the second import compares with what is stored
        assert asyncio.run(imported()).complete
    assert columns_with() == []

    async def read() -> object:
        store = sample.open(target, SIDE)
        found = await sample.read(store, "t")
        await store.close()
        return found

    assert asyncio.run(read()) == before


def keys_from_a_free_loop(asked: list[str]) -> Encryption:
    """Return an encryption whose function answers only while the running event loop is not blocked.

    Args:
        asked: Receives the id of each key that is fetched.
    """
    loop = asyncio.get_running_loop()

    def ask(key_id: str) -> bytes:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(timeout=5)
        asked.append(key_id)
        return KEYS[key_id]

    return Encryption(keys=ask, active="2026-11")


@encrypting
async def test_an_export_fetches_keys_without_stopping_the_event_loop(
    sample: Sample, open_sample: Open, make_config: MakeConfig
) -> None:
    await sample.fill(open_sample(keys("2026-10")), "t")
    asked: list[str] = []
    config = make_config(encryption=keys_from_a_free_loop(asked))
    async with Database(config) as database:
        source = RowSource(find_family(sample.family).tables(config), config, database)
        pages = [unit.page async for unit in source.units()]
    assert pages
    assert not [damage for page in pages for damage in page.damaged]
    assert "2026-10" in asked


@every_family(lambda sample: sample.encrypts and sample.inspected, kept=False)
async def test_the_inspector_needs_the_keys_and_fetches_them_without_stopping_the_event_loop(
    sample: Sample, open_sample: Open, make_config: MakeConfig
) -> None:
    await sample.fill(open_sample(keys("2026-10")), "t")
    asked: list[str] = []
    async with Inspector(make_config(encryption=keys_from_a_free_loop(asked))) as inspector:
        assert MARKER in str(await sample.inspect(inspector, "t"))
    assert "2026-10" in asked
    async with Inspector(make_config(search=False)) as inspector:
        with pytest.raises(EncryptionError, match="is encrypted with key '2026-10'; set encryption="):
            await sample.inspect(inspector, "t")


@encrypting
async def test_vacuum_needs_no_keys(sample: Sample, open_sample: Open, make_config: MakeConfig) -> None:
    await sample.fill(open_sample(keys()), "t")
    config = make_config(search=False)
    family = find_family(sample.family)
    maintenance = family.maintenance(config)
    async with Database(config) as database:
        for operation in (one(config.tenant) for one in (maintenance.stored, maintenance.waste, maintenance.vacuum)):
            await database.asynchronous.run(operation, family.schema(config))
    assert await sample.read(open_sample(keys()), "t")
