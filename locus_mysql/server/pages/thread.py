"""Pages of a thread: its conversation, timeline and states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ...families.checkpoints.queries import strings
from ...families.inspection.conversation import shown_with_calls
from ...families.inspection.records import CheckpointRow, Message, Page, StateView, ToolCall, Turn, Window
from ...families.inspection.turns import first_saved
from ..problems import existing
from ..routing import Endpoints, LenientQuery
from ..services import BlockingInspector, read, stores_of
from . import texts
from .common import as_time, family_of, inspector_of, thread_of
from .markdown import Formatter
from .rendering import downloaded, page, zone_of
from .statistics import lines_of
from .texts import hits, tree

#: Number of lanes. Further branches share the last one.
LANES = 8

#: Number of checkpoints in a timeline, of turns in a chart, of messages on a page.
CHECKPOINTS, TURNS, MESSAGES = 100, 100, 200

#: Number of characters of a message shown at once, and when unfolded.
SHOWN, UNFOLDED = 1_500, 200_000

#: Number of tool calls shown of a message.
CALLS = 50


@dataclass(frozen=True, slots=True)
class Node:
    """A checkpoint in the drawing. Lanes are counted from the left, from 0.

    Attributes:
        row: The checkpoint.
        lane: The lane of its dot.
        above: Whether its continuation is above it, in its lane.
        below: Whether a line leads from it to its parent.
        passing: Lanes whose lines pass by it.
        joining: Lanes of further branches that begin at it.
    """

    row: CheckpointRow
    lane: int
    above: bool
    below: bool
    passing: Sequence[int]
    joining: Sequence[int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawing, newest first.

    Attributes:
        nodes: Its rows.
        lanes: Its number of lanes.
        branches: Its number of leaves, checkpoints without a continuation. Each of a graph's subgraphs adds one.
    """

    nodes: Sequence[Node]
    lanes: int
    branches: int


def timeline(rows: Sequence[CheckpointRow]) -> Timeline:
    """Draw checkpoints, newest first. Each lane waits for the parent of the checkpoint above.

    A parent is older, so it comes after its continuations; one that does not is drawn as a leaf.
    """
    waiting: list[tuple[str, str] | None] = []
    nodes = []
    branches = 0
    for row in rows:
        key = (row.namespace, row.checkpoint_id)
        lanes = [lane for lane, wanted in enumerate(waiting) if wanted == key]
        above = bool(lanes)
        if not lanes:
            branches += 1
            lanes = [_free(waiting)]
        lane, *joining = lanes
        for other in joining:
            waiting[other] = None
        waiting[lane] = None
        passing = [other for other, wanted in enumerate(waiting) if wanted is not None]
        waiting[lane] = None if row.parent_id is None else (row.namespace, row.parent_id)
        nodes.append(
            Node(
                row=row,
                lane=_drawn(lane),
                above=above,
                below=waiting[lane] is not None,
                passing=_all_drawn(passing),
                joining=_all_drawn(joining),
            )
        )
    subgraphs = len({row.namespace for row in rows}) - 1
    return Timeline(nodes, min(len(waiting), LANES), branches - max(subgraphs, 0))


def _free(waiting: list[tuple[str, str] | None]) -> int:
    """Return the first free lane."""
    for lane, wanted in enumerate(waiting):
        if wanted is None:
            return lane
    waiting.append(None)
    return len(waiting) - 1


def _drawn(lane: int) -> int:
    return min(lane, LANES - 1)


def _all_drawn(lanes: Sequence[int]) -> list[int]:
    return sorted({_drawn(lane) for lane in lanes})


@dataclass(frozen=True, slots=True)
class NumberedMessage:
    """A message on the page.

    Attributes:
        at: Its index in the conversation, from 0.
        message: The message.
        answers: Whether it only holds the result of a tool call, which is shown with the call.
        saved_at: When it was first saved, if known.
    """

    at: int
    message: Message
    answers: bool = False
    saved_at: datetime | None = None


