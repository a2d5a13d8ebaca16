"""Turns of checkpoints' threads whose packets arrive late, and what other processes do in the meantime."""

from __future__ import annotations

from locus_mysql.families.checkpoints.statements.tables import ThreadKey
from locus_mysql.records.leases import Lease

from ..stage import Call
from .stores import TENANT, Case, Stores


def lease(side: Stores, token: bytes | None = None) -> Lease:
    taken = Lease(ThreadKey(TENANT, "thread"), "thread", 60)
    if token is not None:
        taken.token = token
    return taken


def taken(side: Stores) -> None:
    side.made = lease(side)
    side.run(side.turns.acquire(side.made))


def released(side: Stores) -> None:
    taken(side)
    side.run(side.turns.release(side.made))


TURNS: dict[str, Case] = {
    "acquire": (None, lambda side: _acquire(side)),
    "acquire what is taken": (lambda side: side.run(side.turns.acquire(lease(side))), lambda side: _acquire(side)),
    "release": (taken, lambda side: side.begin(side.turns.release(side.made))),
}


def _acquire(side: Stores) -> Call:
    side.made = lease(side)
    return side.begin(side.turns.acquire(side.made))


def turn_goes_round(side: Stores) -> None:
    """End the current turn, and begin a turn of another process."""
    if side.made is not None:
        side.run(side.turns.release(side.made))
    side.run(side.turns.acquire(lease(side)))


def turn_goes_back(side: Stores) -> None:
    if side.made is not None:
        side.run(side.turns.release(side.made))


TURNS_MEANWHILE = (turn_goes_round, turn_goes_back)
