"""The comparison with an earlier commit finds processor time that a version of the package takes more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench import compare

#: Milliseconds of processor time, more than a whole save takes.
BUSY = "sum(range(300_000))"


@pytest.mark.slow
def test_a_slower_save_is_found_and_a_faster_one_is_not(server_dsn: str, tmp_path: Path) -> None:
    package = tmp_path / "locus_mysql"
    shutil.copytree(compare.ROOT / "locus_mysql", package, ignore=shutil.ignore_patterns("__pycache__"))
    saving = package / "families/checkpoints/saving.py"
    text = saving.read_text()
    first = "        key = ThreadKey(tenant, check_thread_id(thread_id))\n        before = "
    assert text.count(first) == 1
    saving.write_text(text.replace(first, f"        {BUSY}\n{first}"))
    ratios = compare.compare(server_dsn, compare.ROOT, tmp_path, starts=1, rounds=5)
    slower = compare.slower(ratios)
    assert {"save, 10 messages", "save, 100 messages"} <= set(slower)
    assert compare.table(ratios).count("\n") == 1 + len(ratios)
    again = compare.compare(server_dsn, tmp_path, compare.ROOT, starts=1, rounds=5)
    assert not {"save, 10 messages", "save, 100 messages"} & set(compare.slower(again))
