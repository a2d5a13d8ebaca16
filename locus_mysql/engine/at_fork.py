"""Engines begin anew in a forked child: without the parent's connections, and its locks, maybe held."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What has something that a child must not share."""

    def begin_in_child(self) -> None:
        """Called in a child before anything else; must wait for nothing."""


_told: weakref.WeakSet[Forked] = weakref.WeakSet()


def tell_at_fork(one: Forked) -> None:
    """Have it begin anew in each child, as long as it lives."""
    _told.add(one)


def _tell() -> None:
    for one in list(_told):
        one.begin_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tell)
