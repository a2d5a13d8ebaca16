"""Counting what goes over the wire: a TCP proxy between a client and the server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import quote

from locus_mysql import MySQLConfig


@dataclass
class Traffic:
    """What went through."""

    #: Times the client sent something and then waited: all that it sends before an answer comes is one round trip.
    round_trips: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    connections: int = 0


class CountingProxy:
    """Listens on ``port`` of 127.0.0.1, forwards to the server of ``dsn``, and counts.

    Args:
        dsn: The server's.
    """

    def __init__(self, dsn: str) -> None:
        self._config = MySQLConfig(dsn=dsn)
        self._total = Traffic()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def dsn(self) -> str:
        """The same account and database, by way of this proxy."""
        config = self._config
        account = f"{quote(config.user, safe='')}:{quote(config.password.get_secret_value(), safe='')}"
        return f"mysql://{account}@127.0.0.1:{self.port}/{config.database}"

    @contextmanager
    def counting(self) -> Iterator[Traffic]:
        """Count what goes through inside the block."""
        with self._lock:
            before = Traffic(**vars(self._total))
        traffic = Traffic()
        try:
            yield traffic
        finally:
            with self._lock:
                for name, value in vars(self._total).items():
                    setattr(traffic, name, value - getattr(before, name))

    def close(self) -> None:
        """Stop listening and close every connection."""
        for one in (self._listener, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def __enter__(self) -> CountingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection((self._config.host, self._config.port))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, server]
            with self._lock:
                self._total.connections += 1
            link = _Link()
            threading.Thread(target=self._pump, args=(client, server, link, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, link, False), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, link: _Link, upstream: bool) -> None:
        """Forward what comes one way, counted before it goes on: who has an answer finds it counted."""
        with suppress(OSError):
            while data := source.recv(1 << 18):
                with self._lock:
                    if upstream:
                        self._total.bytes_sent += len(data)
                        self._total.round_trips += link.answered
                    else:
                        self._total.bytes_received += len(data)
                    link.answered = not upstream
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@dataclass
class _Link:
    """One connection: whether the server spoke last."""

    answered: bool = True
