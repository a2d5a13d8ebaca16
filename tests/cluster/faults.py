"""Faults of the primary while clients write: each is a function that returns once the fault is over."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from .conftest import GROUP_TAKES_S, Group, Member
from .test_failover import wait_until_another_is_elected


def kill(group: Group) -> None:
    """Kill the primary's process; it is restarted and rejoins the group."""
    old = group.primary()
    old.kill()
    wait_until_another_is_elected(group, old)


def freeze(group: Group) -> None:
    """Suspend the primary's process until another member is elected, then resume it."""
    old = group.primary()
    old.freeze()
    wait_until_another_is_elected(group, old)
    old.thaw()


def cut(group: Group) -> None:
    """Cut the network between the primary and both others until one of them is elected, then reconnect it.

    Clients and the Router reach every member all the time.
    """
    old = group.primary()
    group.cut_off(old)
    wait_until_another_is_elected(group, old)
    group.cut_off()


def restart_all(group: Group) -> None:
    """Stop one member after the other as for maintenance, the primary too; each rejoins before the next stops."""
    for member in group.members:
        stopped = member.process_id()
        os.kill(stopped, signal.SIGTERM)
        _wait_until_replaced(member, stopped)
        group.mend()


def _wait_until_replaced(member: Member, stopped: int) -> None:
    deadline = time.monotonic() + GROUP_TAKES_S
    while member.process_id() in {0, stopped}:
        assert time.monotonic() < deadline, f"{member.host} was not started again"
        time.sleep(0.1)


#: The faults, by their names in the documents.
FAULTS: dict[str, Callable[[Group], None]] = {
    "the primary is killed (SIGKILL)": kill,
    "the primary freezes (SIGSTOP)": freeze,
    "the primary is cut off from the others": cut,
    "all three members restart, one by one": restart_all,
}
