"""A TCP proxy between a client and a MySQL server that counts round trips and breaks connections on command.

It reads the client's packets, so use it with ``ssl_mode="DISABLED"``. (A client that switches to TLS is
forwarded, but no longer counted.)

    with WireProxy("127.0.0.1", 3306) as proxy:
        ...connect to 127.0.0.1, proxy.port...
        with proxy.counting() as count:
            ...
        assert count.round_trips == 1
        proxy.drop_after_send()  # the next command is carried out, but its answer never arrives
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, Self

_QUIT = b"\x01\x00\x00\x00\x01"
_COM_QUIT = 1
_CLIENT_SSL = 1 << 11

Fault = Literal["drop_before", "drop_after_send", "drop_while_running", "swallow_answer"]


@dataclass
class Count:
    """Counters of the traffic. COM_QUIT counts only as bytes."""

    #: Times the client sent and then waited: commands sent without waiting for an answer are one round trip.
    round_trips: int = 0
    #: Commands after the login.
    commands: int = 0
    #: Connections made to the proxy.
    connections: int = 0
    #: Bytes from the client and from the server.
    bytes_sent: int = 0
    bytes_received: int = 0


@dataclass(frozen=True)
class _Treatment:
    """The treatment of one answer."""

    delay_s: float = 0
    keep_bytes: int | None = None
    times: int = 1


class WireProxy:
    """Listens on ``port`` of 127.0.0.1 and forwards to the target, until a method changes that.

    Args:
        target_host: Host of the server.
        target_port: Its port.
        greeting: Changes the payload of the server's first packet, see `without_tls` and `with_version`.
    """

    def __init__(self, target_host: str, target_port: int, greeting: Callable[[bytes], bytes] | None = None) -> None:
        self.total = Count()
        self.greeting = greeting
        self._target = (target_host, target_port)
        self._lock = threading.Lock()
        self._faults: dict[int, Fault] = {}  # by the number of the command, counted from the proxy's start
        self._answers: dict[int, bytes] = {}  # likewise
        self._drip: tuple[int, float] | None = None
        self._treatments: dict[int, _Treatment] = {}  # by the number of the command
        self._closing = threading.Event()
        self._open = threading.Event()
        self._open.set()
        self._links: list[_Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def drop_before(self, n: int = 1) -> None:
        """Close the connection when the n-th command from now arrives; the server never gets it."""
        self._arm(n, "drop_before")

    def drop_after_send(self, n: int = 1) -> None:
        """Let the server carry out the n-th command from now, then close the connection with no answer."""
        self._arm(n, "drop_after_send")

    def drop_while_running(self, n: int = 1) -> None:
        """Send the server the n-th command from now, and close the connection at once, before its answer.

        Of a packet of several statements, the server carries out all, but fails to send every answer after the first.
        """
        self._arm(n, "drop_while_running")

    def swallow_answer(self, n: int = 1) -> None:
        """Let the server carry out the n-th command from now; never forward its answer, so the client waits."""
        self._arm(n, "swallow_answer")

    def answer_instead(self, answer: bytes, n: int = 1) -> None:
        """Answer the n-th command from now with these bytes; the server never gets it."""
        with self._lock:
            self._answers[self.total.commands + n] = answer

    def inject(self, data: bytes) -> None:
        """Send every client these bytes now, which answer no command."""
        for link in list(self._links):
            link.client.sendall(data)

    def drip(self, *, after_bytes: int = 0, interval_s: float = 0.05) -> None:
        """From now on, forward the server's bytes one by one.

        Args:
            after_bytes: The number of bytes of each connection, counted from its beginning, that are not delayed.
            interval_s: The time between two bytes.
        """
        self._drip = (after_bytes, interval_s)

    def delay_answer(self, seconds: float, n: int = 1) -> None:
        """Delay the answer to the n-th command from now by ``seconds``."""
        self._treat(n, _Treatment(delay_s=seconds))

    def cut_answer(self, after_bytes: int, n: int = 1) -> None:
        """Forward ``after_bytes`` of the answer to the n-th command from now, then close the connection."""
        self._treat(n, _Treatment(keep_bytes=after_bytes))

    def repeat_answer(self, n: int = 1) -> None:
        """Send the answer to the n-th command from now twice, if it comes in one piece."""
        self._treat(n, _Treatment(times=2))

    def black_hole(self) -> None:
        """Stop forwarding in both directions, also for new connections; close no connection."""
        self._open.clear()

    def resume(self) -> None:
        """Forward again, beginning with the packets that arrived in the meantime."""
        self._open.set()

    def drop_all(self) -> None:
        """Close every connection now."""
        for link in list(self._links):
            link.close()

    @contextmanager
    def counting(self) -> Iterator[Count]:
        """Count what happens inside the block."""
        with self._lock:
            start = Count(**vars(self.total))
        count = Count()
        try:
            yield count
        finally:
            with self._lock:
                for name, value in vars(self.total).items():
                    setattr(count, name, value - getattr(start, name))

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._closing.set()
        self._open.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(5)
        self.drop_all()
        for link in self._links:
            link.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _treat(self, n: int, treatment: _Treatment) -> None:
        with self._lock:
            self._treatments[self.total.commands + n] = treatment

    def _arm(self, n: int, fault: Fault) -> None:
        with self._lock:
            self._faults[self.total.commands + n] = fault

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.total.connections += 1
            link = _Link(self, client, server)
            self._links.append(link)
            link.start()


@dataclass
class _Link:
    """One connection: two threads, one for each direction."""

    proxy: WireProxy
    client: socket.socket
    server: socket.socket
    answered: bool = True
    swallowing: bool = False
    finishing: bool = False
    forwarded: int = 0
    treatment: _Treatment | None = None
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for pump in (self.upstream, self.downstream):
            thread = threading.Thread(target=self._guarded, args=(pump,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _guarded(self, pump: Callable[[], None]) -> None:
        with suppress(OSError, EOFError):
            pump()
        self.proxy._open.wait()  # neither side learns in a black hole that the other one has closed
        if not (self.finishing and pump == self.upstream):  # then downstream closes, when the server has finished
            self.close()

    def upstream(self) -> None:
        """Forward the client's packets one by one."""
        proxy = self.proxy
        continued = False
        while True:
            header = _read(self.client, 4)
            size = int.from_bytes(header[:3], "little")
            proxy._open.wait()  # in a black hole, the proxy stops reading too
            packet = header + _read(self.client, size)
            fault: Fault | None = None
            answer: bytes | None = None
            with proxy._lock:
                proxy.total.bytes_sent += len(packet)
                if header[3] == 0 and not continued and packet[4:5] != bytes((_COM_QUIT,)):
                    proxy.total.commands += 1
                    proxy.total.round_trips += self.answered
                    fault = proxy._faults.pop(proxy.total.commands, None)
                    answer = proxy._answers.pop(proxy.total.commands, None)
                    self.treatment = proxy._treatments.pop(proxy.total.commands, None)
                    self.answered = answer is not None
            continued = size == 0xFFFFFF
            proxy._open.wait()
            if fault == "drop_before":
                return
            if answer is not None:
                self.client.sendall(answer)
                continue
            self.swallowing = fault == "swallow_answer"
            if fault == "drop_after_send":
                self.finish(packet, continued)
                return
            self.server.sendall(packet)
            if fault == "drop_while_running":
                return
            if header[3] == 1 and size == 32 and struct.unpack("<I", packet[4:8])[0] & _CLIENT_SSL:
                while data := self.client.recv(65536):
                    proxy._open.wait()
                    self.server.sendall(data)
                return

    def finish(self, packet: bytes, continued: bool) -> None:
        """Send the server the command and a COM_QUIT: it closes the connection after it has carried out both."""
        self.finishing = True
        self.server.sendall(packet)
        while continued:
            header = _read(self.client, 4)
            size = int.from_bytes(header[:3], "little")
            self.server.sendall(header + _read(self.client, size))
            continued = size == 0xFFFFFF
        self.server.sendall(_QUIT)

    def downstream(self) -> None:
        """Forward the server's bytes as they arrive; only its greeting is parsed as a packet."""
        proxy = self.proxy
        header = _read(self.server, 4)
        greeting = _read(self.server, int.from_bytes(header[:3], "little"))
        if proxy.greeting is not None:
            greeting = proxy.greeting(greeting)
        proxy._open.wait()
        self.forward(len(greeting).to_bytes(3, "little") + header[3:] + greeting)
        while data := self.server.recv(65536):
            proxy._open.wait()
            with proxy._lock:
                self.answered = True
                proxy.total.bytes_received += len(data)
            if not (self.finishing or self.swallowing):
                self.treat(data)

    def treat(self, data: bytes) -> None:
        """Forward a piece of an answer in the current mode of the proxy."""
        treatment, self.treatment = self.treatment, None
        if treatment is None:
            self.forward(data)
            return
        self.proxy._closing.wait(treatment.delay_s)
        if treatment.keep_bytes is not None:
            self.forward(data[: treatment.keep_bytes])
            raise EOFError
        self.forward(data * treatment.times)

    def forward(self, data: bytes) -> None:
        """Send the client bytes of the server, at once or one by one."""
        drip = self.proxy._drip
        if drip is None:
            self.forwarded += len(data)
            self.client.sendall(data)
            return
        after_bytes, interval_s = drip
        at_once = max(0, after_bytes - self.forwarded)
        self.forwarded += len(data)
        self.client.sendall(data[:at_once])
        for position in range(at_once, len(data)):
            self.client.sendall(data[position : position + 1])
            if self.proxy._closing.wait(interval_s):
                return

    def close(self) -> None:
        for sock in (self.client, self.server):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(5)


def without_tls(greeting: bytes) -> bytes:
    """Return the greeting with the server's support of TLS removed."""
    position = _capabilities_at(greeting)
    capabilities = int.from_bytes(greeting[position : position + 2], "little") & ~_CLIENT_SSL
    return greeting[:position] + capabilities.to_bytes(2, "little") + greeting[position + 2 :]


def with_version(text: str) -> Callable[[bytes], bytes]:
    """Return a function that replaces the version in a greeting."""

    def change(greeting: bytes) -> bytes:
        return greeting[:1] + text.encode() + greeting[greeting.index(b"\0", 1) :]

    return change


def _capabilities_at(greeting: bytes) -> int:
    return greeting.index(b"\0", 1) + 1 + 4 + 8 + 1


def _read(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(min(size - len(data), 1 << 20))
        if not part:
            raise EOFError
        data += part
    return bytes(data)
