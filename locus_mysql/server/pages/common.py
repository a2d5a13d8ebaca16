"""Code shared by several pages: the inspector of the caller's tenant, the selected family, and parsing of queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from starlette.requests import Request

from ...families.inspection.records import ThreadRow
from ...families.registry import families, find_family
from ..problems import existing, invalid, not_found
from ..services import BlockingInspector, read, stores_of

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


def inspector_of(request: Request) -> BlockingInspector:
    """Return the inspector of the caller's tenant."""
    return stores_of(request).inspector


def families_of(request: Request) -> list[str]:
    """Return the families of threads whose tables exist, in the order in which they are shown."""
    return [name for name in read(inspector_of(request).families()) if find_family(name).holds_threads]


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
    return existing(read(inspector_of(request).thread(family, thread_id)), "thread")


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
