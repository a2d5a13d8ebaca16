"""Code shared by all transfers: the `TransferReport`, and the protocols for exporting and importing a family.

Each family implements `Source` and `Target` in its module ``transfer.py``. The engine is in `locus_mysql.transfer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from .counting import counted
from .database import Database

#: Receives a message about a record that is not transferred exactly.
Notify: TypeAlias = Callable[[str], None]


@dataclass(slots=True)
class TransferReport:
    """The result of a transfer, or of its dry run.

    Attributes:
        noun: The singular noun for a record.
        action: The action on the records, as a participle.
        dry_run: Whether nothing was written.
        threads: Threads that were read; 0 if records do not belong to threads.
        copied: Records that were written, or would be.
        present: Records that the target already had, identical.
        left_out: Records that could not be read or stored.
        left_alone: Threads with newer checkpoints in the target, which were not changed.
        failed: Threads whose transfer failed.
        missing: Threads that were named and have no checkpoints in the source.
        verified: Records that were loaded on both sides and are identical.
        differing: Records, and orders of threads, that differ in the target.
        changed: Threads of the source that were created, deleted, or written to during the transfer; 1 if only the
            number of records changed. Run the transfer again.
        kinds: Number of records of each kind in the source, where there are several kinds.
        ids: Ids that records have in the target, by their ids in the source, where they differ.
        not_given: Descriptions of data that the source could not provide.
        notify: Receives a message about each record or thread that is not transferred exactly.
    """

    noun: str = "checkpoint"
    action: str = "copied"
    dry_run: bool = False
    threads: int = 0
    copied: int = 0
    present: int = 0
    left_out: int = 0
    left_alone: int = 0
    failed: int = 0
    missing: int = 0
    verified: int = 0
    differing: int = 0
    changed: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    not_given: set[str] = field(default_factory=set)
    notify: Notify = field(default=lambda _: None, repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Return whether the target has, or would have, everything that the source had at the end."""
        return not (self.left_out or self.left_alone or self.failed or self.missing or self.differing or self.changed)

    @property
    def records(self) -> int:
        """Return the number of records processed so far."""
        return self.copied + self.present + self.left_out + self.differing

    def leave_out(self, message: str) -> None:
        """Count a record that could not be read or stored."""
        self.left_out += 1
        self.notify(message)

    def differ(self, message: str) -> None:
        """Count a record that differs in the target."""
        self.differing += 1
        self.notify(message)

    def __str__(self) -> str:
        records = counted(self.copied, self.noun)
        if self.threads:
            begin = f"{counted(self.threads, 'thread')}: {records} {'to copy' if self.dry_run else self.action}"
        else:
            begin = f"{'To copy:' if self.dry_run else self.action.capitalize()} {records}"
        records_and_words = (
            (self.present, "already present"),
            (self.left_out, "left out"),
            (self.verified, "identical on both sides"),
            (self.differing, "different in the target"),
        )
        threads_and_words = (
            (self.left_alone, "left alone"),
            (self.failed, "failed"),
            (self.missing, "without checkpoints in the source"),
            (self.changed, "changed in the source meanwhile"),
        )
        noun = "thread" if self.threads else self.noun
        parts = [begin, *(f"{number:,} {words}" for number, words in records_and_words if number)]
        parts += [f"{counted(number, noun)} {words}" for number, words in threads_and_words if number]
        lines = [f"{', '.join(parts)}."]
        lines += [f"The source does not give {gap}." for gap in sorted(self.not_given)]
        return "\n".join(lines)


@dataclass(slots=True)
class RecordPage:
    """A page of records of a source.

    Args:
        records: The records; those of a `Source` are lines.
        last: Position of the last record that was read; None at the end of the source.
        damaged: Messages about records that could not be read.
    """

    records: list[Any] = field(default_factory=list)
    last: Any = None
    damaged: list[str] = field(default_factory=list)


class Source(Protocol):
    """Reads the records of a family as lines, in the order of their positions."""

    @property
    def head(self) -> bytes:
        """Return the first line."""

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """Return the position of the record in a line.

        Raises:
            InvalidInput: The line has none.
        """

    async def count(self, database: Database) -> int:
        """Return the number of records. Creates or checks the tables."""

    async def page(self, database: Database, after: Any, limit: int) -> RecordPage:
        """Return a page of lines after a position, or from the beginning."""


class Target(Protocol):
    """Writes records of a family."""

    def read(self, content: Mapping[str, Any]) -> Any:
        """Return the record in a line, checked.

        Raises:
            InvalidInput: It cannot be stored.
        """

    async def write(self, database: Database, records: Sequence[Any], report: TransferReport) -> None:
        """Write records that are missing, compare the others, and count both in the report."""

    async def finish(self, database: Database) -> None:
        """Write what is left after the last record."""