def conversation(
    messages: Sequence[Message], saved_at: Mapping[int, datetime], before: int = 0
) -> list[NumberedMessage]:
    """Return messages with their indices. The result of a tool call is shown with the call only.

    Args:
        messages: The messages.
        saved_at: When they were saved, by index.
        before: The number of messages before them.
    """
    results = shown_with_calls(messages)
    return [
        NumberedMessage(before + at, message, at in results, saved_at.get(before + at))
        for at, message in enumerate(messages)
    ]


def index_of_match(messages_shown: Sequence[NumberedMessage], words: str) -> int | None:
    """Return the index of the message with most words of a search, of several the last; None if none has any."""
    wanted = texts.words_in(words)
    if wanted is None:
        return None
    best, most = None, 0
    for index, one in enumerate(messages_shown):
        spoken = [one.message.text, *(part for call in one.message.tool_calls for part in _texts_of(call))]
        count = len({word.casefold() for word in wanted.findall("\n".join(spoken)[:UNFOLDED])})
        if count and count >= most:
            best, most = index, count
    return best


def _texts_of(call: ToolCall) -> Iterator[str]:
    """Return the text of a tool call."""
    yield call.name
    yield from strings(call.arguments)
    yield from (text for text in (call.result, call.error) if text is not None)


def first_shown(messages: int, wanted: int, hit: int | None) -> int:
    """Return the index of the first message on the page of a whole conversation: by default, the last ones are shown.

    Args:
        messages: The number of messages.
        wanted: The number of the requested first one, from 1; 0 for none.
        hit: The index of a message that a search found, which is shown unless another first message is requested.
    """
    if wanted:
        return max(0, min(wanted - 1, messages))
    last = max(0, messages - MESSAGES)
    return last if hit is None else min(last, hit)


class ReadTimeline(NamedTuple):
    """A page of a thread's checkpoints.

    Args:
        history: The checkpoints.
        newest: Whether it begins with the newest checkpoint.
        turns: The turns for the charts and the times of messages, oldest first.
        noted: The turns of the checkpoints on the page.
    """

    history: Page[CheckpointRow]
    newest: bool
    turns: Sequence[Turn]
    noted: Sequence[Turn]


def _read_timeline(
    inspector: BlockingInspector, family: str, thread_id: str, cursor: str, at: datetime | None
) -> ReadTimeline:
    """Read a page of a thread's checkpoints, and its turns; ``at`` is the time of an earlier state that is shown."""
    history = read(inspector.history(family, thread_id, limit=CHECKPOINTS, cursor=cursor or None))
    newest = not cursor
    if newest and history.cursor and at is not None and at < history.items[-1].created_at:
        # The displayed state is not among the newest, so the timeline begins with it.
        history, newest = read(inspector.history(family, thread_id, limit=CHECKPOINTS, at=at)), False
    turns = noted = read(inspector.states(family, thread_id, inspector.turns_at_once(family), at=at))
    if cursor and history.items:  # an older page of the timeline has turns of its own
        noted = read(inspector.states(family, thread_id, CHECKPOINTS + 1, at=history.items[0].created_at))
    return ReadTimeline(history, newest, turns, noted)


PAGES = Endpoints(base=LenientQuery)


