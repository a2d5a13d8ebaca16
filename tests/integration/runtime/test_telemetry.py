"""Spans and metrics, as OpenTelemetry's SDK receives them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from locus_mysql import (
    CheckpointStore,
    Database,
    MySQLCheckpointer,
    SyncCheckpointStore,
)
from locus_mysql.errors import Unavailable
from locus_mysql.runtime import spans as spans_module
from locus_mysql.runtime.spans import Instruments

from ..conftest import ONE_OF_EACH, MakeConfig, OpenStore
from ..proxy import WireProxy

pytestmark = pytest.mark.slow


class Observed:
    """The exported spans and metrics."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider(metric_readers=[self._reader])

    def spans(self) -> list[ReadableSpan]:
        return [one for one in self._exporter.get_finished_spans() if one.instrumentation_scope.name == "locus_mysql"]

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def everything(self) -> str:
        data = self._reader.get_metrics_data()
        return "\n".join([*(span.to_json() for span in self.spans()), data.to_json() if data else ""])


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Observed]:
    """Yield the recorded spans and metrics; applications can set their providers only once in a process."""
    observed = Observed()
    instruments = Instruments(observed.tracers, observed.meters)
    monkeypatch.setattr(spans_module, "instruments", lambda: instruments)
    yield observed
    observed.tracers.shutdown()
    observed.meters.shutdown()


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_a_span_for_each_call(
    observed: Observed, open_store: OpenStore, make_config: MakeConfig, database: str, side: str
) -> None:
    store = open_store(side)
    await store.save("t", {"n": 0})
    await store.load("t")
    (endpoint,) = make_config().endpoints
    saved, loaded = observed.spans()
    assert (saved.name, loaded.name) == (f"save {database}", f"load {database}")
    assert (saved.kind, saved.status.status_code) == (SpanKind.CLIENT, StatusCode.UNSET)
    assert dict(saved.attributes or {}) == {
        "db.system.name": "mysql",
        "db.operation.name": "save",
        "db.namespace": database,
        "server.address": endpoint.host,
        "server.port": endpoint.port,
    }


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_a_failed_call(observed: Observed, open_store: OpenStore, side: str) -> None:
    with pytest.raises(Unavailable):
        await open_store(side, host="127.0.0.1", port=1).load("t")
    (span,) = observed.spans()
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert span.attributes is not None
    assert span.attributes["error.type"] == "locus_mysql.errors.Unavailable"
    (point,) = observed.points("db.client.operation.duration")
    assert point.attributes == dict(span.attributes)


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_the_servers_number_of_an_error(
    observed: Observed, open_store: OpenStore, run_sql: Callable[..., Any], database: str, side: str
) -> None:
    store = open_store(side)
    await store.save("t", {"n": 0})
    run_sql(f"DROP TABLE {database}.locus_store_checkpoints")
    with pytest.raises(Exception, match="missing"):
        await store.load("t", "c")
    span = observed.spans()[-1]
    assert span.attributes is not None
    assert span.attributes["db.response.status_code"] == "1146"
    assert span.attributes["error.type"] == "locus_mysql.errors.SchemaMismatch"


async def test_spans_have_the_parent_that_is_current(observed: Observed, open_store: OpenStore) -> None:
    tracer = observed.tracers.get_tracer("application")
    store = open_store("asyncmy-async")

    async def request(number: int) -> tuple[int, int]:
        with tracer.start_as_current_span("request") as parent:
            await store.save(f"t{number}", {"n": number})
            return parent.get_span_context().span_id, parent.get_span_context().trace_id

    parents = await asyncio.gather(*(request(number) for number in range(5)))
    found = [(span.parent.span_id, span.parent.trace_id) for span in observed.spans() if span.parent]
    assert sorted(found) == sorted(parents)


async def test_a_cancelled_call(
    observed: Observed, make_config: MakeConfig, open_store: OpenStore, proxy: WireProxy
) -> None:
    store = open_store("aiomysql-async", config=make_config(host="127.0.0.1", port=proxy.port, ssl_mode="DISABLED"))
    await store.save("t", {"n": 0})
    proxy.swallow_answer()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await store.count()
    span = observed.spans()[-1]
    assert span.attributes is not None
    assert span.attributes["error.type"] == "asyncio.exceptions.CancelledError"


