"""One attempt to copy a thread, with its checkpoints in the order of the source: `ThreadAttempt`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime

from ..runtime.transfer import TransferReport
from .thread_sides import (
    ANOTHER_TIME,
    ListedCheckpoint,
    LoadedCheckpoint,
    TargetThread,
    UnreadableCheckpoint,
)

#: Limits of one write: checkpoints, and bytes of their states.
MAX_WRITTEN, MAX_WRITTEN_BYTES = 64, 8_000_000


class ThreadAttempt:
    """One attempt to copy a thread.

    Checkpoints that the target has in the source's order are skipped. From the first missing or differing one on, all
    are written, so that their order is the source's.

    Args:
        thread_id: The thread.
        listed: Its checkpoints in the source, oldest first.
        stored: Its checkpoints in the target with their times, oldest first.
        copied: Ids of the checkpoints that earlier attempts wrote; those that this one writes are added.
        target: The thread in the target.
        dry_run: Whether nothing may be written.
    """

    def __init__(
        self,
        thread_id: str,
        listed: Sequence[ListedCheckpoint],
        stored: Mapping[str, datetime | None],
        copied: set[str],
        target: TargetThread,
        *,
        dry_run: bool,
    ) -> None:
        self.thread_id = thread_id
        self._listed = listed
        self._stored = stored
        self._copied = copied
        self._target = target
        self._dry_run = dry_run
        ids = {one.checkpoint_id for one in listed}
        self._order = [one for one in stored if one in ids]
        self._has_others = len(self._order) < len(stored)
        self._newest = next(reversed([*stored]), None)
        self._next = 0  # the position of the next checkpoint that may be skipped
        self._writing = False
        self._pending: list[LoadedCheckpoint] = []
        self._pending_bytes = 0
        self._messages: list[str] = []
        self.written = 0
        self.present = 0
        self.left_alone = False
        self.refused: set[str] = set()

    def pass_over_known(self) -> Sequence[ListedCheckpoint]:
        """Skip checkpoints with identical ids and times; return all that follow."""
        for number, one in enumerate(self._listed):
            if not self._is_next(one.checkpoint_id) or one.saved_at is None:
                return self._listed[number:]
            if self._stored[one.checkpoint_id] != one.saved_at:
                return self._listed[number:]
            self._pass_over(one.checkpoint_id)
        return ()

    async def write_all(self, loaded: AsyncGenerator[LoadedCheckpoint | UnreadableCheckpoint, None]) -> None:
        """Write the checkpoints of the source that were not skipped, unless the thread is left unchanged."""
        async with aclosing(loaded):
            async for one in loaded:
                await self._take(one)
                if self.left_alone:
                    return
        await self._flush()

    def count(self, report: TransferReport) -> None:
        """Add the counts of this attempt to a report."""
        report.copied += self.written
        report.present += self.present
        for message in self._messages:
            report.leave_out(message)

    async def _take(self, one: LoadedCheckpoint | UnreadableCheckpoint) -> None:
        if isinstance(one, UnreadableCheckpoint):
            self._leave_out(one.checkpoint_id, one.why)
            if self._is_next(one.checkpoint_id):
                self._next += 1
            return
        if self._is_next(one.checkpoint_id) and await self._is_same(one):
            self._pass_over(one.checkpoint_id)
            return
        if not self._writing and self._has_continued():
            self.left_alone = True
            return
        self._pending.append(one)
        if not self._writing and self._next < len(self._order):
            # If the target refuses this one, the following ones are in the right place and need not be written.
            await self._flush()
            self._writing = one.checkpoint_id not in self.refused
            return
        self._writing = True
        self._pending_bytes += one.size_bytes
        if len(self._pending) >= MAX_WRITTEN or self._pending_bytes >= MAX_WRITTEN_BYTES:
            await self._flush()

    async def _flush(self) -> None:
        """Write the pending checkpoints."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending:
            return
        wrong: dict[str, str] = {}
        if not self._dry_run:
            replaced = [one.checkpoint_id for one in pending if one.checkpoint_id in self._stored]
            wrong = await self._target.save(pending, replaced)
        for checkpoint_id, why in wrong.items():
            self._leave_out(checkpoint_id, why)
        done = {one.checkpoint_id for one in pending} - wrong.keys()
        self.written += len(done)
        self._copied |= done

    def _is_next(self, checkpoint_id: str) -> bool:
        """Return whether a checkpoint has the same position in the target as in the source."""
        return not self._writing and self._next < len(self._order) and self._order[self._next] == checkpoint_id

    def _pass_over(self, checkpoint_id: str) -> None:
        self._next += 1
        if checkpoint_id in self._copied:
            self.written += 1
        else:
            self.present += 1

    async def _is_same(self, one: LoadedCheckpoint) -> bool:
        """Return whether the target has an identical checkpoint, whatever time it recorded."""
        return await self._target.difference(one) in {None, ANOTHER_TIME}

    def _has_continued(self) -> bool:
        """Return whether the target has newer checkpoints of its own, after those that both sides have."""
        if not self._has_others:
            return False
        last = self._order[self._next - 1] if self._next else None
        return self._newest != last

    def _leave_out(self, checkpoint_id: str, why: str) -> None:
        self.refused.add(checkpoint_id)
        why = why.rstrip(".")
        self._messages.append(f"Checkpoint {checkpoint_id!r} of thread {self.thread_id!r} was left out: {why}.")
