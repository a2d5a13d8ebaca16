"""``GET /health`` reports whether the service can work, ``GET /metrics`` its state in Prometheus' text format."""

from __future__ import annotations

import asyncio
import os
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from ..config import ConnectionOptions
from ..dialect import Schema
from ..dialect.schema import TableSize, table_sizes
from ..engine.bootstrap import check_layouts, describe, missing_tables, no_tables
from ..engine.operation import Batch, Operation, fetch
from ..errors import LocusMySQLError, PrivilegeMissing, SetupError
from ..families.registry import families
from ..runtime.database import Database
from ..runtime.metrics import OF_STATS, Sample, samples_of
from .bodies import answer
from .problems import Problem, problem_of, try_later
from .routing import Authenticate, Endpoint

#: Seconds for which a result is reused. Any client may send the request, so it must not load the database.
KEPT_S = 1.0

#: Seconds for which the result for the tables is reused.
TABLES_KEPT_S = 30.0

#: Time limit for the database's answer, in seconds. A load balancer does not wait as long as a call does.
PATIENCE_S = 5.0

#: Who may read the metrics: callers with a token, or everyone.
MetricsAccess: TypeAlias = Literal["token", "open"]

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Upper bounds of the buckets of request durations, in seconds.
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)

#: Seconds for which the sizes of tables are reused.
SIZES_KEPT_S = 60.0

#: Name, type and help of each metric; the names of counters end in ``_total``.
METRICS = {
    "locus_mysql_info": ("gauge", "1, with the version of the package."),
    "locus_mysql_http_requests_total": ("counter", "Answered requests by method, path template and status."),
    "locus_mysql_http_request_duration_seconds": ("histogram", "Seconds until an answer was ready to be sent."),
    "locus_mysql_database_up": ("gauge", "1 if the database answered the query for the sizes of tables, else 0."),
    **OF_STATS,
    "locus_mysql_table_rows": ("gauge", "Rows of each table as MySQL estimates them, of all tenants."),
    "locus_mysql_table_bytes": ("gauge", "Bytes of each table with its indexes, as MySQL estimates them."),
}


class Healthy(BaseModel):
    """The answer of a healthy service: its database answers and accepts writes."""

    status: str = "ok"


def health_endpoint(probe: HealthProbe, authenticate: Authenticate) -> Endpoint:
    """Return the endpoint.

    Args:
        probe: Checks the database.
        authenticate: Identifies the caller of a request that brings a token. Locus' client checks its service's health
            before a turn; with a revoked token its next load would look like an empty thread.
    """

    async def health(request: Request) -> Response:
        if "authorization" in request.headers:
            authenticate(request)
        await probe.check()
        return answer({"status": "ok"})

    summary = "Check that the database responds and accepts writes, and that the token, if one is sent, is valid"
    return Endpoint("GET", "/health", health, "open", summary, answer=Healthy)


class HealthProbe:
    """Checks the database, once for any number of concurrent requests: that it answers, accepts writes, and its tables.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._asking = asyncio.Lock()
        self._asked_at = -KEPT_S
        self._tables_asked_at = -TABLES_KEPT_S
        self._problem: Problem | None = None

    async def check(self) -> None:
        """Check, unless a recent result can be reused.

        Raises:
            Problem: The database does not answer, or accepts no writes.
        """
        async with self._asking:
            if time.monotonic() >= self._asked_at + KEPT_S:
                self._problem = await self._ask()
                self._asked_at = time.monotonic()
        if self._problem is not None:
            raise self._problem

    async def _ask(self) -> Problem | None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self.database.health_check()
                if time.monotonic() >= self._tables_asked_at + TABLES_KEPT_S:
                    await self._check_tables()
                    self._tables_asked_at = time.monotonic()
        except TimeoutError:  # the pool's timeout as well
            return try_later("database_unavailable", "The database does not answer.")
        except LocusMySQLError as error:
            return problem_of(error)
        return try_later("read_only_database", "The database does not accept writes.") if found["read_only"] else None

    async def _check_tables(self) -> None:
        """Check the existing tables of all families except those that other programs may have.

        Raises:
            SchemaMismatch: Tables are missing beside others of their family, or have another layout.
            PrivilegeMissing: The account may not read, add or delete rows.
        """
        for family in families():
            if not family.on_request:
                config = self.database.config
                await self.database.asynchronous.run(_check(config, family.schema(config)))


def _check(config: ConnectionOptions, schema: Schema) -> Operation[None]:
    """Check the tables of a family, if it has any, and the account's privileges on them."""
    found = yield from describe(schema)
    missing = missing_tables(schema, found.tables)
    if len(missing) == len(schema.names):
        return
    check_layouts(config, schema, found.tables)
    if missing:
        raise no_tables(config, schema, missing)
    try:
        yield Batch(schema.check_privileges(), atomic=False)
    except PrivilegeMissing:
        raise
    except SetupError:  # an engine that cannot explain these statements; its privileges are not checked
        return


