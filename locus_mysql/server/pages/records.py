"""Pages of families without threads: namespaces and items of long-term memory, and sessions of working memory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.item_records import ItemHit, ItemRow, NamespaceRow
from ...families.inspection.records import Page, SessionRow
from ...families.memories.family import MEMORIES
from ...families.memories.searching import Way
from ...families.working.family import WORKING
from ..problems import existing
from ..routing import Endpoints, LenientQuery
from ..services import read
from .common import as_glob, as_labels, from_labels, inspector_of
from .markdown import Formatter
from .rendering import page
from .texts import hits, tree

#: Fields with the text of an item, in the order of preference.
TEXTS = ("text", "content", "memory", "fact", "summary", "message", "description", "value")

#: The beginning of a text in JSON that may be cut off.
_BEGINNING = re.compile(r'"(' + "|".join(TEXTS) + r')"\s*:\s*"((?:[^"\\]|\\.)*)')

#: Characters of an item's text; its value below has the rest.
MOST_TEXT = 20_000

#: Number of namespaces, items, hits and sessions on a page.
MOST = 100

#: The ways to search, with their labels.
WAYS = {"word": "by word", "meaning": "by meaning", "hybrid": "both ways"}

PAGES = Endpoints(base=LenientQuery)

#: The statuses of threads that look like those of tasks.
_LOOKS = {"waiting": "waiting", "failed": "failed", "cancelled": "failed", "completed": "done"}


def text_of(value: Any) -> str:
    """Return the text of an item's value; empty if none of its fields is known to contain it."""
    for _ in range(3):  # LangMem keeps the content below another content
        if isinstance(value, str):
            return value
        if not isinstance(value, Mapping):
            return ""
        value = next((value[name] for name in TEXTS if isinstance(value.get(name), str | Mapping)), None)
    return value if isinstance(value, str) else ""


def text_of_preview(preview: str) -> str:
    """Return the text in the beginning of a value; the beginning itself if it contains none that is known."""
    try:
        found = text_of(json.loads(preview))
    except (ValueError, RecursionError):
        match = _BEGINNING.search(preview)
        found = "" if match is None else _decoded(match[2])
    return found or preview


def _decoded(escaped: str) -> str:
    """Return a text of JSON that may end within an escape."""
    for cut in range(7):
        try:
            text = str(json.loads(f'"{escaped[: len(escaped) - cut]}"'))
        except ValueError:
            continue
        return text[:-1] if "\ud800" <= text[-1:] <= "\udbff" else text  # the first half of a character
    return escaped


@dataclass(slots=True)
class NamespaceNode:
    """A label in the tree of namespaces.

    Attributes:
        namespace: The labels up to this one.
        row: The namespace's items; None if only namespaces below it have some.
        below: The nodes below it.
    """

    namespace: tuple[str, ...]
    row: NamespaceRow | None = None
    below: list[NamespaceNode] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Return the last label."""
        return self.namespace[-1] if self.namespace else ""


def namespace_tree(rows: Sequence[NamespaceRow], prefix: tuple[str, ...]) -> NamespaceNode:
    """Return the namespaces below a prefix as a tree.

    Args:
        rows: The namespaces with items, sorted.
        prefix: The prefix, which all of them begin with.
    """
    root = NamespaceNode(prefix)
    nodes = {prefix: root}
    for row in rows:
        for depth in range(len(prefix) + 1, len(row.namespace) + 1):
            path = row.namespace[:depth]
            if path not in nodes:
                nodes[path] = NamespaceNode(path)
                nodes[path[:-1]].below.append(nodes[path])
        nodes[row.namespace].row = row
    return root


@PAGES.add("GET", "/inspect/memories")
def memories_page(
    request: Request, namespace: str = "", cursor: str = "", items: str = "", q: str = "", way: str = ""
) -> Response:
    """The namespaces and items in a namespace, or the hits of a search."""
    inspector = inspector_of(request)
    labels = as_labels(namespace)
    below: Page[NamespaceRow] = Page(())
    here: Page[ItemRow] = Page(())
    found: Sequence[ItemHit] | None = None
    exist = MEMORIES.name in read(inspector.families())
    if exist and q.strip():
        known = cast(Way, way) if way in WAYS else None
        found = read(inspector.search_memories(q, labels, limit=MOST, way=known))
    elif exist:
        below = read(inspector.namespaces(labels, limit=MOST, cursor=cursor or None))
        if labels:
            here = read(inspector.items(labels, limit=MOST, cursor=items or None))
    return page(
        request,
        "memories.html",
        section=MEMORIES.page.name,
        existing=exist,
        labels=labels,
        trail=trail(labels),
        below=namespace_tree([row for row in below.items if row.namespace != labels], labels).below,
        more=below.cursor,
        items=here,
        found=found,
        ways=WAYS if inspector.embeds else {},
        from_labels=from_labels,
        text_of=text_of_preview,
    )


def trail(labels: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the labels of a namespace, each with the query of the namespace that it ends."""
    return [(label, from_labels(labels[: at + 1])) for at, label in enumerate(labels)]


