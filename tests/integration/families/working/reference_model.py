"""A reference model of working memory: what two processes may read from one session, with an adjustable clock."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

#: A variable: its value, its expiry, and a counter value of its last use.
Plain: TypeAlias = tuple[Any, float | None, int]


class Refused(Exception):
    """Raised when a call is refused, with the name of the error."""


@dataclass
class Held:
    """The contents of a session."""

    variables: dict[str, Plain] = field(default_factory=dict)
    task: Any = None
    notes: list[str] = field(default_factory=list)


@dataclass
class ReferenceSession:
    """One session.

    Args:
        max_keys: Maximum number of variables.
        max_notes: Maximum number of notes.
        max_checkpoints: Number of checkpoints kept.
        evicts: Whether excess variables are evicted.
        ttl_s: Time to live of the session.
    """

    max_keys: int
    max_notes: int
    max_checkpoints: int
    evicts: bool
    ttl_s: float
    now_s: float = 0.0
    held: Held = field(default_factory=Held)
    checkpoints: list[tuple[str, float, Held]] = field(default_factory=list)
    expires_s: float | None = None  # of the session; None if there is no session
    uses: int = 0
    #: What each process has read since it last wrote, and when it last renewed the session.
    read: list[list[str]] = field(default_factory=lambda: [[], []])
    renewed_s: list[float] = field(default_factory=lambda: [float("-inf")] * 2)

    def reading(self, process: int) -> Held:
        """Return the session from which a process reads."""
        self._expire()
        if self.now_s - self.renewed_s[process] > self.ttl_s / 8:
            self.renewed_s[process] = self.now_s
            if self.expires_s is not None:
                self.expires_s = self.now_s + self.ttl_s * 9 / 8
        return self.held

    def note_use(self, process: int, keys: list[str]) -> None:
        """Record that a process has read these variables."""
        for key in keys if self.evicts else ():
            if key in self.read[process]:
                self.read[process].remove(key)
            self.read[process].append(key)

    def writing(self, process: int, *, begins: bool) -> Held | None:
        """Return the session that a process changes; None if there is none and the call does not create one."""
        self._expire()
        if self.expires_s is None and not begins:
            self._wrote(process)
            return None
        return copy.deepcopy(self.held)

    def use(self, process: int, held: Held) -> None:
        """Apply the reads of a process before its write."""
        for key in self.read[process]:
            if key in held.variables:
                self.uses += 1
                held.variables[key] = (*held.variables[key][:2], self.uses)
        self.uses += 1

    def write(self, process: int, held: Held, written: set[str] | frozenset[str] = frozenset()) -> None:
        """Store the changes of a process if they fit.

        Raises:
            Refused: They do not fit.
        """
        if len(held.notes) > self.max_notes:
            raise Refused("CapacityExceeded")
        if self.evicts:
            leaving = sorted(held.variables.keys() - written, key=lambda key: (held.variables[key][2], key))
            while leaving and len(held.variables) > self.max_keys:
                del held.variables[leaving.pop(0)]
        if len(held.variables) > self.max_keys:
            raise Refused("CapacityExceeded")
        self.held = held
        self.expires_s = self.now_s + self.ttl_s * 9 / 8
        self._wrote(process)

    def take(self, checkpoint_id: str, held: Held, spared: str | None = None) -> None:
        """Store a checkpoint."""
        self.checkpoints.append((checkpoint_id, self.now_s, copy.deepcopy(held)))
        while len(self.checkpoints) > self.max_checkpoints:
            oldest = next((one for one in self.checkpoints[:-1] if one[0] != spared), None)
            if oldest is None:
                break
            self.checkpoints.remove(oldest)

    def end(self, process: int) -> bool:
        """Remove the session and its checkpoints."""
        self._expire()
        there = self.expires_s is not None
        self._gone()
        self._wrote(process)
        return there

    def _wrote(self, process: int) -> None:
        self.read[process].clear()
        self.renewed_s[process] = self.now_s

    def _gone(self) -> None:
        self.held, self.checkpoints, self.expires_s = Held(), [], None

    def _expire(self) -> None:
        if self.expires_s is not None and self.expires_s <= self.now_s:
            self._gone()
        variables = self.held.variables
        for key in [key for key, (_, at, _) in variables.items() if at is not None and at <= self.now_s]:
            del variables[key]
