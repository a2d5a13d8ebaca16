"""Every fault of `test_every_fault` during calls on transcripts: nothing is lost, and nothing is stored twice."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ..either_side import AnyStore
from ..integration.conftest import EVERY_SIDE, ONE_OF_EACH, MakeConfig
from ..integration.proxy import WireProxy
from ..thoroughness import FULL
from .test_every_fault import FAULTS, READ_TIMEOUT_S, RETRY_DEADLINE_S, UNKNOWN, Trouble, Witness, connected

pytestmark = pytest.mark.slow

KEY = TranscriptKey("faults", "collection", "name")


def total(state: Any, items: Any) -> Any:
    return (state or 0) + sum(item.content for item in items)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("side", EVERY_SIDE if FULL else ONE_OF_EACH)
async def test_no_fault_loses_an_item_or_stores_it_twice(
    make_config: MakeConfig,
    through_proxy: MakeConfig,
    proxy: WireProxy,
    server_dsn: str,
    database: str,
    fault: str,
    side: str,
) -> None:
    witness = Witness(fault, side)
    driver, _, way = side.rpartition("-")
    timeout_s = 4 * READ_TIMEOUT_S if "drips" in fault else READ_TIMEOUT_S  # 1 KB arrives in half a second
    config = through_proxy(
        driver=driver,
        read_timeout_s=timeout_s,
        write_timeout_s=timeout_s,
        connect_timeout_s=5,
        retry_deadline_s=RETRY_DEADLINE_S,
    )
    with SyncTranscriptStore(make_config(driver="pymysql")) as observer, connected(server_dsn) as administrator:
        observer.count()
        trouble = Trouble(proxy, administrator, database)
        store = AnyStore((TranscriptStore if way == "async" else SyncTranscriptStore)(config))
        try:
            await store.count()
            await _one_round(store, observer, witness, trouble)
        finally:
            await store.close()
    assert (witness.row.lost, witness.row.wrong) == (0, 0)
    assert witness.row.acknowledged == witness.row.attempts
    assert witness.row.longest_s < RETRY_DEADLINE_S + timeout_s


async def _one_round(store: Any, observer: SyncTranscriptStore, witness: Witness, trouble: Trouble) -> None:
    """Append, replace, read, pop, clear and delete with a fault in each call, and check the results."""
    number = 0

    async def disturbed(method: str, *arguments: Any, **options: Any) -> Any:
        nonlocal number
        FAULTS[witness.row.fault](trouble, number)
        number += 1
        outcome = await witness.watch(getattr(store, method)(*arguments, **options))
        trouble.over()
        return outcome

    def of(attribute: str, result: Any) -> Any:
        return UNKNOWN if result is UNKNOWN else getattr(result, attribute)

    def held() -> list[Any]:
        read = observer.read(KEY)
        return [] if read is None else [item.content for item in read.items]

    # also without an id: a repeated packet would add such items again
    witness.expect(of("added", await disturbed("append", KEY, [NewItem(1, "one"), NewItem(2)], fold=total)), 2)
    witness.expect(held(), [1, 2])
    more = [NewItem(1, "one"), NewItem(3, "three"), NewItem(4)]
    witness.expect(of("added", await disturbed("append", KEY, more, fold=total)), 2)
    witness.expect(held(), [1, 2, 3, 4])
    stored = observer.get(KEY)
    assert stored is not None
    witness.expect(stored.header.state, 10)
    await disturbed("replace", KEY, "one", 5)
    witness.expect(held(), [5, 2, 3, 4])
    items = of("items", await disturbed("read", KEY, last=2))
    witness.expect(items if items is UNKNOWN else [item.content for item in items], [3, 4])
    witness.expect(of("content", await disturbed("pop", KEY)), 4)
    witness.expect(held(), [5, 2, 3])
    witness.expect(await disturbed("clear", KEY), 3)
    witness.expect(held(), [])
    witness.expect(await disturbed("delete", KEY), 1)
    witness.expect(observer.get(KEY), None)
