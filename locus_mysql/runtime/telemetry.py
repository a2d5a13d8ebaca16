"""Logs slow calls, and reports all calls to OpenTelemetry if the application uses it.

This module never imports OpenTelemetry first: an application that wants spans or metrics imports it before it makes a
call. A process that does not use it looks for it once a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from sys import modules
from time import perf_counter
from typing import TYPE_CHECKING

from ..config import ConnectionOptions
from ..engine.execution import AsyncEngine, SyncEngine
from ..engine.logs import CALLS
from ..engine.operation import name_of

if TYPE_CHECKING:
    from .spans import Instruments


#: While OpenTelemetry is imported but has no provider, this is checked again after this many seconds.
CHECK_EVERY_S = 1.0


class Telemetry:
    """Reports the calls to one database.

    Args:
        config: The limit of slow calls, and the address.
    """

    def __init__(self, config: ConnectionOptions) -> None:
        self._config = config
        self._slow_s = None if config.slow_ms is None else config.slow_ms / 1_000
        self._instruments: Instruments | None = None
        self._search_at = 0.0
        self._engines: list[AsyncEngine | SyncEngine] = []
        #: Until this time, by `perf_counter`, no call is to be reported, and `is_on` need not be read.
        self.quiet_until = 0.0

    def watch(self, engine: AsyncEngine | SyncEngine) -> None:
        """Measure the pools of this engine too."""
        self._engines.append(engine)
        if self._instruments is not None:
            self._instruments.watch(engine, self._config)

    def reset_in_child(self) -> None:
        """After a fork, replace the locks, which a thread of the parent may hold for ever."""
        if self._instruments is not None:
            self._instruments.reset_in_child()

    @property
    def is_on(self) -> bool:
        """Return whether calls are to be reported; if not, for the next `CHECK_EVERY_S`."""
        if self._instruments is None and ("opentelemetry.trace" in modules or "opentelemetry.metrics" in modules):
            self._find_instruments()
        if self._slow_s is not None or self._instruments is not None:
            return True
        self.quiet_until = perf_counter() + CHECK_EVERY_S
        return False

    def _find_instruments(self) -> None:
        """Use OpenTelemetry if the application has set a provider; a check takes microseconds, once a second."""
        now = perf_counter()
        if now < self._search_at:
            return
        self._search_at = now + CHECK_EVERY_S
        try:
            from .spans import instruments
        except ImportError:  # OpenTelemetry is too old or incomplete; this is not tried again
            self._search_at = inf
            return
        self._instruments = instruments()
        if self._instruments is not None:
            for engine in self._engines:
                self._instruments.watch(engine, self._config)

    @contextmanager
    def call(self, operation: object, engine: AsyncEngine | SyncEngine) -> Iterator[None]:
        """Report the call that is made in this block.

        Args:
            operation: The operation; its name is that of the method.
            engine: The engine that runs it.
        """
        name = name_of(operation)
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
