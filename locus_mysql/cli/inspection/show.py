"""``show``, ``history`` and ``diff``: a conversation, the checkpoints of a thread, and the differences of two."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...errors import NotFound, UsageError
from ...families.inspection.conversation import shown_with_calls
from ...families.inspection.records import (
    CheckpointRow,
    Difference,
    FieldChange,
    Message,
    MessageChange,
    Page,
    PendingWrite,
    StateView,
    ThreadRow,
    ToolCall,
    Window,
)
from ...families.registry import find_family
from ...inspection.inspector import Inspector
from ..arguments import FAILED, OK, add_limit, at_least_one
from .command import (
    ROOM_FOR_TIMES,
    TIME_HELP,
    Clock,
    add_inspection,
    add_namespace,
    add_thread,
    checkpoint_at,
    collect,
    find_thread,
    format_size,
    look,
    named,
    of_checkpoint,
)
from .screen import Column, Screen, Segment, as_json, json_text, number, write_json

#: The maximum number of characters of metadata shown for each checkpoint in a list.
_METADATA_LIMIT = 60

#: The smallest width of a terminal on which lists show metadata.
_ROOM_FOR_METADATA = 110

STYLES: Mapping[str, str] = {
    "user": "bold cyan",
    "assistant": "bold green",
    "system": "bold yellow",
    "developer": "bold yellow",
    "tool": "bold magenta",
}

#: The maximum number of characters shown of a message, and of the arguments or the result of a call. ``--full`` shows
#: all.
TEXT_LIMIT, TOOL_LIMIT = 4_000, 600

#: The maximum number of characters of a value in one line.
VALUE_LIMIT = 300

#: The exit codes of diff.
SAME, DIFFERENT, TROUBLE = 0, 1, 2

_ADDED, _REMOVED = "green", "red"


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``show``."""
    add_thread(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--checkpoint",
        metavar="ID",
        help="the checkpoint to show, by its id or the beginning of its id (default: the newest)",
    )
    which.add_argument("--at", metavar="TIME", help=f"the newest checkpoint at this time: {TIME_HELP}")
    parser.add_argument("--last", type=at_least_one, metavar="N", help="only the last messages")
    parser.add_argument("--state", action="store_true", help="also show the whole state")
    parser.add_argument("--full", action="store_true", help="show long texts in full (always so in a pipe)")
    add_namespace(parser)
    add_inspection(parser)


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``history``."""
    add_thread(parser)
    add_limit(parser, 50)
    parser.add_argument("--cursor", metavar="CURSOR", help="continue a list where the last page ended")
    add_inspection(parser)


def show(arguments: argparse.Namespace) -> int:
    """Show a conversation; 1 if it does not exist."""
    clock = Clock(arguments)
    moment = None if arguments.at is None else clock.moment(arguments.at)

    async def find(inspector: Inspector) -> tuple[ThreadRow, StateView]:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        checkpoint_id, namespace = None, arguments.namespace
        if moment is not None:
            chosen = await checkpoint_at(inspector, thread, moment, namespace, clock)
            checkpoint_id, namespace = chosen.checkpoint_id, chosen.namespace
        elif arguments.checkpoint is not None:
            chosen = await named(inspector, thread, arguments.checkpoint, namespace)
            checkpoint_id, namespace = chosen.checkpoint_id, chosen.namespace
        whole = arguments.last is None or arguments.state or arguments.json
        window = None if whole else Window(arguments.last)
        view = await inspector.state(thread.family, thread.thread_id, checkpoint_id, namespace=namespace, window=window)
        if view is None:
            where = f" in namespace {namespace!r:.200}" if namespace else ""
            raise NotFound(f"Thread {thread.thread_id!r:.200} has no checkpoint{where}; the command history lists all.")
        return thread, view

    thread, view = look(arguments, find)
    if arguments.json:
        write_json(view)
    else:
        _show(Screen(), thread, view, arguments, clock)
    return OK if view.damage is None else FAILED


def history(arguments: argparse.Namespace) -> int:
    """List the checkpoints of a thread, newest first; 1 if the thread does not exist."""
    clock = Clock(arguments)

    async def find(inspector: Inspector) -> Page[CheckpointRow]:
        thread = await find_thread(inspector, arguments.thread, arguments.family)
        read = partial(inspector.history, thread.family, thread.thread_id)
        return await collect(read, arguments.limit, arguments.cursor)

    page = look(arguments, find)
    if arguments.json:
        write_json({"checkpoints": page.items, "cursor": page.cursor})
    else:
        _show_history(Screen(), page, clock)
    return OK


def _show(screen: Screen, thread: ThreadRow, view: StateView, arguments: argparse.Namespace, clock: Clock) -> None:
    checkpoint = view.checkpoint
    newest = " (the newest)" if checkpoint.checkpoint_id == thread.checkpoint_id and not checkpoint.namespace else ""
    title = find_family(thread.family).title
    screen.line(Segment("thread      ", "dim"), Segment(thread.thread_id, "bold"), Segment(f"  {title}", "dim"))
    screen.line(Segment("checkpoint  ", "dim"), Segment(checkpoint.checkpoint_id, "yellow"), Segment(newest, "dim"))
    if checkpoint.namespace:
        screen.line(Segment("namespace   ", "dim"), checkpoint.namespace)
    screen.line(Segment("saved       ", "dim"), clock.zoned(checkpoint.created_at))
    if checkpoint.parent_id is not None:
        screen.line(Segment("follows     ", "dim"), checkpoint.parent_id)
    if checkpoint.metadata:
        limit = None if arguments.full or not screen.terminal else 500
        screen.line(Segment("metadata    ", "dim"), one_line(checkpoint.metadata, limit=limit))
    screen.line("")
    for damage in (checkpoint.damage, view.damage):
        if damage is not None:
            screen.line(Segment("damaged: ", "red"), damage)
    messages = view.messages[-arguments.last :] if arguments.last else view.messages
    earlier = view.before + len(view.messages) - len(messages)
    if earlier:
        screen.line(Segment(f"({earlier:,} earlier messages)", "dim"))
        screen.line("")
    show_messages(screen, messages, clock, full=arguments.full)
    if arguments.state or not (view.messages or view.damage):
        screen.line(Segment("state", "bold"))
        screen.block(json_text(as_json(view.state), indent=2), limit=None)
    if view.writes:
        show_writes(screen, view.writes, full=arguments.full)


def _show_history(screen: Screen, page: Page[CheckpointRow], clock: Clock) -> None:
    """Show a table for each namespace, the graph's own first."""
    spaces: dict[str, list[CheckpointRow]] = {}
    for row in sorted(page.items, key=lambda row: bool(row.namespace)):
        spaces.setdefault(row.namespace, []).append(row)
    for space, rows in spaces.items():
        if space:
            screen.line("")
            screen.line(Segment("namespace  ", "dim"), space)
        _show_line(screen, rows, clock)
    for row in page.items:
        if row.damage is not None:
            screen.line(Segment("damaged: ", "red"), row.damage)
    if page.cursor is not None:
        screen.line(Segment(f"There are more: --cursor {page.cursor}", "dim"))


