"""`/metrics` counts what the service does; the dashboard and the alerts name only metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from locus_mysql import Database, SyncCheckpointStore
from locus_mysql.server.application import create_app
from locus_mysql.server.monitoring import METRICS
from locus_mysql.server.tokens import Tokens, new_token

from ..conftest import MakeConfig
from .running import running

pytestmark = pytest.mark.kept_tables("agents")

MONITORING = Path(__file__).resolve().parents[3] / "docs/monitoring"
PATH = "/threads/t/checkpoints"
PATIENCE_S = 120


def values(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return each value by its name and labels, without the worker's, as Prometheus' own parser reads them."""
    return {
        (
            sample.name,
            frozenset((name, label) for name, label in sample.labels.items() if name != "worker"),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def test_requests_durations_pools_and_rows_are_counted(make_config: MakeConfig) -> None:
    config = make_config()
    with running(create_app(config, metrics="token")) as url, httpx.Client(base_url=url, timeout=PATIENCE_S) as http:
        for number in range(3):
            assert http.post(PATH, json={"state": {"n": number}}).status_code == 200
        assert http.get("/nowhere").status_code == 404
        answer = http.get("/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = values(answer.text)
    template = "/threads/{thread_id}/checkpoints"
    assert found["locus_mysql_http_requests_total", labelled(method="POST", path=template, status="200")] == 3
    assert found["locus_mysql_http_requests_total", labelled(method="?", path="(no endpoint)", status="404")] == 1
    duration = "locus_mysql_http_request_duration_seconds"
    assert found[f"{duration}_count", labelled(method="POST", path=template)] == 3
    buckets = [
        value
        for (name, labels), value in found.items()
        if name == f"{duration}_bucket" and ("path", template) in labels
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert 0 < found[f"{duration}_sum", labelled(method="POST", path=template)] < 300
    assert found["locus_mysql_database_up", labelled()] == 1
    assert found["locus_mysql_pool_connections_max", labelled()] == config.pool_size
    assert found["locus_mysql_connections_opened_total", labelled()] >= 1
    assert found["locus_mysql_round_trips_total", labelled()] >= 3
    tables = {
        dict(labels)["table"]: dict(labels)["family"] for name, labels in found if name == "locus_mysql_table_rows"
    }
    assert tables["locus_threads"] == "agents"
    assert {name for name in METRICS if not name.startswith(duration)} <= {name for name, _ in found}


def test_a_database_is_a_collector_with_the_names_of_the_service(make_config: MakeConfig) -> None:
    registry = CollectorRegistry(auto_describe=True)
    with Database(make_config()) as database:
        registry.register(database)
        before = values(generate_latest(registry).decode())
        SyncCheckpointStore(database).save("t", {"n": 1})
        found = values(generate_latest(registry).decode())
        stats = database.stats()
    assert {name for name, _ in found} <= METRICS.keys()
    assert found["locus_mysql_pool_connections", labelled(state="idle")] == stats.open - stats.in_use == 1
    assert found["locus_mysql_round_trips_total", labelled()] == stats.round_trips
    assert before["locus_mysql_round_trips_total", labelled()] == 0


def test_metrics_are_served_only_on_choice_and_to_whom_is_chosen(make_config: MakeConfig) -> None:
    made = new_token("prometheus", "acme", "read")
    secret = {"Authorization": f"Bearer {made.secret}"}
    expected = {None: (404, 404), "token": (401, 200), "open": (200, 200)}
    for access, (without, with_token) in expected.items():
        app = create_app(make_config(), tokens=Tokens(made.entry), metrics=access)  # type: ignore[arg-type]
        with running(app) as url:
            assert httpx.get(f"{url}/metrics", timeout=PATIENCE_S).status_code == without
            assert httpx.get(f"{url}/metrics", headers=secret, timeout=PATIENCE_S).status_code == with_token


def test_metrics_are_answered_without_a_database() -> None:
    app = create_app("mysql://u:p@127.0.0.1:1/app", retry_deadline_s=0.1, metrics="open")
    with running(app) as url:
        found = values(httpx.get(f"{url}/metrics", timeout=PATIENCE_S).text)
    assert found["locus_mysql_database_up", labelled()] == 0
    assert not [name for name, _ in found if name == "locus_mysql_table_rows"]


def known(expression: str) -> None:
    named = re.findall(r"locus_mysql_\w+", expression)
    assert named
    for name in named:
        assert re.sub(r"_(bucket|sum|count)$", "", name) in METRICS, name


def test_the_dashboard_names_metrics_that_exist() -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 10
    for expression in expressions:
        known(expression)


def test_the_alerts_name_metrics_that_exist() -> None:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]:
        known(rule["expr"])
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning"}
