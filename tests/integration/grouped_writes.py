"""Every write that may be sent in a group is sent in one, beside a write of the test: `group_writes`.

As a plugin of pytest, it does so in all tests of a run, which shows that a write's outcome does not depend on others:

    pytest -p tests.integration.grouped_writes tests/integration/families
"""

from __future__ import annotations

import itertools
from typing import Literal

import pytest

from locus_mysql.dialect import Statement
from locus_mysql.engine.connection_slots import Slot
from locus_mysql.engine.group_commit import CommitGroup, QueuedWrite
from locus_mysql.engine.operation import Batch
from locus_mysql.engine.pool import Pool

#: What happens to the other write: it is carried out, or a guard undoes it, before or after the write under test.
Beside = Literal["success before", "success after", "failure before", "failure after"]

BESIDE: tuple[Beside, ...] = ("success before", "success after", "failure before", "failure after")

_STATEMENTS = {"success": Statement("DO 0"), "failure": Statement("SELECT CAST('' AS JSON)")}
_LOCKS = {"before": ("",), "after": ("\U0010ffff",)}


def group_writes(monkeypatch: pytest.MonkeyPatch, *beside: Beside) -> None:
    """Send each write of this process that may be in a group beside another one; of several kinds, in turns."""
    share, turns = Pool.share_packet, itertools.cycle(beside)

    def share_always(pool: Pool, slot: Slot) -> bool:
        if share(pool, slot):
            return True
        if slot.write is None or slot.lent is None:
            return False
        if not getattr(slot.lent.connection, "supports_group_commit", False):
            return False
        what, where = next(turns).split()
        slot.group = CommitGroup(slot.write)
        other = QueuedWrite(Batch((_STATEMENTS[what],), lock=_LOCKS[where]))
        return slot.group.add(other, lambda: None)

    monkeypatch.setattr(Pool, "share_packet", share_always)
    monkeypatch.setattr(Pool, "borrow_at_once", lambda pool, slot: None)


def pytest_configure() -> None:
    """Group the writes of the whole run, if this module is a plugin."""
    group_writes(pytest.MonkeyPatch(), *BESIDE)
