"""Lists of which a save keeps some items and not the beginning: compacted, windowed, or with an item changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql import Encryption
from locus_mysql.errors import CorruptCheckpoint
from locus_mysql.families.checkpoints.coding.delta import PAYLOAD
from locus_mysql.runtime.sealing import Sealing

from ...conftest import EACH_WAY
from ...proxy import WireProxy
from .conftest import Make, RunSQL

pytestmark = pytest.mark.kept_tables("dicts")

TURNS = 24
WINDOW = 16


def message(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"apple {number} " + f"word{number} " * 60}


def window(turn: int) -> dict[str, Any]:
    """Return a state with the newest messages of a conversation."""
    messages = [message(number) for number in range(turn, turn + WINDOW)]
    return {"messages": [{"role": "system", "content": f"memory {turn // 5}"}, *messages], "turn": turn}


def compacted(turn: int) -> dict[str, Any]:
    """Return a state of a growing conversation, some of whose messages are cleared every six turns."""
    cleared = turn // 6 * 6
    messages = [
        {**message(number), "content": "cleared"} if number < cleared and number % 3 else message(number)
        for number in range(turn + WINDOW)
    ]
    return {"messages": messages, "turn": turn}


HISTORIES = pytest.mark.parametrize("state", [window, compacted])
State = Callable[[int], dict[str, Any]]


async def fill(store: Any, state: State, thread_id: str = "t", turns: int = TURNS) -> None:
    for turn in range(turns):
        await store.save(thread_id, state(turn), str(turn))


def copying_rows(sql: RunSQL) -> int:
    """Return the number of rows with copies."""
    ((count,),) = sql(
        "SELECT COUNT(*) FROM locus_store_checkpoints WHERE LEFT(payload, 1) IN (UNHEX('03'), UNHEX('04'))"
    )
    return int(count)


@HISTORIES
@pytest.mark.parametrize("side", EACH_WAY)
async def test_every_state_is_loaded_by_the_saving_process_and_by_another_one(
    make_store: Make, sql: RunSQL, state: State
) -> None:
    store, reader = make_store(), make_store()
    for turn in range(TURNS):
        await store.save("t", state(turn), str(turn))
        assert await store.load("t") == state(turn)
        if turn % 3:  # the reader knows an older state
            assert await reader.load("t") == state(turn)
    assert copying_rows(sql) >= 2
    for turn in range(TURNS):
        assert await make_store().load("t", str(turn)) == await reader.load("t", str(turn)) == state(turn)


@HISTORIES
@pytest.mark.parametrize("side", EACH_WAY)
class TestOneOfEach:
    async def test_states_outlive_those_that_they_copy_from(
        self, make_store: Make, sql: RunSQL, age: Callable[..., None], state: State
    ) -> None:
        store = make_store()
        await fill(store, state)
        before = copying_rows(sql)
        for turn in range(0, TURNS, 2):
            assert await store.delete("t", str(turn))
        assert before >= copying_rows(sql) > 0
        assert [await make_store().load("t", str(turn)) for turn in range(1, TURNS, 2)] == [
            state(turn) for turn in range(1, TURNS, 2)
        ]
        age(3, "t", str(TURNS - 5))
        await store.vacuum(1)
        left = await make_store().list_checkpoints("t")
        assert left == ["23", "21"]
        assert [await make_store().load("t", one) for one in left] == [state(23), state(21)]
        await store.save("t", state(TURNS), "next")
        assert await make_store().load("t") == state(TURNS)

    async def test_encrypted_rows_copy_from_encrypted_rows(self, make_store: Make, state: State) -> None:
        keys = Encryption(keys={"k": bytes(range(32))}, active="k")
        store = make_store(encryption=keys)
        await fill(store, state)
        for turn in range(TURNS):
            assert await make_store(encryption=keys).load("t", str(turn)) == state(turn)
        await store.delete("t")  # the check of the tables reads no encrypted rows


async def test_search_finds_words_of_the_states_that_have_them(make_store: Make) -> None:
    store = make_store()
    await fill(store, window)
    assert {hit["checkpoint_id"] for hit in await store.search("word3", limit=99)} == {"0", "1", "2", "3"}


async def test_a_row_with_copies_takes_a_fraction_of_a_whole_state(make_store: Make, sql: RunSQL) -> None:
    await fill(make_store(compression="none"), window)
    sizes = dict(sql("SELECT seq, payload_bytes FROM locus_store_checkpoints"))
    copying = [size for seq, size in sizes.items() if seq % 6 != 1]
    assert max(copying) < sizes[1] / 4


async def test_a_save_of_copies_is_one_round_trip(make_store: Make, sql: RunSQL, proxy: WireProxy) -> None:
    store = make_store(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED")
    await fill(store, window, turns=3)
    with proxy.counting() as count:
        await store.save("t", window(3), "3")
    assert count.round_trips == 1
    assert copying_rows(sql) == 3


async def test_a_damaged_row_that_is_copied_from_is_named(make_store: Make, sql: RunSQL) -> None:
    await fill(make_store(), window, turns=4)
    ((base,),) = sql("SELECT base_seq FROM locus_store_checkpoints WHERE checkpoint_id = '3'")
    ((payload,),) = sql("SELECT payload FROM locus_store_checkpoints WHERE seq = %s", base)
    sql(
        "UPDATE locus_store_checkpoints SET payload = %s WHERE seq = %s",
        payload[:-1] + bytes([payload[-1] ^ 1]),
        base,
    )
    try:
        with pytest.raises(CorruptCheckpoint, match=f"row {base} of thread 't'"):
            await make_store().load("t")
    finally:
        sql("UPDATE locus_store_checkpoints SET payload = %s WHERE seq = %s", payload, base)


async def test_a_row_of_a_later_format_is_refused_by_name(make_store: Make, sql: RunSQL) -> None:
    await fill(make_store(), window, turns=2)
    ((base,),) = sql("SELECT token FROM locus_store_checkpoints WHERE seq = 1")
    ((payload, token),) = sql("SELECT payload, token FROM locus_store_checkpoints WHERE seq = 2")
    later = Sealing(None, "dicts").of("default", "t").seal(b"\x05", (payload[5:],), PAYLOAD, token, base)
    sql("UPDATE locus_store_checkpoints SET payload = %s WHERE seq = 2", later)
    try:
        with pytest.raises(CorruptCheckpoint, match="a later version of locus-mysql wrote it, upgrade"):
            await make_store().load("t")
    finally:
        sql("UPDATE locus_store_checkpoints SET payload = %s WHERE seq = 2", payload)
