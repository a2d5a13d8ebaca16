"""Resetting objects in a forked child: it must not use the parent's connections, nor its locks, which may be held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An object with state that a forked child must not share."""

    def reset_in_child(self) -> None:
        """Replace that state. Called in the child before anything else; it must not wait."""


_registered: weakref.WeakSet[Forked] = weakref.WeakSet()


def reset_at_fork(one: Forked) -> None:
    """Reset the object in each forked child, for as long as the object exists."""
    _registered.add(one)


def _reset() -> None:
    for one in list(_registered):
        one.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
