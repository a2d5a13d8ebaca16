"""How much one request, and all at once, may take: `Limits`."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """What is refused before it can do harm.

    Args:
        body_bytes: The largest body of a request. A state that is larger cannot be saved through the service.
        bodies_bytes: What the bodies of all requests that are being read or carried out, and large answers that are
            being sent, may take together.
        values: How many lists and objects a body may hold; each takes twenty times as much memory as it takes to write.
        body_s: How long a client may take to send a body, in seconds.
        requests: How many requests are carried out at once; more are answered 503. Of these, of the bytes, of the
            connections to the database and of the processes, one tenant may have half, and so may all without a token
            together; a second tenant half of the rest. A tenant's excess is answered 429, or waits.
        request_s: How long carrying out a request may take, in seconds: shorter than clients wait (Locus' 30 s), so
            that they are told.
        processes: How many processes `serve` has at once for requests that may take long; 0 for none.
        process_bytes: How much memory one of them may take for a request.
        connections: How many clients may be connected at once, for `serve`.
        head_s: How long a client may take to send a request's line and headers, for `serve`, in seconds.
        send_s: How long a client may leave an answer unread, for `serve`, in seconds.
    """

    body_bytes: int = 16 * 1024 * 1024
    bodies_bytes: int = 256 * 1024 * 1024
    values: int = 1_000_000
    body_s: float = 30.0
    requests: int = 128
    request_s: float = 25.0
    processes: int = 4
    process_bytes: int = 1024 * 1024 * 1024
    connections: int = 1_000
    head_s: float = 15.0
    send_s: float = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            given = getattr(self, one.name)
            if given < 0 or (given == 0 and one.name != "processes"):
                raise ConfigError(f"{one.name} must be positive.")
        if self.bodies_bytes < 2 * self.body_bytes:
            raise ConfigError("bodies_bytes must be twice body_bytes at least, as one token may have half of them.")

    @property
    def answer_bytes(self) -> int:
        """The largest answer, and the most that is read from the database for one: what one tenant may have."""
        return self.bodies_bytes // 2