async def test_metrics_of_calls_and_pools(observed: Observed, make_config: MakeConfig, database: str) -> None:
    config = make_config(driver="mysql-connector", pool_size=2)
    async with Database(config) as db:
        store = CheckpointStore(db)
        await store.save("t", {"n": 0})
        await asyncio.gather(*(store.count() for _ in range(4)))
        await asyncio.to_thread(SyncCheckpointStore(db).count)
        durations = {point.attributes["db.operation.name"]: point for point in observed.points(DURATION)}
        assert {name: point.count for name, point in durations.items()} == {"save": 1, "count": 5}
        assert durations["count"].explicit_bounds == (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)
        assert durations["count"].sum > 0

        pool = f"{config.endpoints[0]}/{database}"
        assert states(observed) == {(pool, "used"): 0, (pool, "idle"): 3}
        assert [(one.value, dict(one.attributes)) for one in observed.points("db.client.connection.max")] == [
            (4, {"db.client.connection.pool.name": pool})
        ]
        waits = asyncio.gather(*(store.load("t") for _ in range(5)))
        await asyncio.sleep(0)
        assert [one.value for one in observed.points("db.client.connection.pending_requests")] == [3]
        assert states(observed)[pool, "used"] == 2
        await waits
    assert states(observed) == {(pool, "used"): 0, (pool, "idle"): 0}


DURATION = "db.client.operation.duration"


def states(observed: Observed) -> dict[tuple[str, str], int]:
    return {
        (one.attributes["db.client.connection.pool.name"], one.attributes["db.client.connection.state"]): one.value
        for one in observed.points("db.client.connection.count")
    }


async def test_a_database_that_is_gone_is_not_measured(observed: Observed, make_config: MakeConfig) -> None:
    store = CheckpointStore(make_config(driver="asyncmy"))
    await store.count()
    assert states(observed)
    del store
    await asyncio.sleep(0)
    assert states(observed) == {}


@pytest.mark.parametrize("side", ONE_OF_EACH)
async def test_telemetry_contains_no_user_data(
    observed: Observed, open_store: OpenStore, run_sql: Callable[..., Any], database: str, side: str
) -> None:
    tenant, thread, checkpoint, metadata, state = "tenant-1\"'", "thread-2'\n", "check-3", "meta-4');--", "state-5\\'"
    store = open_store(side, tenant=tenant)
    await store.save(thread, {"text": state}, checkpoint, {"key": metadata})
    await store.load(thread, checkpoint)
    await store.query_by_metadata("key", metadata)
    await store.search(state)
    await store.copy_thread(thread, thread + "2")
    with pytest.raises(Exception, match="thread-2"):
        await store.copy_thread(thread, thread + "2")
    run_sql(f"UPDATE {database}.locus_store_checkpoints SET payload = 'x'")
    with pytest.raises(Exception, match="thread-2"):
        await open_store(side, tenant=tenant).load(thread)
    assert len(observed.spans()) == 7
    for word in ("tenant-1", "thread-2", "check-3", "meta-4", "state-5", "SELECT", "INSERT"):
        assert word not in observed.everything()


async def test_a_health_check_has_its_name(observed: Observed, make_config: MakeConfig, database: str) -> None:
    async with MySQLCheckpointer(make_config(driver="pymysql")) as checkpointer:
        assert await checkpointer.health_check()
    assert [span.name for span in observed.spans()] == [f"health_check {database}"]


PROGRAM = """
import json, sys, time

from locus_mysql import SyncCheckpointStore

mode, dsn = sys.argv[1:]
store = SyncCheckpointStore(dsn, driver="pymysql")
wanted = [store.database.telemetry.is_on]
if mode == "hidden":
    sys.modules["opentelemetry.trace"] = sys.modules["opentelemetry"] = None
store.count()
wanted.append(store.database.telemetry.is_on)
loaded = any(name.startswith("opentelemetry") for name in sys.modules)
if mode != "never":
    try:
        from opentelemetry import trace
    except ImportError:
        pass
store.count()
wanted.append(store.database.telemetry.is_on)
if mode == "used":
    from opentelemetry.sdk.trace import TracerProvider
    trace.set_tracer_provider(TracerProvider())
    deadline = time.monotonic() + 10
    while not store.database.telemetry.is_on and time.monotonic() < deadline:
        store.count()
store.count()
wanted.append(store.database.telemetry.is_on)
store.close()
print(json.dumps([wanted, loaded]))
"""


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("never", [[False] * 4, False]),
        ("imported", [[False] * 4, False]),
        ("used", [[False, False, False, True], False]),
        ("hidden", [[False] * 4, True]),
    ],
)
def test_telemetry_is_off_unless_the_application_enables_it(
    make_config: MakeConfig, server_dsn: str, database: str, mode: str, expected: Any
) -> None:
    dsn = f"{server_dsn.rpartition('/')[0]}/{database}"
    done = subprocess.run([sys.executable, "-c", PROGRAM, mode, dsn], capture_output=True, text=True, timeout=180)
    assert done.stderr == ""
    assert json.loads(done.stdout) == expected
