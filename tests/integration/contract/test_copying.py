"""A copy is a whole owner under another name, is encrypted for it, and outlives the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Database, Encryption
from locus_mysql.errors import EncryptionError, ThreadExists
from locus_mysql.families.registry import find_family

from ..conftest import MakeConfig
from ..encryption.conftest import KEYS, keys
from .conftest import Open
from .samples import Facts, Sample, every_family

pytestmark = pytest.mark.slow


def contents(facts: Facts) -> set[str]:
    """Return the values without their places, some of which have the owner's name."""
    return {repr(value) for value in facts.values()}


@pytest.mark.parametrize("before", [None, "2026-10"], ids=["clear", "another key"])
@every_family(lambda sample: sample.family in {"dicts", "agents", "current", "graphs", "transcripts"}, kept=False)
async def test_a_copy_is_encrypted_for_its_owner_and_outlives_the_first(
    sample: Sample, open_sample: Open, make_config: MakeConfig, columns_with: Callable[..., list[str]], before: str
) -> None:
    await sample.fill(open_sample(before and keys(before)), "t")
    both = Encryption(keys=KEYS, active="2026-11", reads_clear=True)
    config, family = make_config(encryption=both, compression="none"), find_family(sample.family)
    changes: Any = family.changes(config)
    async with Database(config) as database:

        async def copy(source: str, target: str) -> bool:
            copying = changes.copy(sample.thread(source), sample.thread(target))
            return bool(await database.asynchronous.run(copying, family.schema(config)))

        assert await copy("t", "u")
        with pytest.raises(ThreadExists):
            await copy("t", "u")
        assert not await copy("absent", "v")
        assert not await copy("absent", "u")
    store = open_sample(both)
    await sample.fill(store, "w")
    config = make_config(search=False)
    async with Database(config) as database:
        changes = family.changes(config)
        for source in ("u", "w"):
            with pytest.raises(EncryptionError, match="is encrypted with key '2026-11'; set encryption="):
                await database.asynchronous.run(
                    changes.copy(sample.thread(source), sample.thread("x")), family.schema(config)
                )
    assert not await sample.read(store, "x")
    copied = await sample.read(store, "u")
    assert contents(copied) == contents(await sample.read(store, "t")) != set()
    await sample.delete(store, "t")
    assert columns_with() == []
    assert await sample.read(open_sample(keys()), "u") == copied
