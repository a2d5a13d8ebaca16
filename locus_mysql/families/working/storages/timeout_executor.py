"""Threads for blocking calls that may take longer than their caller waits."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

#: An idle thread ends after this many seconds.
IDLE_S = 10.0


class _Task:
    """A call with a waiting caller."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.context = contextvars.copy_context()
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.abandoned = False

    def run(self) -> None:
        """Make the call, unless its caller no longer waits."""
        try:
            if not self.abandoned:
                self.result = self.context.run(self.work)
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class TimeoutExecutor:
    """A bounded number of daemon threads, so that a hanging call does not keep the interpreter from ending.

    Args:
        max_threads: The number of threads. While all are busy, further calls wait for one, within their timeout.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        # Threads that run; those of them for which no task is queued; and tasks for which there is no thread.
        self._threads = self._spare = self._backlog = 0

    def reset_in_child(self) -> None:
        """After a fork: the parent's threads do not exist here."""
        self._begin()

    def run(self, work: Callable[[], T], timeout_s: float) -> T:
        """Make a call and wait for its result.

        Args:
            work: The call.
            timeout_s: How long to wait, in seconds. After that the call continues, and its result is ignored.

        Raises:
            TimeoutError: The call did not end within that time.
        """
        task = _Task(work)
        self._submit(task)
        ended = False
        try:
            ended = task.done.wait(timeout_s)
        finally:
            task.abandoned = not ended
        if not ended:
            raise TimeoutError(f"The storage did not answer within {timeout_s:g} s.")
        if task.error is not None:
            raise task.error
        result: T = task.result
        return result

    def _submit(self, task: _Task) -> None:
        with self._lock:
            if self._spare:
                self._spare -= 1
            elif self._threads < self._max_threads:
                threading.Thread(target=self._serve, name="locus-mysql-fallback", daemon=True).start()
                self._threads += 1
            else:
                self._backlog += 1
            self._tasks.put(task)

    def _serve(self) -> None:
        """Run tasks until there are none for a while."""
        while True:
            try:
                task = self._tasks.get(timeout=IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._spare:
                        self._spare -= 1
                        self._threads -= 1
                        return
                continue
            task.run()
            del task
            with self._lock:
                if self._backlog:
                    self._backlog -= 1
                else:
                    self._spare += 1
