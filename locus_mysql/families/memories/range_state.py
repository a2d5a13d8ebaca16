"""The server's state of a cached range, read to find changes: `RangeState`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...dialect.memories.vectors import StateRow
from .vectors.cache import Write, Writes
from .vectors.table import VectorKey


class Scope(NamedTuple):
    """The current state of a namespace.

    Args:
        last_write: The last write.
        purged: Removals up to this stamp are no longer recorded: a cache that is older must read the namespace again.
        previous_token: The token of the write before the last one.
    """

    last_write: Write
    purged: int
    previous_token: bytes | None


@dataclass(slots=True)
class RangeState:
    """The rows of `VectorStatements.range_state`, from one consistent read.

    Args:
        scopes: The namespaces of the range, by path.
        found_tokens: The tokens of known writes that the server still has.
        changes: The codes that changed since the known writes, by path; None stands for a removed embedding.
    """

    scopes: dict[bytes, Scope] = field(default_factory=dict)
    found_tokens: set[bytes] = field(default_factory=set)
    changes: dict[bytes, list[tuple[VectorKey, bytes | None]]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[StateRow]) -> RangeState:
        """Return the state that some rows describe."""
        state = cls()
        for path, stamp, purged, token, previous_token, key, number, code in rows:
            if path is None and token is not None:
                state.found_tokens.add(token)
            elif path is not None and stamp is not None and purged is not None and token is not None:
                state.scopes[path] = Scope(Write(stamp, token), purged, previous_token)
            elif path is not None and key is not None and number is not None:
                state.changes.setdefault(path, []).append(((path, key, number), code))
        return state

    @property
    def writes(self) -> Writes:
        """The last write to each namespace."""
        return {path: scope.last_write for path, scope in self.scopes.items()}

    def changed_since(self, known: Writes) -> list[bytes]:
        """Return the namespaces whose last write is not the known one."""
        return [path for path, scope in self.scopes.items() if known.get(path) != scope.last_write]

    def must_be_read_anew(self, path: bytes, known: Writes) -> bool:
        """Check whether the recorded changes since the known write are incomplete.

        They are incomplete if removals since then were purged, or if the server no longer has the known write: it is
            too old, or the server lost it, and with it all later writes that this process has read.
        """
        if path not in known:
            return True
        stamp, token = known[path]
        scope = self.scopes[path]
        return scope.purged > stamp or (scope.previous_token != token and token not in self.found_tokens)
