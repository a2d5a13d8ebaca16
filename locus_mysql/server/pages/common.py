"""Code shared by several pages: the inspector of the caller's tenant, the selected family, and the models of queries.

Unknown names in a query are ignored, as chat and mail programs add their own to links.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from ...families.inspection.records import ThreadRow
from ...families.registry import families, find_family
from ..problems import invalid, not_found
from ..services import SyncInspector, stores_of

#: Sizes and ages to choose from: the value in the query, its meaning, its label.
SIZES = {
    "10k": (10_000, "10 KB or more"),
    "100k": (100_000, "100 KB or more"),
    "1m": (1_000_000, "1 MB or more"),
    "10m": (10_000_000, "10 MB or more"),
}

AGES = {
    "1h": (timedelta(hours=1), "in the last hour"),
    "1d": (timedelta(days=1), "in the last 24 hours"),
    "7d": (timedelta(days=7), "in the last 7 days"),
    "30d": (timedelta(days=30), "in the last 30 days"),
    "old": (timedelta(days=30), "more than 30 days ago"),
}


def inspector_of(request: Request) -> SyncInspector:
    """Return the inspector of the caller's tenant."""
    return stores_of(request).inspector


def families_of(request: Request) -> list[str]:
    """Return the families of threads whose tables exist, in the order in which they are shown."""
    return [name for name in inspector_of(request).families() if find_family(name).holds_threads]


def chosen(given: str, existing: Sequence[str]) -> str | None:
    """Return the family in the query, or the first whose tables exist; None if there is none.

    Raises:
        Problem: There is no such family.
    """
    if not given:
        return existing[0] if existing else None
    family = family_of(given)
    return family if family in existing else None


def family_of(given: str) -> str:
    """Return the name of a family that holds threads.

    Raises:
        Problem: There is none of this name.
    """
    known = [family.name for family in families() if family.holds_threads]
    if given not in known:
        raise invalid(f"Unknown family. Families with threads: {', '.join(known)}.")
    return given


def thread_of(request: Request, family: str, thread_id: str) -> ThreadRow:
    """Return a thread.

    Raises:
        Problem: There is no such thread.
    """
    if family not in families_of(request):
        raise not_found("thread")
    found = inspector_of(request).thread(family, thread_id)
    if found is None:
        raise not_found("thread")
    return found


class QueryParameters(BaseModel):
    """Base of the models: every name is optional."""

    model_config = ConfigDict(extra="ignore")


class StaticQuery(QueryParameters):
    """The query of a static file."""

    v: str = ""


class OnwardQuery(QueryParameters):
    """The query of a form after which the user goes on to another page."""

    next: str = ""


class ThreadsQuery(QueryParameters):
    """The query of the list of threads."""

    family: str = ""
    q: str = ""
    key: str = ""
    value: str = ""
    size: str = ""
    age: str = ""
    cursor: str = ""


class ThreadQuery(QueryParameters):
    """The query of a thread, and of one of its states."""

    family: str = "agents"
    thread: str
    checkpoint: str = ""
    namespace: str = ""
    at: str = ""
    find: str = ""
    words: str = ""
    first: int = 0
    cursor: str = ""
    plain: bool = False


class EventsQuery(QueryParameters):
    """The query of the event stream of a thread."""

    family: str = "agents"
    thread: str
    seen: str = ""


class DifferenceQuery(QueryParameters):
    """The query of a difference."""

    family: str = "agents"
    thread: str
    before: str
    after: str
    namespace: str = ""
    all: bool = False
    times: bool = False


class SearchQuery(QueryParameters):
    """The query of a search by words."""

    family: str = ""
    q: str = ""


class MetadataQuery(QueryParameters):
    """The query of a search by metadata."""

    family: str = ""
    key: str = ""
    value: str = ""


class FamilyQuery(QueryParameters):
    """The query of the statistics of a family."""

    family: str = ""


class MemoriesQuery(QueryParameters):
    """The query of long-term memory."""

    namespace: str = ""
    cursor: str = ""
    items: str = ""
    q: str = ""
    way: str = ""


class MemoryQuery(QueryParameters):
    """The query of an item."""

    namespace: str
    key: str
    find: str = ""


class SessionsQuery(QueryParameters):
    """The query of the list of sessions."""

    q: str = ""
    cursor: str = ""


class SessionQuery(QueryParameters):
    """The query of a session."""

    session: str
    find: str = ""


def as_glob(text: str) -> str:
    """Return the glob for a text typed into a search for ids: a glob unchanged, another text anywhere in an id."""
    text = text.strip()
    if not text:
        return "*"
    return text if "*" in text or "?" in text else f"*{text}*"


def as_time(text: str, zone: tzinfo = UTC) -> datetime | None:
    """Parse a time from a form field, in the user's time zone unless it has one.

    Raises:
        Problem: The text is not a time.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise invalid("The time cannot be read; write it as 2026-11-22T03:12:00.") from None
    try:
        return (found.replace(tzinfo=zone) if found.tzinfo is None else found).astimezone(UTC)
    except OverflowError:
        raise invalid("The time is outside the calendar.") from None


def as_labels(text: str) -> tuple[str, ...]:
    """Parse the labels of a namespace in a link: a list in JSON.

    Raises:
        Problem: The text is no such list.
    """
    if not text:
        return ()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise invalid('The namespace cannot be read; write it as ["users", "ann"].')
    return tuple(found)


def from_labels(labels: tuple[str, ...]) -> str:
    """Format labels for `as_labels`."""
    return json.dumps(list(labels), ensure_ascii=False) if labels else ""
