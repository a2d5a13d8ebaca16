"""`Limits`: the limits of single requests, of tenants, and of all requests together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of requests.

    Args:
        body_bytes: The largest body of a request, in bytes. A larger state cannot be saved through the service.
        bodies_bytes: The total size of all bodies of running requests and of large answers being sent, in bytes.
        values: The largest number of lists and objects in a body. Each takes twenty times as much memory as its JSON
            text.
        body_s: How long a client may take to send a body, in seconds.
        requests: The number of requests carried out at once; more are answered 503. Of these, of the bytes, of the
            database connections and of the processes, a single tenant may have half (callers without a token count as
            one tenant), and a second tenant half of the rest. A tenant's further requests wait or are answered 429.
        request_s: How long a request may take, in seconds: less than clients wait (Locus' client waits 30 s), so that
            they receive the error.
        processes: The number of processes that `serve` has at once for requests that may take long; 0 for none.
        process_bytes: The memory that such a process may use for a request, in bytes.
        connections: The number of clients connected to `serve` at once.
        head_s: How long a client of `serve` may take to send a request's line and headers, in seconds.
        send_s: How long a client of `serve` may leave an answer unread, in seconds.
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
            raise ConfigError("bodies_bytes must be twice body_bytes at least, as one tenant may have half of them.")

    @property
    def answer_bytes(self) -> int:
        """Largest answer, and largest amount read from the database for one, in bytes: a single tenant's quota."""
        return self.bodies_bytes // 2