def metrics_endpoint(metrics: Metrics, access: MetricsAccess) -> Endpoint:
    """Return the endpoint.

    Args:
        metrics: The metrics of this worker.
        access: Who may read it.
    """

    async def text(_request: Request) -> Response:
        return Response(await metrics.text(), media_type=_CONTENT_TYPE)

    summary = "The state of the service in Prometheus' text format"
    return Endpoint("GET", "/metrics", text, "open" if access == "open" else "read", summary)


class Metrics:
    """Counts the requests of one worker, and reads the other values when they are asked for.

    Args:
        database: The database of the service.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * (len(BOUNDS_S) + 1))
        self._sums: dict[tuple[str, str], float] = defaultdict(float)
        self._sizes: list[TableSize] = []
        self._sizes_at = -SIZES_KEPT_S
        self._up = False

    def observe(self, method: str, path: str, status: int, took_s: float) -> None:
        """Count a request."""
        self._requests[method, path, status] += 1
        self._buckets[method, path][bisect_left(BOUNDS_S, took_s)] += 1
        self._sums[method, path] += took_s

    async def text(self) -> str:
        """Return all metrics."""
        await self._read_sizes()
        values: dict[str, Iterable[Sample]] = {
            "locus_mysql_info": [("", {"version": __version__}, 1)],
            "locus_mysql_http_requests_total": (
                ("", {"method": method, "path": path, "status": status}, count)
                for (method, path, status), count in self._requests.items()
            ),
            "locus_mysql_http_request_duration_seconds": self._durations(),
            "locus_mysql_database_up": [("", {}, self._up)],
            **samples_of(self._database.stats(), self._database.config.pool_size),
            **self._of_tables(),
        }
        return "".join(_lines(name, values[name]) for name in METRICS)

    def _durations(self) -> Iterator[Sample]:
        for (method, path), buckets in self._buckets.items():
            labels = {"method": method, "path": path}
            below = 0
            for bound, count in zip((*BOUNDS_S, "+Inf"), buckets, strict=True):
                below += count
                yield "_bucket", {**labels, "le": bound}, below
            yield "_sum", labels, self._sums[method, path]
            yield "_count", labels, below

    def _of_tables(self) -> dict[str, list[Sample]]:
        family_of = {
            table: family.name for family in families() for table in family.schema(self._database.config).names
        }
        sized = [(one, {"family": family_of[one.table], "table": one.table}) for one in self._sizes]
        return {
            "locus_mysql_table_rows": [("", labels, one.rows) for one, labels in sized],
            "locus_mysql_table_bytes": [("", labels, one.size_bytes) for one, labels in sized],
        }

    async def _read_sizes(self) -> None:
        """Read the sizes of tables, unless they were read recently. The other metrics do not need the database."""
        if time.monotonic() < self._sizes_at + SIZES_KEPT_S:
            return
        names = [name for family in families() for name in family.schema(self._database.config).names]
        try:
            self._sizes = await self._database.asynchronous.run(fetch(table_sizes(names)))
        except LocusMySQLError:
            self._up, self._sizes = False, []
            return
        self._up, self._sizes_at = True, time.monotonic()


def _lines(name: str, samples: Iterable[Sample]) -> str:
    """Return the lines of a metric. Each value has the worker's process id: a scrape reaches one worker of several."""
    kind, text = METRICS[name]
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        pairs = ",".join(f'{key}="{_escaped(str(one))}"' for key, one in {**labels, "worker": os.getpid()}.items())
        lines.append(f"{name}{suffix}{{{pairs}}} {float(value)!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
