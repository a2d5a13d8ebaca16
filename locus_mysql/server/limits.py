"""`Limits`: the limits of single requests, of tenants, and of all requests together."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..errors import ConfigError


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of requests.

    Args:
        body_bytes: The largest body of a request, in bytes. A larger state cannot be saved through the service.
        answer_bytes: The largest answer, and the largest answer of the database to one packet, in bytes.
        values: The largest number of lists and objects in a body, which may have ten times as many entries. They take
            twenty times as much memory as their JSON text, and parsing them keeps all other threads waiting.
        body_s: How long a client may take to send a body, in seconds.
        requests: The number of requests accepted at once; more are answered 503. A single tenant may have half of them
            (callers without a token count as one tenant); its further requests are answered 429.
        request_s: How long a request may take, in seconds: less than clients wait (Locus' client waits 30 s), so that
            they receive the error.
        connections: The number of clients connected to `serve` at once.
        send_s: How long a client may leave a piece of 256 KiB of a large answer unread, in seconds.
    """

    body_bytes: int = 16 * 1024 * 1024
    answer_bytes: int = 32 * 1024 * 1024
    values: int = 100_000
    body_s: float = 30.0
    requests: int = 128
    request_s: float = 25.0
    connections: int = 1_000
    send_s: float = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            if getattr(self, one.name) <= 0:
                raise ConfigError(f"{one.name} must be positive.")
