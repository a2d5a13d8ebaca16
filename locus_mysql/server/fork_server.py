"""`ForkServer`: a process that forks request processes for the service.

It is forked before the service has an event loop, threads or connections, and never has any itself. So a request
process starts within milliseconds with all modules loaded, and inherits no lock that a thread holds. The fork server
and its children end when the service does, because that closes the socket between them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

_FORK, _KILL = b"F", b"K"
_PID = struct.Struct("!i")

#: A message to the fork server: a command and a process id.
_MESSAGE_BYTES = 1 + _PID.size

#: Signals that only the service handles, although a terminal or systemd sends them to all processes.
_NOT_OURS = ("SIGINT", "SIGTERM", "SIGHUP")

#: Seconds that the fork server may take to end.
_END_S = 2.0

#: Seconds between two checks whether it has ended.
_LOOK_S = 0.02


class Child(NamedTuple):
    """A request process.

    Args:
        pid: Its process id.
        socket: The non-blocking connection to it.
    """

    pid: int
    socket: socket.socket


class ForkServer:
    """The fork server, seen from the service.

    Args:
        pid: Its process id.
        control: The connection to it.
    """

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self._control = control

    @classmethod
    def start(
        cls, work: Callable[[socket.socket], None], sockets: Sequence[socket.socket], descriptors: Sequence[int] = ()
    ) -> ForkServer | None:
        """Fork the fork server. Returns None where forking is impossible or unsafe.

        Args:
            work: The main function of a request process; takes the socket to the service.
            sockets: Sockets of the service that the new processes close.
            descriptors: Other descriptors that they close.
        """
        if not hasattr(os, "fork") or threading.active_count() > 1 or sys.platform == "darwin":
            return None
        ours, theirs = socket.socketpair()
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            theirs.close()
            return None
        if pid:
            theirs.close()
            ours.setblocking(False)
            return cls(pid, ours)
        try:
            ours.close()
            for one in sockets:
                one.close()
            for descriptor in descriptors:
                os.close(descriptor)
            _Server(theirs, work).run()
        finally:
            os._exit(0)

    def fork(self) -> socket.socket:
        """Request a new process and return the socket to it. If forking fails, the other end of the socket is closed.

        Raises:
            OSError: The fork server has ended, or its queue is full.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [_FORK + _PID.pack(0)], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    def kill(self, pid: int) -> None:
        """Kill a process if it still runs."""
        with contextlib.suppress(OSError):
            self._control.send(_KILL + _PID.pack(pid))

    async def close(self) -> None:
        """End the fork server and its children, and wait for their end."""
        self._control.close()
        for wait in range(2 * int(_END_S / _LOOK_S)):
            if self._has_ended():
                return
            if wait == int(_END_S / _LOOK_S):
                os.kill(self.pid, signal.SIGKILL)
            await asyncio.sleep(_LOOK_S)

    def _has_ended(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True


class _Server:
    """The main loop of the fork server."""

    def __init__(self, control: socket.socket, work: Callable[[socket.socket], None]) -> None:
        self._control = control
        self._work = work
        self._children: set[int] = set()

    def run(self) -> None:
        signal.set_wakeup_fd(-1)
        for name in _NOT_OURS:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.freeze()  # so that collections of the children write to no page that they share
        while True:
            readable, _, _ = select.select([self._control], [], [], 1.0)
            self._reap()
            if not readable:
                continue
            try:
                message, descriptors, _, _ = socket.recv_fds(self._control, _MESSAGE_BYTES, 1)
            except OSError:
                break
            if not message:
                break
            if message[:1] == _FORK and descriptors:
                self._fork(descriptors[0])
            elif message[:1] == _KILL:
                self._kill(_PID.unpack(message[1:_MESSAGE_BYTES])[0])
        for pid in list(self._children):
            self._kill(pid)

    def _fork(self, descriptor: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            os.close(descriptor)
            return
        if pid:
            self._children.add(pid)
            os.close(descriptor)
            return
        try:
            self._control.close()
            with socket.socket(fileno=descriptor) as leading_back:
                self._work(leading_back)
        finally:
            os._exit(0)

    def _kill(self, pid: int) -> None:
        """Kill a child. Its process id cannot be reused before this process has waited for it."""
        self._reap()
        if pid in self._children:
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        for pid in list(self._children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._children.discard(pid)
