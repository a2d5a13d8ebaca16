"""Copies of threads, whose checkpoints keep the order of the source: `copy_in_order`."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime

from ....errors import LocusMySQLError, SetupError, Unavailable
from ....families.working.globs import matcher
from ....runtime.counting import counted
from ....runtime.transfer import TransferReport
from ....transfer.engine import Advance, UnitSource, UnitTarget, transfer
from .sources import AgentCheckpoint, CopySource, ListedCheckpoint, UnreadableCheckpoint
from .tables import ANOTHER_TIME, TablesTarget, TablesThread, ThreadChanged

#: Maximum number of checkpoints of a thread, with the same difference, that are named; others are only counted.
NAMED_ALIKE = 3

#: Limits of one write: checkpoints, and bytes of their states.
MAX_WRITTEN, MAX_WRITTEN_BYTES = 64, 8_000_000

#: Maximum number of restarts of a thread because another process wrote to it in the target.
_TRIES = 10

#: After this number of consecutive failed threads, a side is considered unavailable.
_FAILURES = 10


class GaveUp(LocusMySQLError):
    """Many consecutive threads failed, and the rest was not tried."""


async def copy_in_order(
    source: CopySource,
    target: TablesTarget,
    report: TransferReport,
    *,
    threads: Sequence[str] | None = None,
    pattern: str = "*",
    at_once: int = 4,
    verify: bool = False,
    advance: Advance = lambda *_: None,
) -> TransferReport:
    """Copy threads. May be repeated: present checkpoints are skipped, and partially copied threads are completed.

    A thread that has newer checkpoints of its own in the target, and lacks some of the source, is left unchanged,
    because older states would become its newest.

    Args:
        source: The source.
        target: The target.
        report: Filled during the copy. If its ``dry_run`` is true, nothing is written.
        threads: Ids of the threads to copy; None means all.
        pattern: Only threads whose ids match this glob.
        at_once: Number of threads that are copied concurrently.
        verify: Whether each checkpoint is loaded on both sides and compared, also those that were present.
        advance: Called after each thread.

    Raises:
        LocusMySQLError: A side cannot be used. Run the copy again: it continues.
    """
    units = ThreadUnits(source, threads, pattern)
    writer = OrderedThreads(units, target, verify=verify)
    return await transfer(units, writer, report, at_once=at_once, advance=advance)


class ThreadUnits(UnitSource[str]):
    """Threads of a source as units of the engine.

    Args:
        source: The source.
        threads: Ids of the threads to copy; None means all.
        pattern: Only threads whose ids match this glob.
    """

    def __init__(self, source: CopySource, threads: Sequence[str] | None, pattern: str) -> None:
        self.source = source
        self.named = None if threads is None else list(dict.fromkeys(threads))
        self.seen: dict[str, int] = {}
        self.any_failed = False
        self._pattern = pattern

    async def open(self) -> int | None:
        """Open the source; return about how many threads there are."""
        await self.source.open()
        return len(self.named) if self.named is not None else await self.source.count(self._pattern)

    async def units(self) -> AsyncGenerator[str, None]:
        """List the ids of the threads to copy."""
        if self.named is not None:
            for thread_id in self.named:
                yield thread_id
            return
        matches = matcher(self._pattern)
        async with aclosing(self.source.threads(self._pattern)) as threads:
            async for thread_id in threads:
                if matches(thread_id):
                    yield thread_id

    async def changed(self) -> int:
        """Return how many threads changed since they were read, if all were selected and none failed."""
        self.gaps = self.source.gaps
        if self.named is not None or self.any_failed:
            return 0
        return await self.source.changed(self._pattern, self.seen)


class OrderedThreads(UnitTarget[str]):
    """Writes threads to a target, with their checkpoints in the source's order.

    Args:
        units: The threads of the source.
        target: The target.
        verify: Whether each checkpoint is loaded on both sides and compared.
    """

    def __init__(self, units: ThreadUnits, target: TablesTarget, *, verify: bool) -> None:
        self._units = units
        self._source = units.source
        self._target = target
        self._verify = verify
        self._failures = 0

    async def open(self) -> None:
        """Open the target."""
        await self._target.open()

    async def write(self, thread_id: str, report: TransferReport) -> None:
        """Copy a thread. If that fails, report it, so that others are copied."""
        report.threads += 1
        self._units.seen[thread_id] = 0
        try:
            await self._copy(thread_id, report)
        except (SetupError, Unavailable):
            raise
        except Exception as error:  # whatever a checkpointer raises, other threads can be copied
            self._units.any_failed = True
            report.failed += 1
            report.notify(f"Thread {thread_id!r} was not copied completely: {_described(error)}")
            self._failures += 1
            if self._failures >= _FAILURES:
                raise GaveUp(
                    f"{_FAILURES} threads failed one after another, the last one with: {_described(error)} "
                    "The other threads were not tried. Run the copy again after fixing that."
                ) from None
        else:
            self._failures = 0

    async def _copy(self, thread_id: str, report: TransferReport) -> None:
        thread = self._target.thread(thread_id)
        copied: set[str] = set()
        for _ in range(_TRIES):
            try:
                return await self._attempt(thread_id, thread, copied, report)
            except ThreadChanged:
                continue
        raise LocusMySQLError("It was written to in the target all the time. Copy it again when it is quiet.")

    async def _attempt(self, thread_id: str, thread: TablesThread, copied: set[str], report: TransferReport) -> None:
        listed = await self._source.checkpoints(thread_id)
        self._units.seen[thread_id] = len(listed)
        if not listed:
            if self._units.named is not None:
                report.missing += 1
                report.notify(f"Thread {thread_id!r} has no checkpoints in the source.")
            return
        if self._target.keep is not None:
            listed = listed[-self._target.keep :]
        stored = await thread.checkpoints()
        attempt = ThreadAttempt(thread_id, listed, stored, copied, thread, dry_run=report.dry_run)
        unknown = attempt.pass_over_known()
        try:
            if unknown:
                await attempt.write_all(self._source.load(thread_id, unknown))
        except ThreadChanged:
            raise
        except BaseException:
            attempt.count(report)
            raise
        attempt.count(report)
        if attempt.left_alone:
            report.left_alone += 1
            report.notify(f"Thread {thread_id!r} has checkpoints of its own in the target; it was left alone.")
        elif self._verify and not report.dry_run:
            wanted = [one for one in listed if one.checkpoint_id not in attempt.refused]
            await self._compare(thread_id, thread, wanted, report)

    async def _compare(
        self, thread_id: str, thread: TablesThread, wanted: Sequence[ListedCheckpoint], report: TransferReport
    ) -> None:
        """Load each checkpoint of a thread on both sides."""
        stored = await thread.checkpoints()
        ids = {one.checkpoint_id for one in wanted}
        order = [one for one in stored if one in ids]
        if order != [one.checkpoint_id for one in wanted if one.checkpoint_id in stored]:
            report.differ(f"Thread {thread_id!r} does not have the source's order in the target.")
        differing: Counter[str] = Counter()
        async with aclosing(self._source.load(thread_id, wanted)) as loaded:
            async for one in loaded:
                why = one.why if isinstance(one, UnreadableCheckpoint) else await thread.difference(one)
                if why is None:
                    report.verified += 1
                    continue
                report.differing += 1
                differing[why] += 1
                if differing[why] <= NAMED_ALIKE:
                    report.notify(f"Checkpoint {one.checkpoint_id!r} of thread {thread_id!r} differs: {why}.")
        for why, count in differing.items():
            if count > NAMED_ALIKE:
                more = counted(count - NAMED_ALIKE, "more checkpoint")
                report.notify(f"{more} of thread {thread_id!r} likewise: {why}.")


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
        target: TablesThread,
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
        self._pending: list[AgentCheckpoint] = []
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

    async def write_all(self, loaded: AsyncGenerator[AgentCheckpoint | UnreadableCheckpoint, None]) -> None:
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

    async def _take(self, one: AgentCheckpoint | UnreadableCheckpoint) -> None:
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

    async def _is_same(self, one: AgentCheckpoint) -> bool:
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


def _described(error: Exception) -> str:
    """Return an error's message, with its class if it is not one of this package's."""
    words = str(error).strip()[:500]
    if isinstance(error, LocusMySQLError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
