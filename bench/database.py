"""Databases to measure in, and what there is to know of the server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import pymysql
from locus.agent import Agent
from locus.core.messages import Message
from locus.models.base import ModelResponse
from locus.testing import FunctionModel, text, tool_call
from locus.tools import tool

from locus_mysql import MySQLCheckpointer, MySQLConfig

from .states import prose


def _connect(config: MySQLConfig) -> pymysql.Connection:
    return pymysql.connect(
        host=config.host,
        port=config.port,
        user=config.user,
        password=config.password.get_secret_value(),
        autocommit=True,
    )


@contextmanager
def fresh_database(dsn: str) -> Iterator[str]:
    """The DSN of a new database on the same server, dropped at the end."""
    config = MySQLConfig(dsn=dsn)
    name = f"locus_bench_{uuid4().hex[:12]}"
    with _connect(config) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE `{name}`")
        try:
            password = quote(config.password.get_secret_value(), safe="")
            yield f"mysql://{quote(config.user, safe='')}:{password}@{config.host}:{config.port}/{name}"
        finally:
            cursor.execute(f"DROP DATABASE `{name}`")


def server_facts(dsn: str) -> dict[str, str]:
    """Version and durability of the server."""
    with _connect(MySQLConfig(dsn=dsn)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@log_bin")
        row = cursor.fetchone()
    assert row is not None
    return {
        "mysql": str(row[0]),
        "durability": f"innodb_flush_log_at_trx_commit={row[1]}, sync_binlog={row[2]}, log_bin={row[3]}",
    }


async def whole_states_bytes(dsn: str, turns: int) -> tuple[int, int, int]:
    """Bytes stored for a conversation of a real agent with iteration saves, bytes of its states whole, of the last."""
    source = random.Random(4)

    @tool
    def look_up(topic: str) -> str:
        """Look a topic up."""
        return prose(source)

    def answer(heard: list[Message], tools: object) -> ModelResponse:
        return text(prose(source)) if heard[-1].role.value == "tool" else tool_call("look_up", topic="it")

    whole = final = 0
    with fresh_database(dsn) as own:
        async with MySQLCheckpointer(dsn=own) as checkpointer:
            model = FunctionModel(answer)
            agent = Agent(model=model, tools=[look_up], checkpointer=checkpointer, context_window=10_000_000)
            for _ in range(turns):
                await agent.arun(prose(source, 20), thread_id="t")
                state = await checkpointer.load("t")
                assert state is not None
                final = len(state.model_dump_json())
                whole += final
            stored = await checkpointer.get_disk_usage("t")
    return stored, whole, final
