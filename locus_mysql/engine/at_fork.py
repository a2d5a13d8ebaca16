"""Engines begin anew in a forked child, without the parent's connections, and without its locks, which may be held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An object that has something which a forked child must not share."""

    def begin_in_child(self) -> None:
        """Called in the child before anything else. It must not wait for anything."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell_at_fork(one: Forked) -> None:
    """Have the object begin anew in each forked child, for as long as the object exists."""
    _told.add(one)


def _tell() -> None:
    for one in list(_told):
        one.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell)
