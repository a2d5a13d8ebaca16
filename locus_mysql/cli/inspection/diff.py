"""``diff``: compares two checkpoints of a thread, message by message and field by field."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...errors import NotFound, UsageError
from ...families.inspection.conversation import shown_with_calls
from ...families.inspection.records import (
    CheckpointRow,
    Difference,
    FieldChange,
    MessageChange,
    ThreadRow,
    Window,
)
from ...inspection.inspector import Inspector
from .command import (
    TIME_HELP,
    Clock,
    add_inspection,
    add_namespace,
    add_thread,
    checkpoint_at,
    find_thread,
    look,
    named,
    of_checkpoint,
)
from .screen import Screen, Segment, json_text, write_json
from .show import TEXT_LIMIT, one_line, show_message

#: The exit codes of diff.
SAME, DIFFERENT, TROUBLE = 0, 1, 2

_ADDED, _REMOVED = "green", "red"


def add_diff(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``diff``."""
    add_thread(parser)
    parser.add_argument("before", nargs="?", metavar="BEFORE", help="a checkpoint; by default, the one before AFTER")
    parser.add_argument("after", nargs="?", metavar="AFTER", help="another one; by default, the newest")
    parser.add_argument("--since", metavar="TIME", help=f"the state at this time, instead of BEFORE: {TIME_HELP}")
    parser.add_argument("--at", metavar="TIME", help="the state at this time, instead of AFTER")
    parser.add_argument("--full", action="store_true", help="show long texts in full (always so in a pipe)")
    add_namespace(parser)
    add_inspection(parser)
    parser.set_defaults(failed=TROUBLE)


def diff(arguments: argparse.Namespace) -> int:
    """Compare two checkpoints: 0 if they are the same, 1 if not, 2 if they cannot be compared."""
    if (arguments.before and arguments.since) or (arguments.after and arguments.at):
        raise UsageError("Each side is a checkpoint or a time: give BEFORE or --since, and AFTER or --at.")
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> Difference:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        after = await _side(inspector, thread, arguments.after, arguments.at, arguments.namespace, clock)
        if after is None:
            after = await _newest(inspector, thread, arguments.namespace)
        namespace = after.namespace
        before = await _side(inspector, thread, arguments.before, arguments.since, namespace, clock)
        before_id = after.parent_id if before is None else before.checkpoint_id
        if before_id is None:
            raise NotFound(f"Checkpoint {after.checkpoint_id!r} follows none. Name the one to compare it with.")
        return await inspector.differences(
            thread.family, thread.thread_id, before_id, after.checkpoint_id, namespace=namespace
        )

    found = look(arguments, find)
    changed = [change for change in found.messages if change.change != "same"]
    if arguments.json:
        write_json(found)
    else:
        _show(Screen(), found, changed, clock, full=arguments.full)
    return DIFFERENT if changed or found.fields else SAME


async def _side(
    inspector: Inspector, thread: ThreadRow, checkpoint_id: str | None, time: str | None, namespace: str, clock: Clock
) -> CheckpointRow | None:
    """Return the checkpoint that an argument names; None without one."""
    if time is not None:
        return await checkpoint_at(inspector, thread, clock.moment(time), namespace, clock)
    return None if checkpoint_id is None else await named(inspector, thread, checkpoint_id, namespace)


async def _newest(inspector: Inspector, thread: ThreadRow, namespace: str) -> CheckpointRow:
    view = await inspector.state(thread.family, thread.thread_id, namespace=namespace, window=Window(1))
    if view is None:
        raise NotFound(f"Thread {thread.thread_id!r:.200} has no checkpoint there; the command history lists all.")
    return view.checkpoint


def _show(screen: Screen, found: Difference, changed: Sequence[MessageChange], clock: Clock, *, full: bool) -> None:
    screen.line(Segment("--- ", _REMOVED), *of_checkpoint(found.before, clock))
    screen.line(Segment("+++ ", _ADDED), *of_checkpoint(found.after, clock))
    screen.line("")
    after = [change.after for change in changed if change.after is not None]
    with_calls = {id(after[index]) for index in shown_with_calls(after)}
    same = 0
    for change in found.messages:
        if change.change == "added" and id(change.after) in with_calls:
            continue
        if change.change == "same":
            same += 1
            continue
        if same:
            screen.line(Segment(_alike(same), "dim"))
            screen.line("")
            same = 0
        _show_message(screen, change, clock, full=full)
    if same and changed:
        screen.line(Segment(_alike(same), "dim"))
        screen.line("")
    for field in found.fields:
        _show_field(screen, field, full=full)
    if found.cut:
        screen.line(Segment("Not all changed fields are shown.", "dim"))
    if found.coarse:
        screen.line(
            Segment(
                "There is too much to compare everything: some changes are shown as removed and added, or as a whole, "
                "such as those of very long conversations.",
                "dim",
            )
        )
    if not changed and not found.fields:
        screen.line(Segment("The two checkpoints have the same content.", "dim"))


def _show_message(screen: Screen, change: MessageChange, clock: Clock, *, full: bool) -> None:
    if change.before is not None:
        show_message(screen, change.before, clock, full=full, mark=Segment("-", _REMOVED))
    if change.after is not None:
        show_message(screen, change.after, clock, full=full, mark=Segment("+", _ADDED))


def _show_field(screen: Screen, change: FieldChange, *, full: bool) -> None:
    sides = [
        *([("-", change.before, _REMOVED)] if change.change != "added" else []),
        *([("+", change.after, _ADDED)] if change.change != "removed" else []),
    ]
    limit = None if full or not screen.terminal else TEXT_LIMIT
    texts = [(mark, json_text(value), style) for mark, value, style in sides]
    if all(len(text) <= screen.width // 3 for _, text, _ in texts) or not screen.terminal:
        joined = [Segment(f"  {mark} {text}", style) for mark, text, style in texts]
        screen.line(Segment(change.path or "(all)", "bold"), *joined)
        return
    screen.line(Segment(change.path or "(all)", "bold"))
    for mark, text, style in texts:
        screen.line(Segment(f"  {mark} {one_line(text, limit=limit)}", style))


def _alike(count: int) -> str:
    return f"  ({count:,} message{' is' if count == 1 else 's are'} the same)"
