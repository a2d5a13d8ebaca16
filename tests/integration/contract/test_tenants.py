"""Tenants and owners are apart, whatever their names, and names that cannot be stored are refused before a write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import TenantUnknown, UsageError

from ..conftest import ONE_OF_EACH
from .conftest import Open
from .samples import Sample, every_family

one_of_each = pytest.mark.parametrize("side", ONE_OF_EACH)

#: Tenants that a collation, a trim, a pattern or SQL would take for one another.
TENANTS = (
    "acme",
    "Acme",
    "acmé",
    "acme ",
    "acm_",
    "%",
    "acme/t",
    "'; DROP TABLE locus_store_threads; -- ",
    "` OR 1=1 -- ",
)

#: Names that a collation, a trim, a pattern or SQL would take for one another, or for something else.
NAMES = [
    "a",
    "A",
    "a ",
    " a",
    "a\t",
    "%",
    "_",
    "*",
    "\\",
    "a/b",
    "thread/1?x=#%&*_[]{}|\\",
    "'; DROP TABLE locus_store_threads; -- ",
    "%' OR '1'='1",
    "/*!50000 DROP TABLE locus_store_threads */",
    '"\\"`',
    "%s %(x)s {0} :a ?",
    "\n\r\x01\x1a\x1e\x7f",
    "\\0 \\' \\",
    "cafe",
    "CAFE",
    "café",
    "cafe\u0301",
    "東京 한국어 العربية",
    "👩\u200d👩\u200d👧\U0010ffff",
    "\ufeffbom \u202e\u2028\u0085",
    "\ufffd\ufffe\uffff",
    "ß",
    "ss",
    "İ",
    "i",
    "a\u200b",
    "x" * 100 + "0",
    "x" * 100 + "1",
    "😀" * 100,
]

#: Names that no family can store.
BAD_NAMES: list[Any] = [5, b"bytes", ["list"], "\ud800", "x\udfff", "x" * 2_000]


@one_of_each
@every_family()
async def test_tenants_see_and_change_nothing_of_each_other(sample: Sample, open_sample: Open, side: str) -> None:
    stores = {tenant: open_sample(side=side, tenant=tenant) for tenant in TENANTS}
    for number, store in enumerate(stores.values()):
        for name in ("t", f"of {number}"):
            await sample.fill(store, name)
    for number, store in enumerate(stores.values()):
        assert sorted(await sample.names(store)) == [f"of {number}", "t"]
        assert await sample.read(store, f"of {(number + 1) % len(TENANTS)}") == {}
    written = {tenant: await sample.read(store, "t") for tenant, store in stores.items()}
    first, *others = TENANTS
    await sample.delete(stores[first], "t")
    await sample.write(stores[first], "new", 0)
    for number, tenant in enumerate(others, 1):
        assert sorted(await sample.names(stores[tenant])) == [f"of {number}", "t"]
        assert await sample.read(stores[tenant], "t") == written[tenant] != {}
        assert await sample.steps(stores[tenant], "new") == []
    assert sorted(await sample.names(stores[first])) == ["new", "of 0"]


@every_family()
async def test_a_call_without_a_tenant_is_refused_if_none_is_the_default(sample: Sample, open_sample: Open) -> None:
    with pytest.raises(TenantUnknown):
        await sample.write(open_sample(tenant=None), "t", 0)
    with pytest.raises(TenantUnknown):
        await sample.names(open_sample(tenant=None))
    assert await sample.names(open_sample()) == []


@one_of_each
@every_family()
async def test_names_that_are_hard_to_tell_apart_are_distinct(sample: Sample, open_sample: Open, side: str) -> None:
    store = open_sample(side=side)
    for number, name in enumerate(NAMES):
        for step in range(number % 2 + 1):
            await sample.write(store, name, step)
    for number, name in enumerate(NAMES):
        assert await sample.steps(store, name) == [*range(number % 2 + 1)], name
    assert sorted(await sample.names(store)) == sorted(NAMES)
    for number, name in enumerate(NAMES):
        await sample.delete(store, name)
        assert await sample.steps(store, name) == []
        if number % 8 == 0:
            assert sorted(await sample.names(store)) == sorted(NAMES[number + 1 :])
    assert await sample.names(store) == []


@every_family(lambda sample: sample.family != "memu")  # its users' model decides
async def test_a_name_that_cannot_be_stored_is_refused_and_changes_nothing(
    sample: Sample, open_sample: Open, table_contents: Callable[[], Any]
) -> None:
    store = open_sample()
    await sample.write(store, "t", 0)
    before = table_contents()
    for bad in BAD_NAMES:
        with pytest.raises(UsageError):
            await sample.write(store, bad, 1)
    assert table_contents() == before
