"""The stored states that a save builds on: `Basis`. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from .coding.delta import Lineage, lasting
from .coding.digests import HashedLogs
from .thread_cache import Snapshot


@dataclass(frozen=True, slots=True)
class Basis:
    """The states that a save builds on, and the checks to make under the thread's lock.

    Args:
        lineage: The states it may build on; the first is its parent. Empty if none is known.
        version: The thread's version at which all of the lineage existed, if that is known.
        must_be_newest: The lineage's first state must be the newest checkpoint.
        or_newest: Without a lineage, the parent is the thread's newest checkpoint.
    """

    lineage: Lineage = ()
    version: bytes | None = None
    must_be_newest: bool = False
    or_newest: bool = False


def remembered(before: Snapshot, hashed: HashedLogs, *, provisional: bool) -> Basis:
    """Return the state that this process loaded or saved last as the basis; without one, the newest checkpoint."""
    lineage = before.lineage_for(hashed)
    known = lineage if provisional else lasting(lineage)
    return Basis(lineage, before.version, or_newest=not known)


def newest(before: Snapshot) -> Basis:
    """Return the thread's newest checkpoint as the basis. It is used only if the thread still has the known version.

    If another checkpoint of the thread was loaded by its id, that one may be the newest.
    """
    if before.version is None:
        return Basis(or_newest=True)
    if before.newest:
        return Basis(before.newest, before.version, or_newest=True)
    lineage = before.lineages[0] if before.lineages else ()
    return Basis(lineage, before.version, must_be_newest=True, or_newest=True)
