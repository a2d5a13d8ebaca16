"""``rm``: delete a thread or a checkpoint, never unasked."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...dialect import Schema
from ...engine.operation import Operation
from ...errors import NotFound
from ...families.checkpoints.store import StoreOperations
from ...families.graphs.operations import VersionOperations
from ...inspection.inspector import Inspector
from ...inspection.records import CheckpointRow, ThreadRow
from ...integrations.counting import counted
from ..arguments import FAILED, OK, WRONG, tell
from ..sanitize import harmless_line
from .command import (
    Clock,
    add_looking,
    add_namespace,
    add_thread,
    find_thread,
    look,
    named,
)
from .measures import told_size
from .screen import write_json


def add_rm(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``rm``."""
    add_thread(parser)
    parser.add_argument("--checkpoint", metavar="ID", help="only this checkpoint, by its whole id; others stay whole")
    parser.add_argument("--yes", action="store_true", help="without being asked; needed where there is no terminal")
    add_namespace(parser)
    add_looking(parser)


def rm(arguments: argparse.Namespace) -> int:
    """Delete a thread or a checkpoint: 1 if it is not there, or the answer was no; 2 if nobody could be asked."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> tuple[ThreadRow, CheckpointRow | None]:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        if arguments.checkpoint is None:
            return thread, None
        found = await named(inspector, thread, arguments.checkpoint, arguments.namespace)
        if found.checkpoint_id != arguments.checkpoint:
            raise NotFound(f"To delete a checkpoint, give its whole id: {found.checkpoint_id}")
        return thread, found

    thread, checkpoint = look(arguments, find, shows=False)
    what = _told(thread, checkpoint, clock)
    if not arguments.yes:
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            tell(f"locus-mysql: Nobody can be asked whether to delete {what}, as this is no terminal. Give --yes.")
            return WRONG
        if not _agreed(f"Delete {what}? [y/N] "):
            tell("Nothing was deleted.")
            return FAILED

    async def remove(inspector: Inspector) -> bool:
        operation, schema = _removal(inspector, thread, checkpoint)
        return bool(await inspector.database.asynchronous.run(operation, schema, "validate"))

    removed = look(arguments, remove, shows=False)
    if arguments.json:
        write_json({"deleted": removed, "thread": thread, "checkpoint": checkpoint})
    else:
        tell(f"Deleted {what}." if removed else "It was gone already.")
    return OK if removed else FAILED


def _removal(
    inspector: Inspector, thread: ThreadRow, checkpoint: CheckpointRow | None
) -> tuple[Operation[Any], Schema]:
    """What deletes it, and the tables that it is in."""
    config = inspector.config.model_copy(update={"search": False})  # whether there is an index does not matter
    if thread.family == "versions":
        versions = VersionOperations(config)
        if checkpoint is None:
            return versions.removing.delete_thread(config.tenant, thread.thread_id), versions.sql.schema
        removal = versions.removing.delete_checkpoint(
            config.tenant, thread.thread_id, checkpoint.namespace, checkpoint.checkpoint_id
        )
        return removal, versions.sql.schema
    store = StoreOperations(config, thread.family)
    if checkpoint is None:
        return store.delete(thread.thread_id), store.schema
    return store.delete(thread.thread_id, checkpoint.checkpoint_id), store.schema


def _told(thread: ThreadRow, checkpoint: CheckpointRow | None, clock: Clock) -> str:
    name = f"thread {harmless_line(thread.thread_id)} of {thread.family}"
    if checkpoint is not None:
        saved = clock.zoned(checkpoint.created_at)
        return f"checkpoint {harmless_line(checkpoint.checkpoint_id)} ({saved}) of {name}"
    count = counted(thread.checkpoints, "checkpoint")
    return f"{name} ({count}, {told_size(thread.size_bytes)}, last saved {clock.zoned(thread.updated_at)})"


def _agreed(question: str) -> bool:
    """Whether a person at the terminal says yes."""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}
