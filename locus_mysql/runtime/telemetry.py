"""Telling of calls: slow ones to the log, and all to OpenTelemetry where the application uses it.

OpenTelemetry is never imported first: an application that wants spans or metrics has imported it before it makes a
call. So a process without it, or that does not use it, pays for one look into a dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from sys import modules
from time import perf_counter
from typing import TYPE_CHECKING

from ..config import ConnectionOptions
from ..engine.asynchronous import AsyncEngine
from ..engine.logs import CALLS
from ..engine.synchronous import SyncEngine

if TYPE_CHECKING:
    from .spans import Instruments


#: While OpenTelemetry is imported, but not used, it is asked this often whether it is by now, in seconds.
LOOK_EVERY_S = 1.0


class Telemetry:
    """What is told of the calls to one database.

    Args:
        config: Has the limit of slow calls, and the address.
    """

    def __init__(self, config: ConnectionOptions) -> None:
        self._config = config
        self._slow_s = None if config.slow_ms is None else config.slow_ms / 1_000
        self._instruments: Instruments | None = None
        self._search = _Search()
        self._engines: list[AsyncEngine | SyncEngine] = []

    def watch(self, engine: AsyncEngine | SyncEngine) -> None:
        """Tell of the pools of this engine as well."""
        self._engines.append(engine)
        if self._instruments is not None:
            self._instruments.watch(engine, self._config)

    @property
    def wanted(self) -> bool:
        """Whether a call has to be told of. To be asked before each."""
        if self._instruments is None and ("opentelemetry.trace" in modules or "opentelemetry.metrics" in modules):
            self._instruments = self._search.find()
            if self._instruments is not None:
                for engine in self._engines:
                    self._instruments.watch(engine, self._config)
        return self._slow_s is not None or self._instruments is not None

    @contextmanager
    def call(self, operation: object, engine: AsyncEngine | SyncEngine) -> Iterator[None]:
        """Tell of the call that is made in this block.

        Args:
            operation: What it carries out; a generator has the name of the method.
            engine: What carries it out.
        """
        name: str = getattr(operation, "__name__", "call")
        began = perf_counter()
        ending = ""
        try:
            if self._instruments is None:
                yield
            else:
                with self._instruments.call(name, engine, self._config):
                    yield
        except BaseException as error:
            ending = f" and failed with {type(error).__name__}"
            raise
        finally:
            took_s = perf_counter() - began
            if self._slow_s is not None and took_s > self._slow_s:
                CALLS.warning("%s took %.0f ms%s; slow_ms is %g.", name, took_s * 1_000, ending, self._config.slow_ms)


class _Search:
    """Looks whether the application has said where spans or metrics go. To ask OpenTelemetry costs microseconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def find(self) -> Instruments | None:
        now = perf_counter()
        if now < self._next:
            return None
        self._next = now + LOOK_EVERY_S
        try:
            from .spans import instruments
        except ImportError:  # what is there of OpenTelemetry is too old, or not whole; it is not tried again
            self._next = inf
            return None
        return instruments()
