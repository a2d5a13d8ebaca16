"""Calls that may hang, in daemon threads: `in_thread`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


def in_thread(call: Callable[[], T], name: str) -> Future[T]:
    """Call a function in a daemon thread, which keeps neither the caller nor the interpreter waiting if it hangs.

    Args:
        call: The function. It runs in a copy of the caller's context.
        name: The thread's name.
    """
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # the caller handles any exception
            answer.set_exception(error)

    threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
    return answer
