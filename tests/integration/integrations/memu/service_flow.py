"""A flow through memu-cli's `MemoryService` on a database: in this process, or with another version of memu-cli.

``python -m tests.integration.integrations.memu.service_flow DSN`` prints the answers with our database and with
memu-cli's in-memory store as JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

from locus_mysql.integrations.memu import build_recall_database

ADA, BOB = {"user_id": "ada"}, {"user_id": "bob", "agent_id": "x"}

FIRST = [
    {"name": "tastes", "track": "memory", "description": "what she likes", "content": "# Tea\nlikes tea\nlikes cake"},
    {"name": "work", "description": "", "content": "builds bridges\n\nbuilds bridges"},
    {"name": "tastes", "track": "skill", "description": "how to brew", "content": "boil water"},
]
SECOND = [
    {"name": "tastes", "track": "memory", "description": "what she likes now", "content": "likes cake\nlikes coffee"},
    {"name": "work", "description": "her work", "content": "builds bridges"},
]
RESOURCES = [{"path": f"docs/{name}.md", "description": f"about {name}"} for name in ("tea", "bridges", "cake")]


class Scripted:
    """An embedding client without a model: the same text always has the same embedding of exact 32-bit floats."""

    async def embed(self, texts: list[str]) -> tuple[list[list[float]], None]:
        digests = (hashlib.sha256(text.encode()).digest()[:8] for text in texts)
        return [[(byte - 128) / 16 for byte in digest] for digest in digests], None


def comparable(answer: Any, names: dict[str, str]) -> Any:
    """Return an answer without times, with names in place of ids and rounded scores."""
    if isinstance(answer, dict):
        return {
            key: comparable(value, names) for key, value in answer.items() if key not in ("created_at", "updated_at")
        }
    if isinstance(answer, list | tuple):
        return [comparable(one, names) for one in answer]
    return round(answer, 5) if isinstance(answer, float) else names.get(answer, answer)


def fresh() -> Any:
    """Return a service whose embeddings need no network, on memu-cli's in-memory store."""
    service = import_module("memu.app.service").MemoryService()
    service._get_embedding_client = lambda profile=None: Scripted()
    return service


async def answers(service: Any) -> list[Any]:
    """Return the answers of a service to a series of calls, in a comparable form."""
    found: list[Any] = []
    for user in (ADA, BOB):
        found.append(await service.commit_results(recall_files=FIRST, resource=RESOURCES, user=user))
    found.append(await service.progressive_retrieve("likes tea", where=ADA))
    found.append(await service.commit_results(recall_files=SECOND, resource=RESOURCES[:1], user=ADA))
    for query, where in (("likes cake", ADA), ("about tea", BOB), ("boil water", {"user_id__in": ["bob"]})):
        found.append(await service.progressive_retrieve(query, where=where))
    for where in (ADA, BOB):
        found.append(await service.list_all_recall_files(where=where))
    cursor, pages = None, []
    while True:
        page = await service.list_all_recall_files(where=ADA, cursor=cursor, limit=2)
        pages.append([(one["track"], one["name"]) for one in page["recall_files"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    found.append(pages)
    database = service.database
    names = {id: f"{one.track}/{one.name}" for id, one in database.recall_files.items()}
    names |= {one.id: f"segment {one.text}" for one in database.segments}
    names |= {id: f"resource {one.url}" for id, one in database.resources.items()}
    # Records that were replaced meanwhile keep their own random ids, which are not compared.
    replaced = {id for answer in found for id in ids_in(answer)} - set(names)
    return list(comparable(found, {**names, **dict.fromkeys(replaced, "replaced")}))


def ids_in(answer: Any) -> set[str]:
    """Return the ids of the records in an answer."""
    if isinstance(answer, dict):
        own = {answer["id"]} if "id" in answer else set()
        return own.union(*map(ids_in, answer.values()))
    return set().union(*map(ids_in, answer)) if isinstance(answer, list) else set()


def both(dsn: str) -> list[list[Any]]:
    """Return the answers of a service on memu-cli's in-memory store, and of one on our database."""
    theirs, ours = fresh(), fresh()
    ours.database = build_recall_database(config=dsn, user_model=ours.user_model, driver="pymysql")
    try:
        return [asyncio.run(answers(service)) for service in (theirs, ours)]
    finally:
        ours.database.close()


if __name__ == "__main__":
    print(json.dumps([version("memu-cli"), *both(sys.argv[1])]))
