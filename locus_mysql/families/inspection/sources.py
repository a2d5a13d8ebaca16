"""Filters of threads, cursors of pages, and hits of searches, for the lists of every family."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

from ...dialect.words import excerpt, scores
from ...errors import InvalidInput
from ...runtime.server_rows import as_sql_time
from .records import Hit

#: The message for a cursor of another list.
NO_CURSOR = "The cursor does not come from a page of this list. Begin at the first page."

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: The remaining work on rows that were read: a function without arguments that does no I/O. It takes time if there are
#: many rows, so it is called in a thread.
Deferred: TypeAlias = Callable[[], T]

#: The largest number of entries in a page.
PAGE_LIMIT = 1_000

#: Without an index, a search by metadata reads this many newest checkpoints of this many threads saved last.
RECENT_CHECKPOINTS, RECENT_THREADS = 20, 1_000

#: Limits of times in statements. Python supports times beyond those of the server; they are replaced by these.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


#: The types of the keys that identify a position in an order.
Key: TypeAlias = str | int | bool | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_MICROSECOND = timedelta(microseconds=1)

#: The numbers that a server compares without an error.
_NUMBERS = range(-(2**53), 2**53)


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """A filter of threads.

    Attributes:
        pattern: A glob of their ids.
        metadata: A pair that the metadata of their newest checkpoint has.
        min_bytes: Their smallest size.
        saved_after: They were last saved then or later.
        saved_before: They were last saved before.
    """

    pattern: str = "*"
    metadata: tuple[str, Any] | None = None
    min_bytes: int | None = None
    saved_after: datetime | None = None
    saved_before: datetime | None = None


def time_text(value: datetime, *, less: timedelta = timedelta(0)) -> str:
    """Return a time to compare rows with, as text in UTC.

    Args:
        value: The time.
        less: A duration to subtract from it.

    Raises:
        InvalidInput: It has no time zone.
    """
    if value.tzinfo is None:
        raise InvalidInput(f"The time {value.isoformat()} has no time zone. Give one, such as tzinfo=UTC.")
    return as_sql_time(min(max(value, _FIRST), _LAST) - less)


def hits_in(
    texts: Sequence[tuple[K, str]],
    words: Sequence[re.Pattern[str]],
    limit: int,
    hit: Callable[[K, str, float], Hit],
) -> list[Hit]:
    """Return the hits of texts that contain words, best first; of several texts with one key, that of the best.

    Args:
        texts: The texts with their keys.
        words: Patterns of the words.
        limit: The maximum number of hits.
        hit: Makes a hit from a key, the text around the first word, and the score.
    """
    matches = [[word.search(text) for word in words] for _, text in texts]
    best: dict[K, Hit] = {}
    for (key, text), found, score in zip(texts, matches, scores(matches), strict=True):
        if score > (best[key].score if key in best else 0):
            best[key] = hit(key, excerpt(text, next(match.start() for match in found if match)), score)
    return sorted(best.values(), key=lambda one: (one.score, one.created_at), reverse=True)[:limit]


def to_cursor(*keys: Key) -> str:
    """Return the cursor of a position in an order, which the values of its keys identify."""
    values = [(key - _EPOCH) // _MICROSECOND if isinstance(key, datetime) else key for key in keys]
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def from_cursor(cursor: str, *types: type) -> list[Any]:
    """Return the position of a cursor.

    Args:
        cursor: The cursor of a page.
        types: The type of each key, one of `Key`.

    Raises:
        InvalidInput: It is not a cursor of this kind of page.
    """
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
        if not isinstance(values, list):
            raise ValueError
        return [_key(value, kind) for value, kind in zip(values, types, strict=True)]
    except (ValueError, TypeError, RecursionError, OverflowError, AttributeError):
        raise InvalidInput(NO_CURSOR) from None


def _key(value: Any, kind: type) -> Any:
    sort = type(value)
    if sort is not (int if kind is datetime else kind) or (sort is int and value not in _NUMBERS):
        raise ValueError
    if kind is datetime:
        moment = _EPOCH + timedelta(microseconds=int(value))
        if moment.year < 1000:  # earlier ones the server does not support
            raise ValueError
        return moment
    if isinstance(value, str):
        value.encode()
    return value
