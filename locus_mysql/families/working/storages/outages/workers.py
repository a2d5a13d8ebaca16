"""Threads that make blocking calls which may be given up on."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: A thread without work ends after so many seconds.
IDLE_S = 10.0


class Errand:
    """A call that somebody waits for."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.context = contextvars.copy_context()
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.given_up = False

    def run(self) -> None:
        """Make the call, unless nobody waits for it any more."""
        try:
            if not self.given_up:
                self.result = self.context.run(self.work)
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class Workers:
    """A bounded number of threads, which do not keep the interpreter from ending.

    Args:
        most: At most so many; if all are busy, further calls wait for one, within their time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._errands: queue.SimpleQueue[Errand] = queue.SimpleQueue()
        self._threads = self._spare = self._backlog = 0

    def begin_in_child(self) -> None:
        """After a fork: the threads are not here."""
        self.__init__(self._most)  # type: ignore[misc]

    def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """Make a call, and wait for it.

        Args:
            work: The call.
            timeout_s: For how many seconds; then it is left to itself.

        Raises:
            TimeoutError: It did not end within that time.
        """
        errand = Errand(work)
        with self._lock:
            if self._spare:
                self._spare -= 1
            elif self._threads < self._most:
                threading.Thread(target=self._serve, name="locus-mysql-fallback", daemon=True).start()
                self._threads += 1
            else:
                self._backlog += 1
            self._errands.put(errand)
        try:
            ended = errand.done.wait(timeout_s)
        except BaseException:
            errand.given_up = True
            raise
        if not ended:
            errand.given_up = True
            raise TimeoutError(f"The storage did not answer within {timeout_s:g} s.")
        if errand.error is not None:
            raise errand.error
        result: T = errand.result
        return result

    def _serve(self) -> None:
        while True:
            try:
                errand = self._errands.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._spare:
                        self._spare -= 1
                        self._threads -= 1
                        return
                continue
            errand.run()
            del errand
            with self._lock:
                if self._backlog:
                    self._backlog -= 1
                else:
                    self._spare += 1
