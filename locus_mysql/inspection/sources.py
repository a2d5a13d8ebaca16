"""What a family of threads must offer, so that the inspector can show it: `ThreadSource`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias, TypeVar

from ..dialect import Schema, Statement
from ..engine.operation import Operation
from ..errors import InvalidInput
from ..families.checkpoints.rows import as_sql_time
from .records import (
    CheckpointRow,
    Hit,
    Page,
    StateView,
    Statistics,
    Tagged,
    ThreadFamily,
    ThreadRow,
    Turn,
)

T = TypeVar("T")

#: What is left to do with what was read: a function without arguments that does no I/O. It takes a while where much was
#: read, so it is called where nobody waits for it.
Made: TypeAlias = Callable[[], T]

#: Entries of a page, at most.
PAGE_LIMIT = 1_000

#: Where no index helps, checkpoints are looked for among so many newest ones of so many threads saved last.
LATELY_CHECKPOINTS, LATELY_THREADS = 20, 1_000

#: A time from before or after is as good as these: the server knows fewer times than Python.
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which threads a page is to hold.

    Attributes:
        pattern: A glob of their ids.
        metadata: A pair that the metadata of their newest checkpoint has.
        min_bytes: What they take at least.
        saved_after: They were last saved then or later.
        saved_before: They were last saved before.
    """

    pattern: str = "*"
    metadata: tuple[str, Any] | None = None
    min_bytes: int | None = None
    saved_after: datetime | None = None
    saved_before: datetime | None = None


def time_text(value: datetime, *, less: timedelta = timedelta(0)) -> str:
    """A time that rows are compared with, as text in UTC.

    Args:
        value: The time.
        less: So much earlier.

    Raises:
        InvalidInput: It has no time zone.
    """
    if value.tzinfo is None:
        raise InvalidInput(f"The time {value.isoformat()} has no time zone. Give one, such as tzinfo=UTC.")
    return as_sql_time(min(max(value, _FIRST), _LAST) - less)


class ThreadSource(Protocol):
    """The threads of one family, of one tenant. Each method but `markers` is an operation; see `Inspector`."""

    @property
    def family(self) -> ThreadFamily:
        """Which family."""

    @property
    def schema(self) -> Schema:
        """Its tables."""

    def threads(self, wanted: Wanted, limit: int, cursor: str | None) -> Operation[Page[ThreadRow]]:
        """A page of threads, newest first."""

    def thread(self, thread_id: str) -> Operation[ThreadRow | None]:
        """One thread."""

    def history(
        self, thread_id: str, limit: int, cursor: str | None, at: datetime | None
    ) -> Operation[Page[CheckpointRow]]:
        """A page of a thread's checkpoints, newest first."""

    def state(
        self, thread_id: str, checkpoint_id: str | None, namespace: str, at: datetime | None, *, partly: bool = False
    ) -> Operation[Made[StateView] | None]:
        """A state, in which no messages are looked for yet.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the newest.
            namespace: The checkpoint namespace of a graph.
            at: Only what was saved by then.
            partly: Whether long lists may be given as `Items`, which are read when they are asked for.
        """

    def turns(self, thread_id: str, limit: int, at: datetime | None) -> Operation[Made[list[Turn]]]:
        """What the newest states say in numbers, oldest first."""

    def search(self, query: str, limit: int) -> Operation[Made[list[Hit]]]:
        """Where words were said."""

    def by_metadata(self, key: str, value: Any, limit: int) -> Operation[list[Tagged]]:
        """Checkpoints by their metadata."""

    def statistics(self) -> Operation[Statistics]:
        """How much there is."""

    def markers(self, thread_ids: Sequence[str]) -> Statement:
        """Brings the id of each of these threads that is there, and what is another after every write to it."""
