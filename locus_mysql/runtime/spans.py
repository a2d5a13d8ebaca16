"""Spans and metrics by OpenTelemetry's API, after its conventions for MySQL. Only `telemetry` imports this.

https://opentelemetry.io/docs/specs/semconv/db/mysql/
https://opentelemetry.io/docs/specs/semconv/db/database-metrics/

No span contains an error's message, which may name a thread or quote data.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from weakref import WeakKeyDictionary

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from ..config import ConnectionOptions, Endpoint
from ..drivers.interface import ServerError
from ..drivers.login import imported_once
from ..engine.execution import AsyncEngine, SyncEngine

Engine = AsyncEngine | SyncEngine

#: Bounds of the histogram as the conventions advise, in seconds.
_BOUNDS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)

_SCOPE = "locus_mysql"
_SCHEMA = "https://opentelemetry.io/schemas/1.33.0"

_POOL_NAME = "db.client.connection.pool.name"


class Instruments:
    """The instruments that record spans and metrics; one per process.

    Args:
        tracers: The provider of tracers.
        meters: The provider of meters.
    """

    def __init__(self, tracers: TracerProvider, meters: MeterProvider) -> None:
        self._watched: WeakKeyDictionary[Engine, ConnectionOptions] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._tracer = tracers.get_tracer(_SCOPE, schema_url=_SCHEMA)
        meter = meters.get_meter(_SCOPE, schema_url=_SCHEMA)
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of database client operations.",
            explicit_bucket_boundaries_advisory=_BOUNDS_S,
        )
        meter.create_observable_up_down_counter(
            "db.client.connection.count",
            [self._count],
            unit="{connection}",
            description="The number of connections that are currently in state described by the state attribute.",
        )
        meter.create_observable_up_down_counter(
            "db.client.connection.max",
            [self._most],
            unit="{connection}",
            description="The maximum number of open connections allowed.",
        )
        meter.create_observable_up_down_counter(
            "db.client.connection.pending_requests",
            [self._waiting],
            unit="{request}",
            description="The number of current pending requests for an open connection.",
        )

    def reset_in_child(self) -> None:
        """After a fork: a new lock, as a thread of the parent may hold the old one for ever."""
        self._lock = threading.Lock()

    def watch(self, engine: Engine, config: ConnectionOptions) -> None:
        """Measure the pools of an engine while it exists."""
        with self._lock:
            self._watched[engine] = config

    @contextmanager
    def call(self, name: str, engine: Engine, config: ConnectionOptions) -> Iterator[None]:
        """Record a span and the duration of the call that is made in this block."""
        attributes: dict[str, AttributeValue] = {
            "db.system.name": "mysql",
            "db.namespace": config.database,
            "db.operation.name": name,
            **_address(engine.server),
        }
        began = perf_counter()
        with self._tracer.start_as_current_span(
            f"{name} {config.database}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except BaseException as error:
                failed = _failure(error)
                attributes.update(failed)
                span.set_attributes(failed)
                span.set_status(Status(StatusCode.ERROR))
                raise
            finally:
                address = _address(engine.server)  # the engine may have chosen another server
                attributes.update(address)
                span.set_attributes(address)
                self._duration.record(perf_counter() - began, attributes)

    def _count(self, options: CallbackOptions) -> Iterable[Observation]:
        for name, (opened, in_use, *_) in self._totals().items():
            yield Observation(in_use, {_POOL_NAME: name, "db.client.connection.state": "used"})
            yield Observation(opened - in_use, {_POOL_NAME: name, "db.client.connection.state": "idle"})

    def _most(self, options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(most, {_POOL_NAME: name}) for name, (*_, most) in self._totals().items()]

    def _waiting(self, options: CallbackOptions) -> Iterable[Observation]:
        return [Observation(waiting, {_POOL_NAME: name}) for name, (_, _, waiting, *_) in self._totals().items()]

    def _totals(self) -> dict[str, tuple[int, int, int, int]]:
        """Return open, used, awaited and allowed connections of all pools, for each database."""
        with self._lock:
            watched = list(self._watched.items())
        totals: dict[str, tuple[int, int, int, int]] = {}
        for engine, config in watched:
            name = f"{','.join(map(str, config.endpoints))}/{config.database}"
            for pool in engine.pools():
                opened, in_use, waiting, most = totals.get(name, (0, 0, 0, 0))
                totals[name] = (
                    opened + pool.open,
                    in_use + pool.in_use,
                    waiting + pool.waiting,
                    most + config.pool_size,
                )
        return totals


@imported_once
def _instruments() -> Instruments:
    return Instruments(trace.get_tracer_provider(), metrics.get_meter_provider())


def instruments() -> Instruments | None:
    """Return the process's instruments; None until the application has set a provider of spans or metrics."""
    if _is_set(trace.get_tracer_provider()) or _is_set(metrics.get_meter_provider()):
        return _instruments()
    return None


def _is_set(provider: object) -> bool:
    """Return whether the application has set this provider, instead of OpenTelemetry's default."""
    return "Proxy" not in type(provider).__name__


def _address(server: Endpoint) -> dict[str, AttributeValue]:
    if server.unix_socket:
        return {"server.address": server.unix_socket}
    return {"server.address": server.host, "server.port": server.port}


def _failure(error: BaseException) -> dict[str, AttributeValue]:
    """Return the attributes of a failed call by the conventions, without the error's message."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    attributes: dict[str, AttributeValue] = {"error.type": f"{module}{kind.__qualname__}"}
    if isinstance(error.__cause__, ServerError):
        attributes["db.response.status_code"] = str(error.__cause__.errno)
    return attributes
