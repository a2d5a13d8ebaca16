"""After any saves, deletions, branches and interrupted copies, a completed copy equals the source, in its order."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from locus.core.messages import Message
from locus.core.state import AgentState
from locus_mysql.integrations.locus.transfer.tables import TablesThread

from locus_mysql import copy_threads
from locus_mysql.config import MySQLConfig
from locus_mysql.integrations.locus.checkpointer import MySQLCheckpointer
from locus_mysql.integrations.locus.transfer import threads
from locus_mysql.runtime.database import Database

from ..conftest import MakeConfig
from .conftest import contents

IDS = [f"c{number}" for number in range(5)]
STEPS = st.one_of(
    st.tuples(st.just("save"), st.sampled_from(IDS), st.integers(0, 40)),
    st.tuples(st.just("save"), st.sampled_from(IDS), st.integers(0, 2)),
    st.tuples(st.just("go back to"), st.sampled_from(IDS), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.sampled_from(IDS), st.just(0)),
    st.tuples(st.just("copy"), st.just(""), st.just(0)),
    st.tuples(st.just("break off"), st.just(""), st.integers(0, 3)),
    st.tuples(st.just("lose in the target"), st.sampled_from(IDS), st.just(0)),
)


class BrokenOff(BaseException):
    """Simulates a kill."""


async def act(
    step: tuple[str, str, int],
    state: AgentState,
    source: MySQLCheckpointer,
    target: MySQLCheckpointer,
    patch: pytest.MonkeyPatch,
) -> AgentState:
    what, checkpoint_id, number = step
    if what == "save":
        state = state.with_message(Message.user(f"{number} words " * number))
        await source.save(state, "t", checkpoint_id, {"number": number})
    elif what == "go back to":
        state = await source.load("t", checkpoint_id) or state
    elif what == "delete":
        await source.delete("t", checkpoint_id)
    elif what == "lose in the target":
        await target.delete("t", checkpoint_id)
    elif what == "copy":
        await copy_threads(source, target)
    else:
        put, left = TablesThread.save, number

        async def putting(self: TablesThread, given: Any, replaced: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise BrokenOff
            return await put(self, given, replaced)

        with patch.context() as patched:
            patched.setattr(TablesThread, "save", putting)
            with contextlib.suppress(BrokenOff):
                await copy_threads(source, target)
    return state


@pytest.mark.kept_tables("agents")
@settings(settings.get_profile("server"))
@given(steps=st.lists(STEPS, max_size=14))
def test_a_copy_that_ends_has_all_that_the_source_has(
    config: MySQLConfig, make_config: MakeConfig, any_copies: pytest.MonkeyPatch, steps: list[tuple[str, str, int]]
) -> None:
    async def run() -> None:
        async with Database(config) as database:
            source, target = MySQLCheckpointer(database), MySQLCheckpointer(database, tenant="target")
            await source.delete("t")
            await target.delete("t")
            state = AgentState(run_id="run")
            for step in steps:
                state = await act(step, state, source, target, any_copies)
            left = await contents(source, "t")
            report = await copy_threads(source, target, verify=True)
            there = await contents(target, "t")
            if report.left_alone:  # the newest checkpoint of the target was deleted in the source
                assert {one for one, _ in there} - {one for one, _ in left}
                return
            assert report.complete, report
            assert [one for one in there if one[0] in dict(left)] == left
            again = await copy_threads(source, target)
            assert (again.copied, again.present) == (0, len(left))
            assert await contents(target, "t") == there

    asyncio.run(run())


@pytest.fixture
def any_copies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Copies that write two checkpoints at a time."""
    monkeypatch.setattr(threads, "MAX_WRITTEN", 2)
    return monkeypatch
