"""A process that forks request processes for the service: `ForkServer`.

It is forked before the service has an event loop, threads or connections, and never has any itself. So what it forks
begins with all modules loaded, in milliseconds, and inherits no lock that a thread holds. It ends, with all that it
forked, when the service does: then its end of the socket between them is closed.
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

#: A message to the fork server: what to do, and with which process.
_MESSAGE_BYTES = 1 + _PID.size

#: Signals that are for the service only; also a terminal, or systemd, sends them to all processes.
_NOT_OURS = ("SIGINT", "SIGTERM", "SIGHUP")

#: How long the fork server may take to end, in seconds.
_END_S = 2.0

#: How often is looked whether it has, in seconds.
_LOOK_S = 0.02


class Child(NamedTuple):
    """A request process.

    Args:
        pid: Its number.
        socket: Leads to it; does not block.
    """

    pid: int
    socket: socket.socket


class ForkServer:
    """The fork server, as the service sees it.

    Args:
        pid: Its number.
        control: Leads to it.
    """

    def __init__(self, pid: int, control: socket.socket) -> None:
        self.pid = pid
        self._control = control

    @classmethod
    def start(
        cls, work: Callable[[socket.socket], None], sockets: Sequence[socket.socket], descriptors: Sequence[int] = ()
    ) -> ForkServer | None:
        """Fork the fork server; None where that is not possible or not safe.

        Args:
            work: What a request process does, given the socket that leads to the service.
            sockets: Sockets of the service that the new processes must not keep open.
            descriptors: Other descriptors likewise.
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
        """Have a process forked; gives the socket that leads to it. If it could not be, the socket is closed there.

        Raises:
            OSError: The fork server is gone, or has too much to do.
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
        """End a process at once, if it is still there."""
        with contextlib.suppress(OSError):
            self._control.send(_KILL + _PID.pack(pid))

    async def close(self) -> None:
        """End the fork server and all that it forked, and wait for that."""
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
    """The fork server itself."""

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
        """Kill a child, which cannot be another process by now: it keeps its number until it is waited for here."""
        self._reap()
        if pid in self._children:
            os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        for pid in list(self._children):
            if os.waitpid(pid, os.WNOHANG)[0]:
                self._children.discard(pid)
