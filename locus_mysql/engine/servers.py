"""Connections to servers: `ServerConnection`, and how a pool opens them: `Role`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..drivers.interface import Driver, DriverError, Result, ServerError
from .commands import CommandGenerator, Connection, Execute
from .failures import lacks_temporary_table
from .topology import Topology

#: The session's temporary tables go to disk at once. Needs no privilege. Making one takes 0.1 ms longer (9.7.4).
_ON_DISK = Statement("SET SESSION big_tables = 1")


class Guard(Protocol):
    """Checks with each packet that its server still has the role for which the connection was opened."""

    def checks(self) -> tuple[Statement, ...]:
        """The statements that belong in front of the next packet."""

    def verify(self, answers: list[Result]) -> None:
        """Raise `DriverError` if the answers to `checks` show that the server lost its role."""

    def explain(self, error: ServerError) -> DriverError:
        """Return the error to raise in place of the packet's error."""


class ServerConnection:
    """An open connection of a pool.

    Args:
        connection: The driver's.
        endpoint: The server it leads to.
        guard: Checks the server's role; None where there is only one server.
    """

    __slots__ = ("_unsent", "connection", "endpoint", "generation", "guard", "idle_since", "on_disk", "opened_at")

    def __init__(self, connection: Connection, endpoint: Endpoint, guard: Guard | None) -> None:
        self.connection = connection
        self.endpoint = endpoint
        self.guard = guard
        #: Set by the pool: its generation when this was opened, and times by its clock.
        self.generation = 0
        self.opened_at = self.idle_since = 0.0
        #: Whether temporary tables go to disk, because a statement failed for lack of memory for them.
        self.on_disk = False
        self._unsent: tuple[Statement, ...] = ()

    def execute(self, statements: Sequence[Statement]) -> CommandGenerator[list[Result]]:
        """Send statements in one packet. With several servers, it fails on one that has lost its role.

        If it fails for lack of memory for temporary tables, the next packet sends them to disk: see `on_disk`.
        """
        guard, unsent = self.guard, self._unsent
        checks = unsent if guard is None else (*unsent, *guard.checks())
        self._unsent = ()
        try:
            results: list[Result] = yield Execute(self.connection, (*checks, *statements) if checks else statements)
        except ServerError as error:
            if not self.on_disk and lacks_temporary_table(error):
                self.on_disk, self._unsent = True, (_ON_DISK,)
            explained = error if guard is None else guard.explain(error)
            if isinstance(explained, ServerError) and error.statement_index is not None:
                explained.statement_index = error.statement_index - len(checks)
            if explained is error:
                raise
            raise explained from None
        if guard is not None:
            guard.verify(results[len(unsent) : len(checks)])
        return results[len(checks) :] if checks else results


OpenConnection: TypeAlias = Callable[[ConnectionOptions, Driver, Topology], CommandGenerator[ServerConnection]]
IsGone: TypeAlias = Callable[[ConnectionOptions, Driver, Topology, Endpoint], CommandGenerator[bool]]


@dataclass(frozen=True, slots=True)
class Role:
    """The role of the servers that a pool connects to.

    Args:
        connect: Opens a connection to a server that has the role.
        is_gone: Checks whether a server that does not answer has lost the role, so that its connections are dropped.
    """

    connect: OpenConnection
    is_gone: IsGone
