"""What a copy did: `CopyReport`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...counting import counted


@dataclass(slots=True)
class CopyReport:
    """What a copy did, or would do.

    Attributes:
        dry_run: Whether nothing was written.
        threads: Threads that were looked at.
        copied: Checkpoints that were copied, or would be.
        present: Checkpoints that were there already.
        left_out: Checkpoints that could not be read, or not be kept.
        left_alone: Threads that went on in the target, and were left as they are.
        failed: Threads whose copying broke off.
        missing: Threads that were named, and have no checkpoints in the source.
        verified: Checkpoints that were loaded on both sides, and are the same.
        differing: Checkpoints, and orders of threads, that are not the same on both sides.
        changed: Threads that came to the source, or went, while it was copied; at least 1 if the number of its
            checkpoints changed. Run the copy again.
        not_given: What the source could not give, in words.
        not_kept: What the target could not keep, in words.
    """

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
    not_given: set[str] = field(default_factory=set)
    not_kept: set[str] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """Whether all that the source had at the end is in the target now, or would be."""
        return not (self.left_out or self.left_alone or self.failed or self.missing or self.differing or self.changed)

    def __str__(self) -> str:
        done = "to copy" if self.dry_run else "copied"
        parts = [f"{counted(self.threads, 'thread')}: {counted(self.copied, 'checkpoint')} {done}"]
        parts += [
            f"{number:,} {words}"
            for number, words in (
                (self.present, "there already"),
                (self.left_out, "left out"),
                (self.verified, "the same on both sides"),
                (self.differing, "not the same on both sides"),
            )
            if number
        ]
        parts += [
            f"{counted(number, 'thread')} {words}"
            for number, words in (
                (self.left_alone, "left alone"),
                (self.failed, "failed"),
                (self.missing, "without checkpoints in the source"),
                (self.changed, "changed in the source meanwhile"),
            )
            if number
        ]
        lines = [f"{', '.join(parts)}."]
        lines += _told("The source does not give", self.not_given)
        lines += _told("The target does not keep", self.not_kept)
        return "\n".join(lines)


def _told(begin: str, gaps: Iterable[str]) -> list[str]:
    return [f"{begin} {gap}." for gap in sorted(gaps)]
