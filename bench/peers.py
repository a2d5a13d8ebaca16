"""The other servers of the comparison, started once for all measurements of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from ci.private_servers import PostgreSQL, PrivateServer, Redis, ServerMissing


@dataclass
class Peers:
    """The available servers."""

    postgresql: PrivateServer | None = None
    redis: PrivateServer | None = None
    missing: dict[str, str] = field(default_factory=dict)


_running: list[Peers] = []


@contextmanager
def peers() -> Iterator[Peers]:
    """Start PostgreSQL and Redis, or use those of an outer block; ``missing`` has the reasons for unavailable ones."""
    if _running:
        yield _running[-1]
        return
    with ExitStack() as stack:
        found = Peers()
        found.postgresql = _start(stack, found, PostgreSQL, "asyncpg")
        found.redis = _start(stack, found, Redis, "redis")
        _running.append(found)
        stack.callback(_running.pop)
        yield found


def _start(stack: ExitStack, found: Peers, server: Any, library: str) -> PrivateServer | None:
    try:
        if find_spec(library) is None:
            raise ServerMissing(f"its library is not installed: pip install {library}")
        return stack.enter_context(server.start(_say))
    except ServerMissing as error:
        found.missing[server.name] = str(error)
        _say(f"{server.name} is left out: {error}")
        return None


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


async def peer_facts(found: Peers) -> dict[str, str]:
    """Return versions and durability of the servers, as they report them."""
    facts = {name: f"left out: {reason}" for name, reason in found.missing.items()}
    if found.postgresql is not None:
        import asyncpg

        connection = await asyncpg.connect(found.postgresql.url)
        try:
            names = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "ssl")
            settings = {name: await connection.fetchval(f"SHOW {name}") for name in names}
        finally:
            await connection.close()
        facts[PostgreSQL.name] = _line(settings)
    if found.redis is not None:
        from redis.asyncio import Redis as Client

        client = Client.from_url(found.redis.url, decode_responses=True)
        try:
            settings = {"version": (await client.info("server"))["redis_version"]}
            settings |= await client.config_get("append*")
        finally:
            await client.aclose()
        facts[Redis.name] = (
            _line({name: settings[name] for name in ("version", "appendonly", "appendfsync")}) + ", no TLS"
        )
    return facts


def _line(settings: dict[str, str]) -> str:
    version, *others = settings.values()
    return (
        ", ".join([version, *(f"{name}={value}" for name, value in list(settings.items())[1:])]) if others else version
    )