@PAGES.add("GET", "/inspect/memory")
def memory_page(request: Request, namespace: str, key: str, find: str = "") -> Response:
    """An item."""
    inspector = inspector_of(request)
    labels = as_labels(namespace)
    exist = MEMORIES.name in read(inspector.families())
    found = existing(read(inspector.item(labels, key)) if exist else None, "item")
    root = tree(found.value, find)
    return page(
        request,
        "memory.html",
        section=MEMORIES.page.name,
        trail=trail(labels),
        found=found,
        root=root,
        hits=hits(root) if find else 0,
        text=text_of(found.value)[:MOST_TEXT],
        formatted=Formatter(),
    )


class Task(NamedTuple):
    """A task.

    Args:
        title: Its id.
        status: Its status in words.
        look: The status of a thread that looks like it.
        percent: Its progress, from 0 to 100; None if unknown.
        steps: Its steps in words; empty if unknown.
        description: What is being done.
        error: Why it failed or was cancelled.
    """

    title: str
    status: str
    look: str
    percent: int | None
    steps: str
    description: str
    error: str


def task_of(state: Mapping[str, Any] | None) -> Task | None:
    """Return the task in a stored state; None without one, or for a state that is not a task."""
    if state is None or not isinstance(state.get("task_id"), str) or not isinstance(state.get("status"), str):
        return None
    status, progress = state["status"], state.get("progress")
    known = isinstance(progress, int | float) and not isinstance(progress, bool) and 0 <= progress <= 1
    step, total = state.get("current_step"), state.get("total_steps")
    steps = ""
    if isinstance(step, int) and step >= 0:
        steps = f"step {step} of {total}" if isinstance(total, int) else f"step {step}" if step else ""
    description, error = state.get("description"), state.get("error")
    return Task(
        title=state["task_id"],
        status=status[:40],
        look=_LOOKS.get(status, "unfinished"),
        percent=round(100 * float(progress)) if known and progress is not None else None,
        steps=steps,
        description=description if isinstance(description, str) else "",
        error=error if isinstance(error, str) else "",
    )


@PAGES.add("GET", "/inspect/sessions")
def sessions_page(request: Request, q: str = "", cursor: str = "") -> Response:
    """The list of sessions."""
    inspector = inspector_of(request)
    exist = WORKING.name in read(inspector.families())
    found: Page[SessionRow] = Page(())
    if exist:
        found = read(inspector.sessions(limit=MOST, cursor=cursor or None, pattern=as_glob(q)))
    return page(request, "sessions.html", section=WORKING.page.name, existing=exist, found=found, task_of=task_of)


@PAGES.add("GET", "/inspect/session")
def session_page(request: Request, session: str, find: str = "") -> Response:
    """A session."""
    inspector = inspector_of(request)
    exist = WORKING.name in read(inspector.families())
    found = existing(read(inspector.session(session)) if exist else None, "session")
    variables = tree(found.variables, find)
    return page(
        request,
        "session.html",
        section=WORKING.page.name,
        found=found,
        root=variables,
        current=task_of(found.task_state),
        task=None if found.task_state is None else tree(found.task_state, find),
        hits=hits(variables) if find else 0,
    )
