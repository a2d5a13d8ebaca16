"""Items of large transcripts are decoded beside the event loop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from locus_mysql.families.transcripts import coding
from locus_mysql.families.transcripts.records import NewItem, TranscriptKey
from locus_mysql.families.transcripts.store import SyncTranscriptStore, TranscriptStore

from ....either_side import AnyStore
from ...conftest import EVERY_SIDE, MakeConfig

pytestmark = pytest.mark.kept_tables("transcripts")

KEY = TranscriptKey("kind", "", "large")


@pytest.mark.parametrize("side", EVERY_SIDE)
@pytest.mark.parametrize("damaged", [False, True])
async def test_many_bytes_are_decoded_in_a_thread_of_their_own(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, side: str, damaged: bool
) -> None:
    threads = set[str]()
    item_of = coding.item_of

    def watched(*arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        if damaged:
            raise LookupError("an item cannot be read")
        return item_of(*arguments)

    monkeypatch.setattr(coding, "item_of", watched)
    driver, _, way = side.rpartition("-")
    config = make_config(driver=driver, compression="none")
    store = AnyStore((TranscriptStore if way == "async" else SyncTranscriptStore)(config))
    try:
        await store.append(KEY, [NewItem("x" * 1_000) for _ in range(100)])
        if damaged:
            with pytest.raises(LookupError):
                await store.read(KEY)
        else:
            assert len((await store.read(KEY)).items) == 100
            assert len((await store.open(KEY))[1]) == 100
    finally:
        await store.close()
    beside = {name for name in threads if name.startswith("locus-mysql decoding")}
    assert bool(beside) == (way == "async")
    assert len(threads - beside) == (way != "async")
