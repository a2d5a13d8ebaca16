"""Copying threads from one side to the other: `ThreadCopy`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from ....errors import LocusMySQLError, SetupError, Unavailable, UsageError
from ....families.working.globs import matcher
from ...counting import counted
from .report import CopyReport
from .sides import (
    ANOTHER_TIME,
    CopySource,
    CopyTarget,
    CountsCheckpoints,
    Given,
    Listed,
    Present,
    TargetThread,
    Tell,
    ThreadChanged,
    Unreadable,
    size_of,
)

#: What is written at a time: at most so many checkpoints, and no more once their states take so many bytes.
WRITTEN_AT_ONCE, WRITTEN_BYTES = 64, 8_000_000

#: So many checkpoints of a thread that differ in the same way are named; the others are counted.
NAMED_ALIKE = 3

#: How often a thread is begun anew because somebody else wrote to it in the target.
_TRIES = 10

#: After so many threads in a row have failed, a side is taken to be away.
_FAILURES = 10


class GaveUp(LocusMySQLError):
    """So many threads failed one after another that the rest was not tried."""


class ThreadCopy:
    """Copies threads. May be repeated: what is there already is passed over, and what was copied in part is completed.

    A thread that has checkpoints of its own behind the copied ones in the target, and lacks some of the source, is left
    alone, because older states would become its newest.

    Args:
        source: Where from.
        target: Where to.
        threads: Only these; None means all.
        pattern: Only threads whose ids match this glob.
        at_once: How many threads are copied side by side.
        verify: Whether each checkpoint is loaded on both sides and compared, also what was there.
        dry_run: Only see what would be copied.
        tell: Told of what is not copied as it is.
        advance: Called after each thread, with what was done by then and about how many threads there are.
        report: Where what is done is noted.
    """

    def __init__(
        self,
        source: CopySource,
        target: CopyTarget,
        *,
        threads: Sequence[str] | None = None,
        pattern: str = "*",
        at_once: int = 4,
        verify: bool = False,
        dry_run: bool = False,
        tell: Tell = lambda _: None,
        advance: Callable[[CopyReport, int | None], None] = lambda *_: None,
        report: CopyReport | None = None,
    ) -> None:
        if at_once < 1:
            raise UsageError("at_once must be at least 1.")
        self.report = CopyReport() if report is None else report
        self.report.dry_run = dry_run
        self._source = source
        self._target = target
        self._named = None if threads is None else list(dict.fromkeys(threads))
        self._pattern = pattern
        self._at_once = at_once
        self._verify = verify
        self._tell = tell
        self._advance = advance
        self._total: int | None = None
        self._owners: dict[str, str] = {}
        # How many checkpoints the source had of each thread when it was copied.
        self._seen: dict[str, int] = {}
        self._failures = 0

    async def run(self) -> CopyReport:
        """Copy everything.

        Raises:
            LocusMySQLError: A side cannot be used. Run the copy again, and it goes on where it stopped.
        """
        await self._source.open()
        await self._target.open()
        self._total = len(self._named) if self._named is not None else await self._source.count(self._pattern)
        async with aclosing(self._threads()) as threads:
            await self._side_by_side(threads)
        if self._named is None:
            self.report.changed = await self._changed()
        self.report.not_given |= self._source.gaps
        if not self.report.dry_run:
            self.report.not_kept |= self._target.gaps
        return self.report

    async def _changed(self) -> int:
        """How many threads came to the source or went; 1 if none did, but it has more or fewer checkpoints."""
        if self.report.failed or not isinstance(self._source, CountsCheckpoints):
            return 0
        async with aclosing(self._threads()) as threads:
            now = {thread_id async for thread_id in threads}
        if changed := len(now ^ self._seen.keys()):
            return changed
        return int(await self._source.count_checkpoints(self._pattern) != sum(self._seen.values()))

    async def _threads(self) -> AsyncGenerator[str, None]:
        """The threads to copy."""
        matches = matcher(self._pattern)
        if self._named is not None:
            for thread_id in self._named:
                yield thread_id
            return
        async with aclosing(self._source.threads(self._pattern)) as threads:
            async for thread_id in threads:
                if matches(thread_id):
                    yield thread_id

    async def _side_by_side(self, threads: AsyncGenerator[str, None]) -> None:
        """Copy several threads at once. The first error that is not of a thread alone ends all of them."""
        turn = asyncio.Lock()

        async def work() -> None:
            while True:
                async with turn:
                    thread_id = await anext(threads, None)
                if thread_id is None:
                    return
                await self._copy_or_fail(thread_id)
                self._advance(self.report, self._total)

        workers = [asyncio.create_task(work()) for _ in range(self._at_once)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _copy_or_fail(self, thread_id: str) -> None:
        """Copy a thread; if that fails, say so and go on with others."""
        self.report.threads += 1
        self._seen[thread_id] = 0
        try:
            await self._copy(thread_id)
        except (SetupError, Unavailable):
            raise
        except Exception as error:  # whatever a checkpointer raises, other threads can be copied
            self.report.failed += 1
            self._failures += 1
            self._tell(f"Thread {thread_id!r} was not copied whole: {_words(error)}")
            if self._failures >= _FAILURES:
                raise GaveUp(
                    f"{_FAILURES} threads failed one after another, the last one with: {_words(error)} "
                    "Nothing more was tried; run the copy again when that is mended."
                ) from None
        else:
            self._failures = 0

    async def _copy(self, thread_id: str) -> None:
        place = self._target.place_of(thread_id)
        owner = thread_id if place is None else self._owners.setdefault(place, thread_id)
        if owner != thread_id:
            raise UsageError(f"It would share its place in the target with thread {owner!r}. Copy it under another id.")
        there = self._target.thread(thread_id)
        copied: set[str] = set()
        for _ in range(_TRIES):
            try:
                await self._copy_once(thread_id, there, copied)
                return
            except ThreadChanged:
                continue
        raise LocusMySQLError("it was written to in the target all the time; copy it again when it is quiet.")

    async def _copy_once(self, thread_id: str, there: TargetThread, copied: set[str]) -> None:
        listed = await self._source.listed(thread_id)
        self._seen[thread_id] = len(listed)
        if not listed:
            if self._named is not None:
                self.report.missing += 1
                self._tell(f"Thread {thread_id!r} has no checkpoints in the source.")
            return
        if self._target.keep is not None:
            listed = listed[-self._target.keep :]
        present = await there.look()
        attempt = _Attempt(thread_id, listed, present, copied, there, self.report.dry_run)
        unread = attempt.known()
        try:
            await self._take_all(attempt, unread)
        except ThreadChanged:
            raise
        except BaseException:
            self._count(attempt)
            raise
        self._count(attempt)
        if attempt.left_alone:
            self.report.left_alone += 1
            self._tell(f"Thread {thread_id!r} has checkpoints of its own in the target; it was left alone.")
            return
        if self.report.dry_run:
            return
        if attempt.written:
            for line in await there.finish(attempt.expected):
                self.report.differing += 1
                self._tell(line)
        if self._verify:
            await self._compare(thread_id, there, listed, attempt.refused)

    async def _take_all(self, attempt: _Attempt, unread: Sequence[Listed]) -> None:
        if not unread:
            return
        async with aclosing(self._source.given(attempt.thread_id, unread)) as given:
            async for one in given:
                await attempt.take(one)
                if attempt.left_alone:
                    return
        await attempt.flush()

    def _count(self, attempt: _Attempt) -> None:
        for line in attempt.told:
            self._tell(line)
        self.report.copied += attempt.written
        self.report.present += attempt.present
        self.report.left_out += attempt.left_out

    async def _compare(self, thread_id: str, there: TargetThread, listed: Sequence[Listed], refused: set[str]) -> None:
        """Load each checkpoint of a thread on both sides."""
        present = await there.look()
        wanted = [one for one in listed if one.checkpoint_id not in refused]
        ids = [one.checkpoint_id for one in wanted]
        order = [one for one in present.times if one in {*ids}]
        if order != [one for one in ids if one in present.times]:
            self.report.differing += 1
            self._tell(f"Thread {thread_id!r} is not in the source's order in the target.")
        differing: Counter[str] = Counter()
        async with aclosing(self._source.given(thread_id, wanted)) as given:
            async for one in given:
                why = one.why if isinstance(one, Unreadable) else await there.difference(one)
                if why is None:
                    self.report.verified += 1
                    continue
                self.report.differing += 1
                differing[why] += 1
                if differing[why] <= NAMED_ALIKE:
                    self._tell(f"Checkpoint {one.checkpoint_id!r} of thread {thread_id!r} differs: {why}.")
        for why, count in differing.items():
            if count > NAMED_ALIKE:
                self._tell(
                    f"{counted(count - NAMED_ALIKE, 'more checkpoint')} of thread {thread_id!r} likewise: {why}."
                )


class _Attempt:
    """One try to copy a thread.

    What is there in the source's order is passed over. From the first checkpoint on that is missing or differs, all are
    written, so that their order is the source's.
    """

    def __init__(
        self,
        thread_id: str,
        listed: Sequence[Listed],
        present: Present,
        copied: set[str],
        there: TargetThread,
        dry_run: bool,
    ) -> None:
        self.thread_id = thread_id
        self._listed = listed
        self._copied = copied
        self._there = there
        self._dry_run = dry_run
        self._times = present.times
        self._ids = {one.checkpoint_id for one in listed}
        self._order = [one for one in present.times if one in self._ids]
        self._has_others = len(self._order) < len(present.times)
        self._next = 0
        self._writing = False
        self._waiting: list[Given] = []
        self._waiting_bytes = 0
        self.written = 0
        self.present = 0
        self.left_out = 0
        self.left_alone = False
        self.refused: set[str] = set()
        self.told: list[str] = []

    @property
    def expected(self) -> list[str]:
        """The ids that should be there now, oldest first."""
        return [one.checkpoint_id for one in self._listed if one.checkpoint_id not in self.refused]

    def known(self) -> Sequence[Listed]:
        """Pass over the checkpoints that are there for certain, by their ids and times; returns all that follow."""
        for number, one in enumerate(self._listed):
            if not self._is_next(one.checkpoint_id) or one.saved_at is None:
                return self._listed[number:]
            if self._times[one.checkpoint_id] != one.saved_at:
                return self._listed[number:]
            self._pass_over(one.checkpoint_id)
        return ()

    async def take(self, one: Given | Unreadable) -> None:
        """Take the next checkpoint of the source."""
        if isinstance(one, Unreadable):
            self._leave_out(one.checkpoint_id, one.why)
            if self._is_next(one.checkpoint_id):
                self._next += 1
            return
        if self._is_next(one.checkpoint_id) and await self._is_same(one):
            self._pass_over(one.checkpoint_id)
            return
        if not self._writing and self._goes_on():
            self.left_alone = True
            return
        self._waiting.append(one)
        if not self._writing and self._next < len(self._order):
            # If the target refuses it, what follows is in its place, and need not be written.
            await self.flush()
            self._writing = one.checkpoint_id not in self.refused
            return
        self._writing = True
        self._waiting_bytes += size_of(one.state)
        if len(self._waiting) >= WRITTEN_AT_ONCE or self._waiting_bytes >= WRITTEN_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        wrong: dict[str, str] = {}
        if not self._dry_run:
            replaced = [one.checkpoint_id for one in waiting if one.checkpoint_id in self._times]
            wrong = await self._there.put(waiting, replaced)
        for checkpoint_id, why in wrong.items():
            self._leave_out(checkpoint_id, why)
        done = {one.checkpoint_id for one in waiting} - wrong.keys()
        self.written += len(done)
        self._copied |= done

    def _is_next(self, checkpoint_id: str) -> bool:
        """Whether it stands in the target where it stands in the source."""
        return not self._writing and self._next < len(self._order) and self._order[self._next] == checkpoint_id

    def _pass_over(self, checkpoint_id: str) -> None:
        self._next += 1
        if checkpoint_id in self._copied:
            self.written += 1
        else:
            self.present += 1

    async def _is_same(self, one: Given) -> bool:
        """Whether the target has this very checkpoint. That it noted another time says nothing."""
        difference = await self._there.difference(one)
        return difference in {None, ANOTHER_TIME}

    def _goes_on(self) -> bool:
        """Whether the thread went on in the target, behind what is the same on both sides."""
        if not self._has_others:
            return False
        last = self._order[self._next - 1] if self._next else None
        return next(reversed(self._times), None) != last

    def _leave_out(self, checkpoint_id: str, why: str) -> None:
        self.left_out += 1
        self.refused.add(checkpoint_id)
        why = why.rstrip(".")
        self.told.append(f"Checkpoint {checkpoint_id!r} of thread {self.thread_id!r} was left out: {why}.")


def _words(error: Exception) -> str:
    """What an error says, with its kind if that is not this package's."""
    words = str(error).strip()[:500]
    if isinstance(error, LocusMySQLError):
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
