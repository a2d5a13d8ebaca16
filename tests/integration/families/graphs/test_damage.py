"""Copies of graphs' threads, whole and damaged. The rest: `tests/integration/contract/test_damage.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from locus_mysql.errors import CorruptCheckpoint

from .conftest import OpenSaver
from .turns import put_turns

pytestmark = [pytest.mark.slow]


async def test_a_damaged_row_stays_one_when_its_thread_is_copied(
    open_saver: OpenSaver, run_sql: Callable[..., Any], database: str
) -> None:
    saver = open_saver(cache_bytes=0)
    await put_turns(saver, 3)
    for payload in (b"", b"\x01", b"\x01abcdefgh"):
        run_sql(f"UPDATE {database}.locus_graph_checkpoints SET payload = %s WHERE thread_id = 'thread'", payload)
        await saver.delete_thread("copy")
        assert await saver.copy_thread("thread", "copy")
        with pytest.raises(CorruptCheckpoint, match="'c3' of thread 'copy'"):
            await saver.get(thread_id="copy")
