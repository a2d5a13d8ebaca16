"""The branches of a transcript: which of its items each one has. No I/O.

All items of a session are in one transcript. A branch is a list of ranges of their seqs, so branches share items, and
no item is copied. The ranges are the transcript's state; a transcript without a state has only the branch ``main``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from ...errors import CorruptCheckpoint
from .records import SeqRange, Transcript

#: The branch that every session has.
MAIN = "main"

#: The format of the state.
FORMAT = 1

Ranges: TypeAlias = tuple[tuple[int, int], ...]


class Pointer(NamedTuple):
    """The branch that a session object continues.

    Args:
        branch_id: The branch.
        generation: That of the session when the branch was chosen; see `Branches`.
    """

    branch_id: str = MAIN
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch other than ``main``.

    Args:
        ranges: The seqs of its items. Without any, it is deleted, or has no items yet; its id stays reserved.
        created_at: When it was created.
    """

    ranges: Ranges
    created_at: str


@dataclass(frozen=True, slots=True)
class Branches:
    """The branches of a session.

    Args:
        generation: The revision at which the first branch was created or the session was last cleared; 0 without
            branches. Session objects of another generation continue ``main``.
        main: The seqs of the items of ``main``, up to ``last``.
        last: All items with later seqs belong to ``main``, so adding items to it does not change this state.
        others: The other branches by their ids.
    """

    generation: int = 0
    main: Ranges = ()
    last: int = 0
    others: Mapping[str, Branch] = field(default_factory=dict)

    @classmethod
    def of(cls, transcript: Transcript | None) -> Branches:
        """Return the branches of a session.

        Raises:
            CorruptCheckpoint: The state is none of this version.
        """
        state = None if transcript is None else transcript.header.state
        if state is None:
            return cls()
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise CorruptCheckpoint("The branches of the session are of a newer version. Upgrade locus-mysql.")
        others = {name: Branch(_ranges(one["ranges"]), one["created_at"]) for name, one in state["branches"].items()}
        return cls(state["generation"], _ranges(state["main"]), state["last"], others)

    @classmethod
    def seen_in(cls, state: Any) -> Branches:
        """Return the branches in a state of any software, which need not be one of branches."""
        if isinstance(state, dict) and state.keys() == cls().state.keys() and state["format"] == FORMAT:
            with contextlib.suppress(TypeError, ValueError, KeyError, AttributeError):
                others = {name: Branch(_ranges(one["ranges"]), "") for name, one in state["branches"].items()}
                return cls(0, _ranges(state["main"]), int(state["last"]), others)
        return cls()

    @property
    def state(self) -> dict[str, Any]:
        """The state to store."""
        return {
            "format": FORMAT,
            "generation": self.generation,
            "last": self.last,
            "main": [list(one) for one in self.main],
            "branches": {
                name: {"ranges": [list(some) for some in one.ranges], "created_at": one.created_at}
                for name, one in self.others.items()
            },
        }

    def resolve(self, pointer: Pointer) -> str:
        """Return the branch that a session object continues: ``main`` if the session was cleared since."""
        return pointer.branch_id if pointer.generation == self.generation else MAIN

    def within(self, branch_id: str) -> tuple[SeqRange, ...]:
        """Return the seqs of a branch's items; none if there is no such branch."""
        if branch_id == MAIN:
            return (*self.main, (self.last + 1, None))
        return self.others[branch_id].ranges if branch_id in self.others else ()

    def has(self, branch_id: str, seq: int) -> bool:
        """Return whether an item belongs to a branch."""
        return any(first <= seq and (last is None or seq <= last) for first, last in self.within(branch_id))

    def is_shared(self, seq: int) -> bool:
        """Return whether any branch has an item."""
        return any(self.has(branch_id, seq) for branch_id in (MAIN, *self.others))

    def closed(self, last_seq: int) -> Branches:
        """Return the same branches, with later items than this one belonging to none yet."""
        return replace(self, main=_added(self.main, self.last + 1, last_seq), last=max(self.last, last_seq))

    def with_branch(self, branch_id: str, source: str, before: int, transcript: Transcript) -> Branches:
        """Return the branches with a new one, which shares the items of another one before a seq.

        Args:
            branch_id: The new branch.
            source: The other one.
            before: The seq.
            transcript: The session.
        """
        closed = self.closed(transcript.last_seq)
        new = Branch(_cut(closed._ranges_of(source), before), transcript.updated_at.strftime("%Y-%m-%d %H:%M:%S"))
        generation = self.generation or transcript.revision
        return replace(closed, generation=generation, others={**self.others, branch_id: new})

    def with_items(self, branch_id: str, count: int, last_seq: int) -> Branches:
        """Return the branches after items were added to one that is not ``main``, behind the transcript's last seq."""
        closed = self.closed(last_seq)
        grown = replace(
            self.others[branch_id], ranges=_added(closed._ranges_of(branch_id), last_seq + 1, last_seq + count)
        )
        return replace(closed, last=last_seq + count, others={**self.others, branch_id: grown})

    def without_items(self, branch_id: str, since: int) -> Branches:
        """Return the branches after one lost its items from a seq on."""
        if branch_id == MAIN:
            return replace(self, main=_cut(self.main, since))
        cut = replace(self.others[branch_id], ranges=_cut(self.others[branch_id].ranges, since))
        return replace(self, others={**self.others, branch_id: cut})

    def cleared(self, transcript: Transcript) -> Branches:
        """Return the branches after all items were removed. Their ids stay reserved."""
        others = {name: replace(one, ranges=()) for name, one in self.others.items()}
        return Branches(transcript.revision, (), transcript.last_seq, others)

    def only_in(self, branch_id: str) -> list[int]:
        """Return the seqs that a branch shares with no other."""
        mine = {seq for first, last in self.others[branch_id].ranges for seq in range(first, last + 1)}
        for other in (MAIN, *self.others):
            if other != branch_id:
                mine -= {seq for first, last in self._ranges_of(other) for seq in range(first, last + 1)}
        return sorted(mine)

    def _ranges_of(self, branch_id: str) -> Ranges:
        return self.main if branch_id == MAIN else self.others[branch_id].ranges


def _ranges(stored: Iterable[Iterable[int]]) -> Ranges:
    return tuple((first, last) for first, last in stored)


def _added(ranges: Ranges, first: int, last: int) -> Ranges:
    """Return ranges with another one behind them."""
    if last < first:
        return ranges
    if ranges and ranges[-1][1] == first - 1:
        return (*ranges[:-1], (ranges[-1][0], last))
    return (*ranges, (first, last))


def _cut(ranges: Ranges, before: int) -> Ranges:
    """Return the part of ranges before a seq."""
    return tuple((first, min(last, before - 1)) for first, last in ranges if first < before)
