"""Tenants of the checkpointer: fixed, by thread, and by scope."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from locus_mysql import MySQLCheckpointer
from locus_mysql.errors import InvalidInput, TenantUnknown

from .agents import a_state, contents
from .conftest import RunSQL

pytestmark = pytest.mark.kept_tables("agents")


class TestTenants:
    async def test_tenant_of_places_each_thread(self, make_checkpointer: Callable[..., MySQLCheckpointer]) -> None:
        async with make_checkpointer(tenant_of=lambda thread_id: thread_id.split("/")[0]) as one:
            await one.save(a_state("x"), "acme/1")
            await one.save(a_state("y"), "umbrella/1")
            assert one.tenant_for("acme/1") == "acme"
            assert one.tenant_for() == "default"
            assert await one.list_threads() == []
            with one.tenant_scope("acme"):
                assert await one.list_threads() == ["acme/1"]
                assert await one.load("umbrella/1") is None
            with pytest.raises(InvalidInput, match="another tenant"):
                await one.copy_thread("acme/1", "umbrella/2")
            assert await one.copy_thread("acme/1", "acme/2")

    @pytest.mark.parametrize("tenant_of", [lambda _: "", lambda _: None, lambda thread_id: {}[thread_id]])
    async def test_an_id_that_names_no_tenant_fails_every_call(
        self, make_checkpointer: Callable[..., MySQLCheckpointer], tenant_of: Any, run_sql: RunSQL, database: str
    ) -> None:
        async with make_checkpointer(tenant_of=tenant_of) as one:
            for call in (
                one.save(a_state(), "t"),
                one.load("t"),
                one.exists("t"),
                one.delete("t"),
                one.list_checkpoints("t"),
                one.get_metadata("t"),
                one.history("t"),
                one.copy_thread("t", "u"),
                one.get_disk_usage("t"),
                one.purge_messages(timedelta(days=1), thread_id="t"),
            ):
                with pytest.raises(TenantUnknown, match="'t'"):
                    await call
            assert await one.health_check()
        assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_checkpoints") == ((0,),)

    async def test_a_scope_wins_and_holds_in_its_own_tasks_only(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        async with make_checkpointer(tenant_of=lambda _: "never") as one:
            started = [asyncio.Event() for _ in range(5)]

            async def work(number: int) -> list[str]:
                with one.tenant_scope(f"tenant-{number}"):
                    started[number].set()
                    await asyncio.gather(*(event.wait() for event in started))
                    await one.save(a_state(f"of {number}"), "same")
                    loaded = await asyncio.create_task(one.load("same"))
                    assert contents(loaded) == [f"of {number}"]
                    return await one.list_threads()

            assert await asyncio.gather(*(work(number) for number in range(5))) == [["same"]] * 5
            assert await one.load("same") is None
            with one.tenant_scope("tenant-3"):
                assert await one.forget_tenant() == 1
                assert await one.load("same") is None
            with one.tenant_scope("tenant-4"):
                assert contents(await one.load("same")) == ["of 4"]

    async def test_scopes_nest_and_end_also_after_an_error(
        self, make_checkpointer: Callable[..., MySQLCheckpointer]
    ) -> None:
        one = make_checkpointer(tenant="outer")
        with one.tenant_scope("a"):
            with one.tenant_scope("b"):
                assert one.tenant_for("t") == "b"
            assert one.tenant_for("t") == "a"
            with contextlib.suppress(RuntimeError), one.tenant_scope("b"):
                raise RuntimeError
            assert one.tenant_for("t") == "a"
        assert one.tenant_for("t") == "outer"
        with pytest.raises(InvalidInput), one.tenant_scope(""):
            pass
