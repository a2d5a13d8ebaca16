"""The page with the differences of two states: unchanged messages and text are folded, times are left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...families.inspection.records import FieldChange, MessageChange
from ...inspection.differences import Piece, text_changes
from ..routing import Endpoints, LenientQuery
from ..services import read
from .common import family_of, inspector_of, thread_of
from .markdown import Formatter
from .rendering import page
from .thread import CALLS, SHOWN, UNFOLDED

#: Number of messages in a difference, and of messages shown before and after a changed one.
CHANGES, AROUND = 500, 1

#: Paths of fields that contain a time.
_TIME = re.compile(r"(?:^|[._])(?:at|ts|time|timestamp|date)$")

#: Characters of texts that a page compares word by word; further texts are shown whole. And the shortest such text.
MOST_COMPARED, LEAST_COMPARED = 200_000, 40


PAGES = Endpoints(base=LenientQuery)


@PAGES.add("GET", "/inspect/difference")
def difference_page(
    request: Request,
    thread: str,
    before: str,
    after: str,
    family: str = "agents",
    namespace: str = "",
    all: bool = False,
    times: bool = False,
) -> Response:
    """The differences of two states."""
    inspector = inspector_of(request)
    row = thread_of(request, family_of(family), thread)
    found = read(inspector.differences(family, thread, before, after, namespace=namespace))
    comparing = _Comparing()
    fields = [change for change in found.fields if times or not is_of_times(change)]
    shown = list(found.messages if all else around_changes(found.messages))
    return page(
        request,
        "difference.html",
        section="threads",
        family=family,
        thread=row,
        found=found,
        counts=Counter(one.change for one in found.messages),
        fields=[(change, comparing.text(change.before, change.after)) for change in fields],
        times=len(found.fields) - len(fields),
        messages=[(one, None if isinstance(one, int) else comparing.message(one)) for one in shown[:CHANGES]],
        more=len(shown) > CHANGES,
        formatted=Formatter(),
        shown_characters=SHOWN,
        unfolded_characters=UNFOLDED,
        most_calls=CALLS,
    )


def around_changes(changes: Sequence[MessageChange]) -> Iterator[MessageChange | int]:
    """Return changed messages and their neighbours, with the number of messages left out between them."""
    near = {
        other for at, one in enumerate(changes) if one.change != "same" for other in range(at - AROUND, at + AROUND + 1)
    }
    skipped = 0
    for at, one in enumerate(changes):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield skipped
            skipped = 0
        yield one
    if skipped:
        yield skipped


def is_of_times(change: FieldChange) -> bool:
    """Return whether a change is only that of a time, such as the time of the last save."""
    values = [value for value in (change.before, change.after) if value is not None]
    named = _TIME.search(change.path) is not None
    return change.change == "changed" and all(_is_time(value) or (named and _is_number(value)) for value in values)


def _is_time(value: Any) -> bool:
    if not isinstance(value, str) or not 19 <= len(value) <= 40:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Comparing:
    """Compares texts word by word, as long as the page may."""

    def __init__(self) -> None:
        self._left = MOST_COMPARED

    def message(self, change: MessageChange) -> Sequence[Piece] | None:
        """Return the changes of a message's text; None if its text is not all that changed."""
        before, after = change.before, change.after
        if before is None or after is None or change.change != "changed" or before.tool_calls != after.tool_calls:
            return None
        return self.text(before.text, after.text)

    def text(self, before: Any, after: Any) -> Sequence[Piece] | None:
        """Return the changes of a text; None if it is shown whole: anything else, and short texts."""
        if not (isinstance(before, str) and isinstance(after, str)):
            return None
        if min(len(before), len(after)) < LEAST_COMPARED or len(before) + len(after) > self._left:
            return None
        self._left -= len(before) + len(after)
        return text_changes(before, after)
