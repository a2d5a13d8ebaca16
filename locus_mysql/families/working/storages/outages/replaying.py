"""Writing what waited to a primary that is back, as generators, which do no I/O."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import cast

from .....engine.logs import WORKING
from .....errors import UsageError
from ...calls import (
    RECOGNISED_US,
    Call,
    CompareAndSet,
    End,
    Remove,
    Reply,
    StampMoved,
    Touch,
)
from .journal import Part
from .merging import Look, Ours, as_call, leave_out_doubtful, merge
from .mirror import Mirror
from .session_state import Lines, SessionState
from .steps import AWAY, Ask, Settings, Steps

#: What is replayed takes longer than a call; the storage has just answered then.
REPLAY_S = 10.0

#: For so long a part is surely recognised that is sent again, though clocks run differently, and sending takes time.
SURELY_RECOGNISED_US = RECOGNISED_US * 14 // 15

#: So often a part is merged anew because others went on writing.
TRIES = 20


class Replaying:
    """Replays sessions.

    Args:
        settings: The options.
        mirror: What is known of sessions.
        lines: The sessions in use.
    """

    def __init__(self, settings: Settings, mirror: Mirror, lines: Lines) -> None:
        self.settings, self.mirror, self.lines = settings, mirror, lines

    def replay(self, line: SessionState, failed: Callable[[Exception], None]) -> Steps[bool]:
        """Write what waited to the primary; whether it is all there, and the primary serves the session again.

        Args:
            line: The session; the caller has its turn.
            failed: Told if the primary does not answer.
        """
        lost: list[str] = []
        stamp = 0
        try:
            while line.journal.parts:
                stamp = yield from self._replay_part(line, line.journal.parts[0], lost)
        except (*AWAY, StampMoved) as error:
            if not isinstance(error, StampMoved):
                failed(error)
            return False
        finally:
            self.lines.count(line)
            self._report(line, lost)
        yield from self._discard(line)
        line.online(stamp)
        self.lines.count(line)
        return True

    def _replay_part(self, line: SessionState, part: Part, lost: list[str]) -> Steps[int]:
        """Write a part; the session's stamp then.

        Raises:
            StampMoved: Others wrote each time that it was tried.
        """
        like = cast(Call, line.like)
        for _ in range(TRIES):
            asked = Look.commands(part, line.ours)
            look = Look.of(asked, (yield Ask("primary", Call("replay", line.address, asked), self.settings.timeout_s)))
            if not look.stamp and line.ours.seen and not line.told:
                line.told = True
                lost.append("the session had ended or expired meanwhile; what was written since begins it anew")
            relied, again = look.stamp, bool(part.sent)
            if again:  # if it was carried out, its token is recognised, whatever it relies on
                relied = look.stamp if line.ours.version(look.stamp) else line.ours.seen
            else:
                merged = merge(part, look, line.ours, now_us())
                part.lost, part.sent = merged.lost, tuple(merged.commands)
                if merged.lost_keys:
                    self.mirror.do(like, Remove(tuple(merged.lost_keys)))
                if not part.sent and part.risky:  # what may still arrive finds its token used
                    part.sent = (Touch(),)
            commands = part.sent
            try:
                reply = Reply((), look.stamp)
                if commands:
                    part.sent_us = part.sent_us or now_us()
                    part.risky = True
                    replay = as_call(commands, like, part.token, relied)
                    reply = yield Ask("primary", replay, max(REPLAY_S, self.settings.timeout_s))
            except StampMoved:
                part.sent = ()  # it was not carried out, unless its token is forgotten
                if again and now_us() - part.sent_us > SURELY_RECOGNISED_US:
                    lost += leave_out_doubtful(part, look, line.ours)
                continue
            except UsageError as refused:
                self._refused(line, part, refused, lost)
                return look.stamp
            if End() in commands:
                line.ours = Ours()
            elif again:
                line.ours.may_be(part, reply)
                if isinstance(commands[0], CompareAndSet) and reply.results[0] is False:
                    lost.append(f"variable {commands[0].variable.key!r}: it was not what compare_and_set expected")
            elif reply.stamp > look.stamp:
                line.ours.spans.append((look.stamp, reply.stamp))
            lost += part.lost
            line.journal.done(part)
            return reply.stamp
        raise StampMoved

    def _refused(self, line: SessionState, part: Part, refused: UsageError, lost: list[str]) -> None:
        """The primary refuses a part: its entries are tried one by one, and what is refused then is reported."""
        if len(part.entries) > 1:
            line.journal.split(part)
            return
        entry = part.entries[0]
        what = type(entry.command).__name__ if entry.key is None else f"variable {entry.key!r}"
        lost.append(f"{what}: refused with {type(refused).__name__}")
        line.journal.done(part)

    def _report(self, line: SessionState, lost: list[str]) -> None:
        if not lost:
            return
        line.lost.extend(lost)
        WORKING.warning(
            "%d things that were written while the primary storage of working memory was away were not written to it, "
            "as others had written meanwhile; stats().lost of the session tells which",
            len(lost),
        )
        if self.settings.on_lost is not None:
            try:
                self.settings.on_lost(line.address, tuple(lost))
            except Exception:
                WORKING.warning("on_lost failed", exc_info=True)

    def _discard(self, line: SessionState) -> Steps[None]:
        """Remove the session from the fallback, where it would be old in the next outage, unless others use it."""
        if line.stood_in:
            ending = Call("discard", line.address, (End(),), token=os.urandom(16), if_stamp=line.stood_in)
            with contextlib.suppress(StampMoved, *AWAY):
                yield Ask("fallback", ending)


def now_us() -> int:
    """The time, by this process's clock of entries."""
    return time.monotonic_ns() // 1_000