@PAGES.add("GET", "/inspect/thread")
def thread_page(
    request: Request,
    thread: str,
    family: str = "agents",
    checkpoint: str = "",
    namespace: str = "",
    at: str = "",
    find: str = "",
    words: str = "",
    first: int = 0,
    cursor: str = "",
    plain: bool = False,
) -> Response:
    """A thread's newest state, or its state at a checkpoint or a time."""
    inspector = inspector_of(request)
    row = thread_of(request, family_of(family), thread)
    # Read first, so that the page is notified of writes during the rest.
    markers = read(inspector.changed([(family, thread)]))
    # A search for words reads all messages; otherwise only the displayed ones of a long conversation are read.
    window = None if words else Window(MESSAGES, first - 1 if first else None)
    state = wanted_state(request, family, thread, checkpoint, namespace, at, window)
    pinned = bool(checkpoint or at)
    shown_at = state.checkpoint.created_at if pinned and state is not None else None
    history, newest, turns, noted = _read_timeline(inspector, family, thread, cursor, shown_at)
    times = {} if state is None else first_saved(state, turns)
    messages = () if state is None else state.messages
    before, after = (0, 0) if state is None else (state.before, state.after)
    messages_shown = [one for one in conversation(messages, times, before) if not one.answers]
    hit = index_of_match(messages_shown, words)
    begin = 0 if before or after else first_shown(len(messages_shown), first, hit)
    root = tree({} if state is None else state.state, find)
    return page(
        request,
        "thread.html",
        section="threads",
        family=family,
        changes=stores_of(request).changes(family),
        thread=row,
        timeline=timeline(history.items),
        turns={(turn.checkpoint_id, turn.created_at): turn for turn in noted},
        newest=newest,
        older=history.cursor,
        state=state,
        pinned=pinned,
        newest_state=state is not None and state.checkpoint.checkpoint_id == row.checkpoint_id,
        messages_shown=messages_shown[begin : begin + MESSAGES],
        before=before or begin,
        after=after or max(0, len(messages_shown) - begin - MESSAGES),
        most=MESSAGES,
        lines=lines_of(turns[-TURNS:]),
        root=root,
        hits=hits(root) if find else 0,
        hit=None if hit is None else messages_shown[hit].at,
        words=words,
        formatted=None if plain else Formatter(words),
        marker=markers.get((family, thread), ""),
        compared=compared(history.items, state),
        shown_characters=SHOWN,
        unfolded_characters=UNFOLDED,
        most_calls=CALLS,
    )


def compared(rows: Sequence[CheckpointRow], state: StateView | None) -> tuple[str | None, str | None]:
    """Return the two checkpoints most likely to be compared: the displayed one and the one before it."""
    if state is None:
        return None, None
    after = state.checkpoint
    before = after.parent_id
    same = [row.checkpoint_id for row in rows if row.namespace == after.namespace]
    if before is None and after.checkpoint_id in same[:-1]:
        before = same[same.index(after.checkpoint_id) + 1]
    return before, after.checkpoint_id


def wanted_state(
    request: Request,
    family: str,
    thread_id: str,
    checkpoint: str,
    namespace: str,
    at: str,
    window: Window | None = None,
) -> StateView | None:
    """Return the state that a query names; None if the thread had none at that time.

    Args:
        request: The request.
        family: The family.
        thread_id: The thread.
        checkpoint: The checkpoint; empty for the newest.
        namespace: The checkpoint namespace of a graph.
        at: The time, as it was typed.
        window: The range of messages of a long conversation to read; None for all.

    Raises:
        Problem: There is no such checkpoint.
    """
    moment = as_time(at, zone_of(request))
    found = read(
        inspector_of(request).state(
            family_of(family), thread_id, checkpoint or None, namespace=namespace, at=moment, window=window
        )
    )
    return existing(found, "checkpoint") if checkpoint else found


@PAGES.add("GET", "/inspect/state.json")
def state_file(
    request: Request, thread: str, family: str = "agents", checkpoint: str = "", namespace: str = "", at: str = ""
) -> Response:
    """A whole state as JSON."""
    thread_of(request, family_of(family), thread)
    found = existing(wanted_state(request, family, thread, checkpoint, namespace, at), "checkpoint")
    value: dict[str, Any] = {
        "family": found.family,
        "thread_id": found.thread_id,
        "checkpoint": {**asdict(found.checkpoint), "created_at": found.checkpoint.created_at.isoformat()},
        "state": found.state,
    }
    if found.writes:
        value["writes"] = [asdict(write) for write in found.writes]
    return downloaded(value, f"{found.thread_id}.{found.checkpoint.checkpoint_id}.json")