def _show_line(screen: Screen, found: Sequence[CheckpointRow], clock: Clock) -> None:
    """Show the checkpoints of a namespace, with the parent of each whose parent is not the checkpoint below it."""
    metadata = not screen.terminal or screen.width >= _ROOM_FOR_METADATA
    times = not screen.terminal or screen.width >= ROOM_FOR_TIMES
    below = [*(row.checkpoint_id for row in found[1:]), None]
    strays = any(one is not None and row.parent_id != one for row, one in zip(found, below, strict=True))
    columns = [
        Column("checkpoint", lambda row: row.checkpoint_id, "yellow"),
        *([Column("follows", lambda row: row.parent_id or "")] if strays else []),
        *([Column(clock.heading("saved"), lambda row: clock.time_text(row.created_at), whole=True)] if times else []),
        number("age", lambda row: clock.age(row.created_at)),
        number("size", lambda row: format_size(row.size_bytes)),
        *([Column("metadata", lambda row: _metadata(row, screen), "dim")] if metadata else []),
    ]
    screen.table(columns, found)


def _metadata(row: CheckpointRow, screen: Screen) -> str:
    return one_line(row.metadata, limit=_METADATA_LIMIT if screen.terminal else None) if row.metadata else ""


def show_messages(screen: Screen, messages: Sequence[Message], clock: Clock, *, full: bool) -> None:
    """Show messages, with the results of tools beside their calls."""
    with_calls = shown_with_calls(messages)
    for index, message in enumerate(messages):
        if index not in with_calls:
            show_message(screen, message, clock, full=full)


def show_message(screen: Screen, message: Message, clock: Clock, *, full: bool, mark: Segment | None = None) -> None:
    """Show one message."""
    marked = () if mark is None else (mark, " ")
    style = (mark.style if mark else "") or STYLES.get(message.role, "bold")
    when = () if message.at is None else (Segment(f"  {clock.time_text(message.at)}", "dim"),)
    screen.line(*marked, Segment(message.role or "unknown", style), *when)
    if message.text:
        screen.block(message.text, limit=None if full else TEXT_LIMIT)
    elif not message.tool_calls:
        screen.block(json_text(message.raw), "dim", limit=None if full else TOOL_LIMIT)
    for call in message.tool_calls:
        _show_call(screen, call, full=full)
    screen.line("")


def show_writes(screen: Screen, writes: Sequence[PendingWrite], *, full: bool) -> None:
    """Show the pending writes of a graph's tasks."""
    screen.line(Segment("pending writes, not yet part of a checkpoint", "bold"))
    for write in writes:
        screen.line("  ", Segment(write.channel, "bold"), Segment(f"  task {write.task_id}", "dim"))
        screen.block(json_text(write.value), indent=4, limit=None if full else TOOL_LIMIT)
    screen.line("")


def one_line(value: Any, *, limit: int | None = VALUE_LIMIT) -> str:
    """Return a JSON value in one line, truncated if it is long."""
    text = value if isinstance(value, str) else json_text(value)
    text = " ".join(text.split())
    return text if limit is None or len(text) <= limit else f"{text[:limit]}…"


def _show_call(screen: Screen, call: ToolCall, *, full: bool) -> None:
    limit = None if full else TOOL_LIMIT
    arrow, back = ("→", "←") if screen.unicode else ("->", "<-")
    known = () if call.call_id is None else (Segment(f"  {call.call_id}", "dim"),)
    screen.line("  ", Segment(f"{arrow} {call.name}", "magenta"), *known)
    if call.arguments is not None and call.arguments != {}:
        screen.block(json_text(call.arguments), indent=4, limit=limit)
    if call.error is not None:
        screen.block(f"{back} failed: {call.error}", "red", indent=4, limit=limit)
    if call.result is not None:
        screen.block(f"{back} {call.result}", "dim", indent=4, limit=limit)


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
        _show_difference(Screen(), found, changed, clock, full=arguments.full)
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


def _show_difference(
    screen: Screen, found: Difference, changed: Sequence[MessageChange], clock: Clock, *, full: bool
) -> None:
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
        _show_change(screen, change, clock, full=full)
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


def _show_change(screen: Screen, change: MessageChange, clock: Clock, *, full: bool) -> None:
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
