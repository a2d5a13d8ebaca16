"""What the query of each page may hold. Names that nobody knows are left alone, as chats and mail add theirs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict

from ..problems import invalid


class Query(BaseModel):
    """A query in which every name may be missing."""

    model_config = ConfigDict(extra="ignore")


class StaticQuery(Query):
    """Of a file."""

    v: str = ""


class LoginQuery(Query):
    """Of the form to sign in."""

    next: str = ""


class ThreadsQuery(Query):
    """Of the list of threads."""

    family: str = ""
    q: str = ""
    key: str = ""
    value: str = ""
    size: str = ""
    age: str = ""
    cursor: str = ""


class ThreadQuery(Query):
    """Of a thread, and of a state of it."""

    family: str = "agents"
    thread: str
    checkpoint: str = ""
    namespace: str = ""
    at: str = ""
    find: str = ""
    words: str = ""
    first: int = 0
    cursor: str = ""


class EventsQuery(Query):
    """Of the news of a thread."""

    family: str = "agents"
    thread: str
    seen: str = ""


class DifferenceQuery(Query):
    """Of what changed."""

    family: str = "agents"
    thread: str
    before: str
    after: str
    namespace: str = ""
    all: bool = False


class SearchQuery(Query):
    """Of a search for words."""

    family: str = ""
    q: str = ""


class MetadataQuery(Query):
    """Of a search for metadata."""

    family: str = ""
    key: str = ""
    value: str = ""


class FamilyQuery(Query):
    """Of what is told of a family."""

    family: str = ""


class MemoriesQuery(Query):
    """Of long-term memory."""

    namespace: str = ""
    cursor: str = ""
    items: str = ""
    q: str = ""
    way: str = ""


class MemoryQuery(Query):
    """Of an item."""

    namespace: str
    key: str
    find: str = ""


class SessionsQuery(Query):
    """Of the list of sessions."""

    q: str = ""
    cursor: str = ""


class SessionQuery(Query):
    """Of a session."""

    session: str
    find: str = ""


#: Sizes and ages that can be chosen: what stands in the query, what it means, what is shown.
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


def as_glob(text: str) -> str:
    """What is typed into a search for ids: a glob as it is, another text anywhere in an id."""
    text = text.strip()
    if not text:
        return "*"
    return text if "*" in text or "?" in text else f"*{text}*"


def as_value(text: str) -> Any:
    """A value of metadata, as it is typed: JSON, or else a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_time(text: str) -> datetime | None:
    """A moment as a field of a form has it, in UTC.

    Raises:
        Problem: It is none.
    """
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise invalid("The time cannot be read; write it as 2026-11-22T03:12:00, in UTC.") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def as_labels(text: str) -> tuple[str, ...]:
    """The labels of a namespace, as a link has them: a list in JSON.

    Raises:
        Problem: They are none.
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
    """What `as_labels` reads."""
    return json.dumps(list(labels), ensure_ascii=False) if labels else ""
