"""The known state of several servers, and the interpretation of their answers. No I/O.

All calls, reads too, go to the primary, because a secondary may lack saves that were acknowledged. The primary is the
server that accepts writes and, if that can be checked, is a working member of its group.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from ...config import ConnectionOptions, Endpoint
from ...dialect import Statement
from ...dialect.server_roles import MEMBERS, NO_LONGER_WRITTEN, VIEW, VIEW_TABLE, WRITES
from ...drivers.interface import ConnectionLost, DriverError, Result, ServerError
from ..operation import read_rows

#: The primary is found: INFO. The primary has changed: WARNING.
SERVERS = logging.getLogger("locus_mysql.servers")

#: A server that did not answer is tried after the others for this long, in seconds.
SUSPECTED_FOR_S = 30.0

#: Limit in seconds for each step of connecting to a server that did not answer before, or that is only checked for
#: being the primary.
BRIEFLY_S = 2.0

#: The server's error for "takes no writes".
_READ_ONLY_ERROR = 1290

#: Errors that mean that the user may not read the table of a group's members.
_MEMBERS_REFUSED = frozenset({1142, 1143, 1227})


class NotAMember(DriverError):
    """The server is up, but not a working member of its group."""


class NoPrimary(DriverError):
    """None of several servers is a working primary.

    Args:
        reasons: The reason of each server.
    """

    def __init__(self, reasons: Sequence[DriverError]) -> None:
        super().__init__("; ".join(str(reason).rstrip(".") for reason in reasons))
        self.reasons = tuple(reasons)


class LeadsToSecondary(DriverError):
    """The only address leads to a secondary of a group or a reader of Aurora, whose answers may be stale.

    Args:
        message: The message.
        gave_up: Whether the server was still the primary when it got the batch; see `failures.GIVEN_UP`.
    """

    def __init__(self, message: str, *, gave_up: bool = False) -> None:
        super().__init__(message)
        self.gave_up = gave_up


def is_read_only(error: DriverError) -> bool:
    """Check whether an error means that the server is not the primary."""
    return isinstance(error, ServerError) and error.errno == _READ_ONLY_ERROR


class Topology:
    """The known state of the servers. Threads may share it: each change replaces one value.

    Args:
        endpoints: The servers, in the user's order.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, endpoints: tuple[Endpoint, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._primary: Endpoint | None = None
        self._latest: Endpoint | None = None  # kept also while its role is unknown
        self._suspected: dict[Endpoint, float] = {}
        self._questions: tuple[Statement, ...] = (WRITES, MEMBERS, VIEW)
        self._view = ("", 0)  # of the last primary that was connected to

    def order(self) -> tuple[Endpoint, ...]:
        """The servers to try: first the last known primary, then the others, and last those that did not answer."""
        primary, suspected = self._primary, self._still_suspected()
        return tuple(sorted(self._endpoints, key=lambda one: (one in suspected, one != primary)))

    def others(self, endpoint: Endpoint) -> tuple[Endpoint, ...]:
        """All servers but this one, in the order to try them."""
        return tuple(one for one in self.order() if one != endpoint)

    def limits(self, config: ConnectionOptions, endpoint: Endpoint) -> ConnectionOptions:
        """Return the options for connecting. A server that did not answer before has a shorter limit."""
        if endpoint not in self._still_suspected() or config.connect_timeout_s <= BRIEFLY_S:
            return config
        return config.model_copy(update={"connect_timeout_s": BRIEFLY_S})

    def is_primary(self, endpoint: Endpoint) -> None:
        """Record that the server is the primary."""
        if endpoint != self._latest:
            if self._latest is None:
                SERVERS.info("The primary is MySQL at %s.", endpoint)
            else:
                SERVERS.warning("Calls moved to another primary: from MySQL at %s to %s.", self._latest, endpoint)
        self._primary = self._latest = endpoint
        self._suspected = {one: since for one, since in self._suspected.items() if one != endpoint}

    def failed(self, endpoint: Endpoint, error: DriverError) -> None:
        """Record that the server is not the primary, or that it does not answer."""
        if self._primary == endpoint:
            self._primary = None
        if isinstance(error, ConnectionLost):
            self._suspected = {**self._suspected, endpoint: self._clock()}

    @property
    def may_see_members(self) -> bool:
        """Return whether the user may see the members of the group; True if unknown."""
        return MEMBERS in self._questions

    def questions(self) -> tuple[Statement, ...]:
        """The questions to a server right after connecting to it."""
        return self._questions

    def asks_less_after(self, error: ServerError) -> bool:
        """Check whether a privilege was missing for one of the questions; from now on `questions` leaves it out."""
        if error.errno not in _MEMBERS_REFUSED or not self.may_see_members:
            return False
        self._questions = (WRITES, MEMBERS) if VIEW_TABLE in error.message else (WRITES,)
        return True

    def check_primary(self, answers: Sequence[Result], endpoint: Endpoint) -> None:
        """Return if these answers to `questions` are those of a working primary.

        A primary that was suspended, and continues, does not detect at once that its group has expelled it: it still
        considers itself the primary, and would answer with old data. It has an older view of the group than the
        primary that was elected meanwhile.

        Raises:
            NotAMember: The server is up, but its group has excluded it, or it is cut off from the group.
            ServerError: It takes no writes.
        """
        check_answers(answers[:2], endpoint)
        for row in [row for answer in answers[2:] for row in read_rows(VIEW.row, answer.rows)]:
            group, _, number = (row.view or "").rpartition(":")
            if not number.isdecimal():
                continue
            known_group, known_number = self._view
            if group == known_group and int(number) < known_number:
                raise NotAMember(f"MySQL at {endpoint} has not detected yet that its group has expelled it.")
            self._view = group, int(number)

    def _still_suspected(self) -> dict[Endpoint, float]:
        if not self._suspected:
            return self._suspected
        since = self._clock() - SUSPECTED_FOR_S
        return {one: at for one, at in self._suspected.items() if at > since}


def check_answers(answers: Sequence[Result], endpoint: Endpoint) -> None:
    """Return if these answers to `WRITES` and, if it was queried, `MEMBERS` are those of a working primary.

    Raises:
        NotAMember: The server is up, but its group has excluded it, or it is cut off from the group.
        ServerError: It takes no writes.
    """
    writes, *members = answers
    group = read_rows(MEMBERS.row, members[0].rows) if members else []
    own_states = [member.state for member in group if member.own or len(group) == 1]
    if own_states and own_states != ["ONLINE"]:
        raise NotAMember(f"MySQL at {endpoint} is no working member of its group: its state is {own_states[0]}.")
    if 2 * sum(member.state == "UNREACHABLE" for member in group) >= max(len(group), 1):
        raise NotAMember(f"MySQL at {endpoint} is cut off from its group.")
    (own,) = read_rows(WRITES.row, writes.rows)
    if own.read_only:
        raise ServerError(_READ_ONLY_ERROR, f"MySQL at {endpoint} takes no writes (it is read-only)")


def as_read_only(error: ServerError, endpoint: Endpoint) -> ServerError:
    """Return the error to raise for a packet's error. That of `ONLY_WHERE_WRITTEN` means: not the primary."""
    if NO_LONGER_WRITTEN not in error.message:
        return error
    return ServerError(_READ_ONLY_ERROR, f"MySQL at {endpoint} takes no writes any more (it is read-only)")
