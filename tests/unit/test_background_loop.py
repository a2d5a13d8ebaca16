"""Async functions that blocking calls await run in one event loop, also in threads, a forked child, and at exit."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from locus_mysql.background_loop import result_of
from locus_mysql.config import MySQLConfig
from locus_mysql.encryption import Encryption
from locus_mysql.engine.passwords import ask_password
from locus_mysql.families.memories.embedding import EmbedTexts, embed_blocking


class SharedClient:
    """A client of a network service that belongs to the event loop of its first call, as those of httpx and aiohttp."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    async def call(self, answer: Any) -> Any:
        self.loop = self.loop or asyncio.get_running_loop()
        await asyncio.sleep(0)
        if self.loop is not asyncio.get_running_loop():
            raise RuntimeError("Event loop is closed")
        return answer


def test_a_client_that_is_shared_by_functions_serves_each_call() -> None:
    client = SharedClient()

    async def embed(texts: list[str]) -> Any:
        return await client.call([[1.0]] * len(texts))

    async def password() -> Any:
        return await client.call("secret")

    async def key(key_id: str) -> Any:
        return await client.call(key_id.encode() * 32)

    for _ in range(2):
        assert embed_blocking(embed, EmbedTexts(["tea"])) == [[1.0]]
        assert ask_password(MySQLConfig(dsn="mysql://ada@127.0.0.1/app", password=password)) == "secret"
        assert Encryption(keys=key, active="k").key("k") == b"k" * 32


def test_several_threads_and_a_running_loop_share_it() -> None:
    client = SharedClient()

    async def within_a_loop() -> Any:
        return result_of(client.call(-1))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: result_of(client.call(n)), range(64))) == list(range(64))
    assert asyncio.run(within_a_loop()) == -1


def test_an_error_is_raised_in_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("wrong")

    with pytest.raises(KeyError, match="wrong"):
        result_of(fail())


def test_a_call_that_would_wait_for_itself_is_refused() -> None:
    async def nested() -> Any:
        return result_of(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="each would wait for the other"):
        result_of(nested())


def test_a_forked_child_has_a_loop_of_its_own() -> None:
    assert result_of(asyncio.sleep(0, "parent")) == "parent"
    child = os.fork()
    if not child:
        os._exit(0 if result_of(asyncio.sleep(0, "child")) == "child" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert result_of(asyncio.sleep(0, "parent")) == "parent"


def test_the_exit_of_the_interpreter_ends_its_tasks_without_a_message() -> None:
    program = """
import asyncio
from locus_mysql.background_loop import result_of

async def begin():
    asyncio.get_running_loop().hung = asyncio.create_task(forever())
    await asyncio.sleep(0)

async def forever():
    try:
        await asyncio.sleep(3600)
    finally:
        print("ended")

result_of(begin())
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (done.stdout, done.stderr) == ("ended\n", "")
