"""What was deleted is gone from every read, cache, list and table, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..conftest import ONE_OF_EACH
from ..encryption.conftest import MARKER
from .conftest import Open
from .samples import Sample, every_family


@pytest.mark.parametrize("side", ONE_OF_EACH)
@every_family(kept=False)
async def test_what_was_deleted_is_nowhere(
    sample: Sample, open_sample: Open, columns_with: Callable[..., list[str]], side: str
) -> None:
    one, other = open_sample(side=side), open_sample(side=side)
    for name in ("t", "u"):
        await sample.fill(one, name)
    written = {name: await sample.read(other, name) for name in ("t", "u")}
    assert all(written.values())
    await sample.delete(one, "t")
    for store in (one, other):
        assert await sample.read(store, "t") == {}
        assert await sample.names(store) == ["u"]
        assert await sample.read(store, "u") == written["u"]
    assert columns_with(f"{MARKER} t ") == []
    assert columns_with(f"{MARKER} u ") != []
    await sample.delete(other, "t")
    await sample.delete(other, "never existed")
    await sample.fill(other, "t")
    assert (await sample.read(one, "t")).keys() == written[
        "t"
    ].keys() or sample.family == "memu"  # whose ids are random
    assert await sample.read(one, "t") == await sample.read(open_sample(side=side), "t")
    assert sorted(await sample.names(one)) == ["t", "u"]
