"""The commands of the engine: all its waiting operations.

All engine logic that waits (connecting, choosing a server, lending connections, repeating batches, watching a silent
primary) is written once, as generators. They yield these commands, and receive the outcome of each. The two loops in
`loops` execute the commands: one blocks a thread, the other awaits in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from ..config import ConnectionOptions, Endpoint
from ..dialect import Statement
from ..drivers.interface import Driver

T = TypeVar("T")


class Connection(Protocol):
    """A driver's connection, blocking or not: `SyncConnection` or `AsyncConnection`.

    Methods that wait return a value or an awaitable, depending on the loop. So only the loops call them.
    """

    server_version: str
    max_allowed_packet: int

    @property
    def closed(self) -> bool:
        """Return whether the connection must not be used again."""

    def execute(self, statements: Sequence[Statement]) -> Any:
        """Send statements in one packet, and return their results; waits."""

    def ping(self) -> Any:
        """Check that the server answers; waits."""

    def close(self) -> Any:
        """Close the connection properly; waits."""

    def abort(self) -> None:
        """Drop the socket at once; never waits, so that generators may call it."""


@dataclass(slots=True)
class Execute:
    """Send statements in one packet; the outcome is a list with a `Result` for each."""

    connection: Connection
    statements: Sequence[Statement]


@dataclass(slots=True)
class Connect:
    """Open a connection; it is the outcome."""

    driver: Driver
    config: ConnectionOptions
    endpoint: Endpoint


@dataclass(slots=True)
class AskPassword:
    """Call the function that returns the password; the outcome is text."""

    config: ConnectionOptions


@dataclass(slots=True)
class StartServer:
    """Start the embedded server, if it does not run; the outcome is its `Endpoint`."""

    config: ConnectionOptions


@dataclass(slots=True)
class Ping:
    """Check that the server answers. Raises `ConnectionLost` if it does not."""

    connection: Connection


@dataclass(slots=True)
class Close:
    """Close a connection properly. Never raises `DriverError`."""

    connection: Connection


@dataclass(slots=True)
class Sleep:
    """Wait for some seconds."""

    seconds: float


@dataclass(slots=True)
class Wait:
    """Call a function that waits: it blocks, or returns an awaitable, depending on the loop."""

    call: Callable[[], Any]


@dataclass(slots=True)
class Compute:
    """Call a function that computes for long: in the thread that runs the generator, or in one beside an event loop."""

    work: Callable[[], None]


@dataclass(slots=True)
class Shielded:
    """Run other steps to their end, in a task of their own, if a task yields this: they do not end if it is cancelled.

    Args:
        steps: The steps.
        continues: Set once they have their own task.
    """

    steps: CommandGenerator[None]
    continues: bool = False


Command: TypeAlias = Execute | Connect | AskPassword | StartServer | Ping | Close | Sleep | Wait | Compute | Shielded

#: A generator that yields commands, and returns a value when it is done.
#:
#: Any exception of a command is raised where the command was yielded: also `KeyboardInterrupt`, a task's
#: `CancelledError`, and `GeneratorExit` if the generator is dropped. After one that is not an `Exception` it must not
#: yield again. So clean-up after such exceptions calls only functions that never wait, such as `abort`.
CommandGenerator: TypeAlias = Generator[Command, Any, T]
