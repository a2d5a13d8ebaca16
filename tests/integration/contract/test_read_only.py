"""A store that only reads reads everything and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import ReadOnlyServer

from ..conftest import ONE_OF_EACH
from .conftest import Open
from .samples import Sample, every_family


@pytest.mark.parametrize("side", ONE_OF_EACH)
@every_family()
async def test_a_read_only_store_reads_and_refuses_to_write(
    sample: Sample, open_sample: Open, table_contents: Callable[[], Any], side: str
) -> None:
    writer = open_sample(side=side)
    await sample.fill(writer, "t")
    before = table_contents()
    reader = open_sample(side=side, read_only=True)
    assert await sample.read(reader, "t") == await sample.read(writer, "t") != {}
    assert await sample.names(reader) == ["t"]
    for call in (
        lambda: sample.write(reader, "t", 9),
        lambda: sample.write(reader, "u", 0),
        lambda: sample.delete(reader, "t"),
    ):
        with pytest.raises(ReadOnlyServer, match="read_only=True"):
            await call()
    assert table_contents() == before
