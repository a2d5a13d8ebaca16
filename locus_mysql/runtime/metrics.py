"""The numbers of a `Database` as metrics of Prometheus: `samples_of`, and `families_of` for its client library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from prometheus_client import Metric

    from .database import Stats

#: Values of a metric: its suffix, its labels, and the number.
Sample: TypeAlias = tuple[str, Mapping[str, object], float]

#: Type and help of each metric by its name; the names of counters end in ``_total``.
OF_STATS = {
    "locus_mysql_pool_connections": ("gauge", "Open connections of this process, used and idle."),
    "locus_mysql_pool_connections_max": ("gauge", "The most connections of a pool (pool_size)."),
    "locus_mysql_pool_waiting": ("gauge", "Calls that wait for a connection."),
    "locus_mysql_connections_opened_total": ("counter", "Connections opened."),
    "locus_mysql_connections_lost_total": ("counter", "Connections dropped because they, or their server, failed."),
    "locus_mysql_round_trips_total": ("counter", "Packets sent to the database, answered or not."),
    "locus_mysql_retries_total": ("counter", "Batches sent again after a lost connection, a deadlock or a lock wait."),
    "locus_mysql_cache_lookups_total": ("counter", "Look-ups in the caches of states and of embeddings."),
    "locus_mysql_sent_bytes_total": ("counter", "Bytes of commands sent to the database."),
    "locus_mysql_received_bytes_total": ("counter", "Bytes of answers received from the database."),
}


def samples_of(stats: Stats, pool_size: int) -> dict[str, list[Sample]]:
    """Return the values of the metrics in `OF_STATS`, by their names."""
    looked_up = {
        ("states", "hit"): stats.cache_hits,
        ("states", "miss"): stats.cache_misses,
        ("embeddings", "hit"): stats.vector_cache_hits,
        ("embeddings", "miss"): stats.vector_cache_misses,
    }
    return {
        "locus_mysql_pool_connections": [
            ("", {"state": "used"}, stats.in_use),
            ("", {"state": "idle"}, stats.open - stats.in_use),
        ],
        "locus_mysql_pool_connections_max": [("", {}, pool_size)],
        "locus_mysql_pool_waiting": [("", {}, stats.waiting)],
        "locus_mysql_connections_opened_total": [("", {}, stats.opened)],
        "locus_mysql_connections_lost_total": [("", {}, stats.lost)],
        "locus_mysql_round_trips_total": [("", {}, stats.round_trips)],
        "locus_mysql_retries_total": [("", {}, stats.retries)],
        "locus_mysql_cache_lookups_total": [
            ("", {"cache": cache, "result": result}, count) for (cache, result), count in looked_up.items()
        ],
        "locus_mysql_sent_bytes_total": [("", {}, stats.sent_bytes)],
        "locus_mysql_received_bytes_total": [("", {}, stats.received_bytes)],
    }


def families_of(stats: Stats, pool_size: int) -> Iterator[Metric]:
    """Yield the metrics as prometheus_client has them."""
    from prometheus_client import Metric

    for name, samples in samples_of(stats, pool_size).items():
        kind, text = OF_STATS[name]
        metric = Metric(name.removesuffix("_total"), text, kind)
        for suffix, labels, value in samples:
            metric.add_sample(name + suffix, {key: str(one) for key, one in labels.items()}, value)
        yield metric
