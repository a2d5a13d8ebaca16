"""Writes that remove items, require an item, or delete transcripts, on every driver."""

from __future__ import annotations

from typing import Any

import pytest

from locus_mysql.errors import InvalidInput, NotFound, VersionConflict
from locus_mysql.families.transcripts.records import Header, NewItem, TranscriptKey, Write

from .conftest import Make

pytestmark = pytest.mark.kept_tables("transcripts")

KEY = TranscriptKey("test", "project", "session")


async def test_a_write_removes_items_and_needs_one(store: Any, make_store: Make) -> None:
    await store.append(KEY, [NewItem(number, str(number)) for number in range(5)])
    assert [item.content for item in (await store.read(KEY, until="3", last=2)).items] == [2, 3]
    assert (await store.read(KEY, until="9")).items == []
    for other in (store, make_store()):
        with pytest.raises(NotFound):
            await other.write([Write(KEY, [NewItem(9)], needs="9")])
    await store.write([Write(KEY, [NewItem(5, "5")], Header("state"), remove=[1, 3], needs="4")])
    transcript, items = await make_store().open(KEY)
    assert [item.content for item in items] == [1, 3, 4, 5]
    assert (transcript.items, transcript.last_seq, transcript.header.state) == (4, 6, "state")
    with pytest.raises(NotFound):
        await store.write([Write(KEY, [NewItem(9)], needs="0")])
    assert (await store.append(KEY, [NewItem(0, "0")])).added == 1


async def test_a_write_deletes_a_transcript_with_others(store: Any, make_store: Make) -> None:
    other = KEY._replace(name="other")
    first, second = await store.write([Write(KEY, [NewItem(1, "1")], Header(1, "tag")), Write(other, [NewItem(2)])])
    with pytest.raises(VersionConflict):
        await make_store().write(
            [Write(KEY, delete=True, expected_tag="wrong"), Write(other, delete=True, expected=second.revision)]
        )
    await make_store().write([Write(KEY, delete=True, expected_tag="tag"), Write(other, header=Header(2))])
    assert [one and one.header.state for one in await store.get_all([KEY, other])] == [None, 2]
    assert await store.get_all([]) == []
    assert (await store.append(KEY, [NewItem(3, "1")], expected=0)).revision > first.revision
    with pytest.raises(InvalidInput):
        await store.write([Write(KEY, [NewItem(4)], delete=True)])
