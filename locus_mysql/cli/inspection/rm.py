"""``rm``: deletes a thread or a checkpoint, after confirmation."""

from __future__ import annotations

import argparse

from ...errors import NotFound
from ...families.inspection.records import CheckpointRow, ThreadRow
from ...families.registry import changes_of, find_family
from ...inspection.inspector import Inspector
from ...runtime.counting import counted
from ..arguments import FAILED, OK, notify
from ..sanitize import sanitize_line
from .command import (
    Clock,
    add_inspection,
    add_namespace,
    add_thread,
    confirm,
    find_thread,
    look,
    named,
)
from .measures import format_size
from .screen import write_json


def add_rm(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``rm``."""
    add_thread(parser)
    parser.add_argument(
        "--checkpoint", metavar="ID", help="only this checkpoint, by its full id; the others can still be loaded"
    )
    parser.add_argument("--yes", action="store_true", help="delete without confirmation; required without a terminal")
    add_namespace(parser)
    add_inspection(parser)


def rm(arguments: argparse.Namespace) -> int:
    """Delete a thread or a checkpoint: 1 if it does not exist or the answer was no; 2 without a terminal."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> tuple[ThreadRow, CheckpointRow | None]:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        if arguments.checkpoint is None:
            return thread, None
        found = await named(inspector, thread, arguments.checkpoint, arguments.namespace)
        if found.checkpoint_id != arguments.checkpoint:
            raise NotFound(f"To delete a checkpoint, give its full id: {found.checkpoint_id}")
        return thread, found

    thread, checkpoint = look(arguments, find, shows=False)
    what = _described(thread, checkpoint, clock)
    refused = confirm(what, agreed=arguments.yes)
    if refused is not None:
        return refused

    async def remove(inspector: Inspector) -> bool:
        config = inspector.config.model_copy(update={"search": False})  # the full-text index may be missing
        family = find_family(thread.family)
        changes = changes_of(family, config)
        if checkpoint is None:
            operation = changes.delete(thread.thread_id, None, "")
        else:
            operation = changes.delete(thread.thread_id, checkpoint.checkpoint_id, checkpoint.namespace)
        return await inspector.database.asynchronous.run(operation, family.schema(config), "validate")

    removed = look(arguments, remove, shows=False)
    if arguments.json:
        write_json({"deleted": removed, "thread": thread, "checkpoint": checkpoint})
    else:
        notify(f"Deleted {what}." if removed else "It had been deleted already.")
    return OK if removed else FAILED


def _described(thread: ThreadRow, checkpoint: CheckpointRow | None, clock: Clock) -> str:
    name = f"thread {sanitize_line(thread.thread_id)} of {find_family(thread.family).title}"
    if checkpoint is not None:
        saved = clock.zoned(checkpoint.created_at)
        return f"checkpoint {sanitize_line(checkpoint.checkpoint_id)} ({saved}) of {name}"
    count = counted(thread.checkpoints, "checkpoint")
    return f"{name} ({count}, {format_size(thread.size_bytes)}, last saved {clock.zoned(thread.updated_at)})"
