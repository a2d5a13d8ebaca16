"""The protocols of a family that holds threads, `ThreadSource` and `ThreadChanges`; and cursors of pages."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias, TypeVar

from ...dialect import Query, Schema
from ...dialect.inspection import ThreadMarker
from ...dialect.words import excerpt, scores
from ...engine.operation import Operation
from ...errors import InvalidInput
from ...runtime.server_times import as_sql_time
from .records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadPreview,
    ThreadRow,
    Turn,
)

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


class ThreadSource(Protocol):
    """Reads the threads of one family and tenant. Each method but `markers` is an operation; see `Inspector`."""

    @property
    def family(self) -> str:
        """The family's name."""

    @property
    def schema(self) -> Schema:
        """Its tables."""

    @property
    def turns_at_once(self) -> int:
        """The number of turns that a page reads to find when each message was first saved."""

    def threads(self, wanted: ThreadFilter, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """Return a page of threads, newest first."""

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """Return a thread; None if it does not exist."""

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """Return a page of a thread's checkpoints, newest first."""

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Deferred[StateView] | None]:
        """Return a state, without its messages.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the newest.
            namespace: The checkpoint namespace of a graph.
            at: Only what was saved by then.
            partly: Whether long lists may be `Items`, whose items are decoded on access.
        """

    def previews(self, thread_ids: Sequence[str]) -> Operation[Deferred[Mapping[str, ThreadPreview]]]:
        """Return status, first and last message of threads, for a list, in one or two round trips.

        Reads a bounded number of bytes of each thread, and no whole state. What lies beyond is missing in the preview.
        """

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Deferred[list[Turn]]]:
        """Return confidence, tokens and iterations of the newest states, oldest first."""

    def search(self, query: str, limit: int) -> Operation[Deferred[list[Hit]]]:
        """Return checkpoints whose messages contain words."""

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """Return checkpoints by their metadata."""

    def statistics(self) -> Operation[Statistics]:
        """Return numbers of threads and checkpoints, sizes and growth."""

    def markers(self, thread_ids: Sequence[str]) -> Query[ThreadMarker]:
        """Return a query of those of these threads that exist, each with a value that every write changes."""


class ThreadChanges(Protocol):
    """Changes the threads of one family and tenant, for the inspector and ``rm``. Each method is an operation."""

    @property
    def can_branch(self) -> bool:
        """Whether a new thread can begin with a single state of another one."""

    @property
    def has_history(self) -> bool:
        """Whether threads have older checkpoints, which can be deleted one by one."""

    def delete(self, thread_id: str, checkpoint_id: str | None, namespace: str) -> Operation[bool]:
        """Delete a thread or one of its checkpoints; False if it does not exist.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the whole thread.
            namespace: The checkpoint's namespace, of a graph.
        """

    def copy(self, source: str, target: str) -> Operation[bool]:
        """Copy a whole thread; False if it does not exist.

        Raises:
            ThreadExists: The target has checkpoints.
        """

    def branch(self, source: str, checkpoint_id: str, target: str) -> Operation[bool]:
        """Save a state of a thread as the first of a new one; False if it does not exist.

        Raises:
            ThreadExists: The target has checkpoints.
            InvalidInput: The family cannot branch.
        """


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
