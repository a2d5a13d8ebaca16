"""Agents that are run without ``await`` use the asynchronous stores: there is no blocking twin."""

from __future__ import annotations

import asyncio
from contextlib import closing

from examples.pydantic_ai_harness.agent import CONVERSATION, NOTE, make_agent
from locus_mysql import Database
from locus_mysql.integrations.pydantic_ai_harness import PydanticMemoryStore, PydanticStepStore

from ...conftest import MakeConfig


def test_run_sync_stores_steps_and_memory(make_config: MakeConfig, driver: str) -> None:
    config = make_config(driver=driver)
    agent = make_agent(Database(config))
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)  # run_sync uses the thread's loop; one that it makes itself is never closed
        answers = [agent.run_sync(text, conversation_id=CONVERSATION).output for text in ("Restart it.", "Which?")]
    assert answers == ["Done, after write_memory and restart.", "Done, after search_memory."]

    async def stored() -> tuple[int, str]:
        async with Database(config) as database:
            runs = await PydanticStepStore(database).list_runs(conversation_id=CONVERSATION)
            memory = PydanticMemoryStore(database)
            (path,) = await memory.list_paths("", limit=2)
            file = await memory.read(path, max_chars=1000)
            assert file is not None
            return len(runs), file.content

    number, content = asyncio.run(stored())
    assert number == 2
    assert NOTE in content
