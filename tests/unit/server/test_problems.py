"""Responses to errors, accepted host names, and limits of request bodies."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack

import pytest

from locus_mysql import MySQLConfig, errors
from locus_mysql.drivers.interface import PacketTooLarge
from locus_mysql.engine.failures import explain
from locus_mysql.server.access import host_of, is_loopback
from locus_mysql.server.dispatching import Admission
from locus_mysql.server.limits import Limits
from locus_mysql.server.problems import Problem, explained, problem_of


def concrete(kind: type[Exception]) -> list[type[Exception]]:
    """Return an error class and its subclasses, without those of integrations, which may not be imported."""
    below = [one for one in kind.__subclasses__() if one.__module__ == errors.__name__]
    return [kind, *(found for one in below for found in concrete(one))]


@pytest.mark.parametrize(
    "kind", concrete(errors.SetupError) + concrete(errors.Unavailable), ids=lambda one: one.__name__
)
def test_errors_for_operators_hide_their_message(kind: type[Exception]) -> None:
    problem = problem_of(kind("SELECT secret FROM /etc at db.internal"))
    assert problem.status == 503
    assert int(problem.headers["Retry-After"]) > 0
    assert "secret" not in explained(problem, "r").body.decode()


@pytest.mark.parametrize(
    "kind",
    [kind for kind in concrete(errors.UsageError) if kind is not errors.StateTooLarge],
    ids=lambda one: one.__name__,
)
def test_errors_of_callers_are_4xx(kind: type[Exception]) -> None:
    error = kind("keys", 2, 1, "s") if kind is errors.CapacityExceeded else kind("Shorten it.")
    problem = problem_of(error)
    assert 400 <= problem.status < 500
    assert problem.message == str(error) or kind is errors.CapacityExceeded


def test_a_full_session_is_reported_without_python_options() -> None:
    message = problem_of(errors.CapacityExceeded("max_keys", 3, 2, "s")).message
    assert "3 of max_keys" in message
    assert "on_full" not in message


def test_the_error_of_a_too_large_state_reveals_nothing_of_the_server() -> None:
    error = explain(PacketTooLarge(2_000_000, 1_000_000), MySQLConfig(host="db.internal", database="app"))
    problem = problem_of(error)
    assert (problem.status, problem.code) == (413, "state_too_large")
    assert "db.internal" in str(error)
    assert "db.internal" not in problem.message


def test_unexpected_errors_hide_their_message() -> None:
    problem = problem_of(KeyError("secret"))
    assert (problem.status, problem.code) == (500, "internal_error")
    assert "secret" not in explained(problem, "r").body.decode()
    body = json.loads(explained(Problem("busy", 'a "quoted" <b> \n'), "r").body)
    assert body == {"error": {"code": "busy", "message": 'a "quoted" <b> \n', "request_id": "r"}}


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:80", "localhost"),
        ("localhost.", "localhost"),
        ("[::1]:80", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("", None),
        ("a b", None),
        ("user@localhost", None),
        ("localhost:80:90", None),
        ("localhost/evil", None),
        ("::1", None),
        ("evil#localhost", None),
    ],
)
def test_the_name_in_a_host_header(header: str, host: str | None) -> None:
    assert host_of(header) == host


def test_only_names_of_this_machine_are_the_loopback_interfaces() -> None:
    ours = ("localhost", "a.localhost", "127.0.0.1", "127.255.0.1", "::1")
    others = ("localhost.evil", "evillocalhost", "10.0.0.1", "0.0.0.0", "::", "1", "2130706433", "", "127.0.0.1.evil")
    assert [name for name in (*ours, *others) if is_loopback(name)] == list(ours)


async def test_no_tenant_gets_more_than_half_and_everything_is_returned() -> None:
    admission, held = Admission(requests=4, operations=2), [ExitStack() for _ in range(4)]
    await admission.begin("a", held[0])
    waiting = asyncio.ensure_future(admission.begin("a", held[1]))
    await admission.begin("b", held[2])  # does not wait for the other tenant
    assert not waiting.done()
    with pytest.raises(Problem) as of_one:
        await admission.begin("a", ExitStack())
    others = asyncio.ensure_future(admission.begin("c", held[3]))
    await asyncio.sleep(0)
    with pytest.raises(Problem) as of_all:
        await admission.begin("d", ExitStack())
    assert (of_one.value.status, of_all.value.status) == (429, 503)
    held[0].close()
    await asyncio.wait_for(others, 60)
    held[2].close()
    await asyncio.wait_for(waiting, 60)
    for one in held:
        one.close()
    await admission.begin("d", held[0])


@pytest.mark.parametrize("name", ["body_bytes", "requests", "request_s"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(errors.ConfigError, match=name):
        Limits(**{name: 0})
