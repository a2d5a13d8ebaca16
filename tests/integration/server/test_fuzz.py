"""Random requests to the whole service, generated from its API description or outside of it.

No response is a 5xx, each conforms to the description, and invalid requests are refused.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks as openapi_checks

from locus_mysql.server.application import create_app
from locus_mysql.server.problems import CODES

from ...thoroughness import FULL
from ..conftest import MakeConfig
from .running import running


def by_chance(examples: int) -> settings:
    """Return Hypothesis settings with a number of examples; full runs have ten times as many.

    Short runs use the same examples every time, so that their result does not depend on chance.
    """
    return settings(
        max_examples=examples * 10 if FULL else examples,
        derandomize=not FULL,
        phases=[*([Phase.reuse] if FULL else []), Phase.generate, *([Phase.shrink] if FULL else [])],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


#: Ids that are drawn often, so that requests find each other's data. The client removes ``..`` from paths.
IDS = ("a", "b/c", "ü%2F", "50%", "?#")

CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]


@pytest.fixture
def service(make_config: MakeConfig) -> Iterator[str]:
    """Yield the base URL of a service in the test's schema."""
    with running(create_app(make_config(driver="pymysql"), vacuum=True)) as url:
        yield url


@pytest.fixture
def filled(service: str) -> str:
    """The service, with a thread, a session and an item of each id, so that requests find data."""
    with requests.Session() as session:

        def send(method: str, path: str, **body: Any) -> None:
            assert session.request(method, f"{service}{path}", json=body, timeout=60).status_code == 200

        for one in IDS:
            thread, session_ = f"/threads/{quote(one, safe='')}", f"/sessions/{quote(one, safe='')}"
            for path in (thread, "/threads", ""):  # also for the paths of threads . and ..
                for other in IDS:
                    send("POST", f"{path}/checkpoints", checkpoint_id=other, state={"messages": []})
            for other in IDS:
                send("PUT", f"{session_}/variables/{quote(other, safe='')}", value=1)
            send("PUT", f"{session_}/task", task_id=one, description=one, status="pending")
            send("POST", f"{session_}/scratchpad", content=one)
            send("PUT", "/memories/item", namespace=[one], key=one, value=one)
    return service


@st.composite
def cases(draw: st.DrawFn, operations: list[Any], mode: GenerationMode) -> Any:
    """A request for one of the operations; valid requests mostly have ids of stored data."""
    case = draw(draw(st.sampled_from(operations)).as_strategy(generation_mode=mode))
    if mode is GenerationMode.POSITIVE:
        for name in case.path_parameters:
            if draw(st.integers(0, 3)):
                case.path_parameters[name] = draw(st.sampled_from(IDS))
    return case


def asked(service: str, operations: list[Any], mode: GenerationMode, examples: int, checks: list[Any]) -> set[str]:
    """Send random requests, check each answer against the description, and return the operations that succeeded."""
    succeeded = set()
    with requests.Session() as session:

        @by_chance(examples)
        @given(case=cases(operations, mode))
        def ask(case: Any) -> None:
            response = case.call(base_url=service, session=session)
            case.validate_response(response, checks=checks)
            if response.status_code == 200:
                succeeded.add(case.operation.label)

        ask()
    return succeeded


@pytest.fixture
def operations(service: str) -> list[Any]:
    """Return the operations of the description, deletions last, so that the others find data."""
    described = requests.get(f"{service}/openapi.json", timeout=60).json()
    found = [one.ok() for one in schemathesis.openapi.from_dict(described).get_all_operations()]
    return sorted(found, key=lambda one: one.method == "delete")


@pytest.mark.slow
def test_every_response_conforms_to_the_api_description(filled: str, operations: list[Any]) -> None:
    succeeded = [label for one in operations for label in asked(filled, [one], GenerationMode.POSITIVE, 4, CHECKS)]
    assert len(succeeded) > len(operations) * 3 / 4, sorted({one.label for one in operations} - {*succeeded})


@pytest.mark.slow
def test_requests_outside_the_description_are_refused(filled: str, operations: list[Any]) -> None:
    """Uses fewer examples, as generating these takes longer."""
    asked(filled, operations, GenerationMode.NEGATIVE, 30, [*CHECKS, openapi_checks.negative_data_rejection])


#: Parts of paths: existing ids, missing ones, and texts that are no id.
SEGMENTS = st.one_of(
    st.sampled_from(
        (
            *(b"threads", b"checkpoints", b"sessions", b"variables", b"memories", b"item", b"search", b"metadata"),
            *(b"health", b"copy", b"task", b"", b".", b"..", b"%", b"%2", b"%00", b"%ff", b"%2F", b"%2e%2e", b"%C0%AF"),
        )
    ),
    st.binary(max_size=6).map(lambda raw: quote(raw).encode()),
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#"), max_size=8).map(str.encode),
    st.binary(max_size=6).filter(lambda raw: not set(raw) & set(b"\r\n \t\0")),
)
METHODS = st.sampled_from(
    [b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"BREW", b"get"]
)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20).map(
    lambda text: text.strip().encode()
)
HEADERS = st.dictionaries(
    st.sampled_from([b"Content-Type", b"Authorization", b"Accept", b"X-Request-Id", b"Origin", b"Cookie", b"Range"]),
    VALUES | st.sampled_from([b"application/json", b"Bearer x", b"Basic eDp5", b"text/html", b"null", b"bytes=0-1"]),
)
BODIES = st.one_of(
    st.just(b""),
    st.binary(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ).map(lambda value: json.dumps(value).encode()),
)


def answered(service: str, request: bytes) -> tuple[int, http.client.HTTPResponse, bytes]:
    """Send a raw request, and return status, headers and body of the response."""
    address = urlsplit(service)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection, method=request.partition(b" ")[0].decode("latin-1"))
        response.begin()
        return response.status, response, response.read()


def test_no_request_causes_a_server_error(service: str) -> None:
    @by_chance(200)
    @given(METHODS, st.lists(SEGMENTS, max_size=6), st.none() | st.binary(max_size=12), HEADERS, BODIES)
    def ask(
        method: bytes, segments: list[bytes], query: bytes | None, headers: dict[bytes, bytes], body: bytes
    ) -> None:
        target = b"/" + b"/".join(segments) + (b"" if query is None else b"?" + quote(query, safe="&=+").encode())
        lines = [b"%b %b HTTP/1.1" % (method, target), b"Host: localhost", b"Connection: close"]
        lines += [b"%b: %b" % header for header in headers.items()]
        lines += [b"Content-Length: %d" % len(body)] if body else []
        status, response, content = answered(service, b"\r\n".join([*lines, b"", body]))
        assert status < 500
        if response.headers["Content-Type"] == "text/html; charset=utf-8":  # a page, or an answer to a request for one
            assert b"text/html" in headers.get(b"Accept", b"") or target.partition(b"?")[0] == b"/"
            return
        if status == 400 and response.headers["Content-Type"] == "text/plain; charset=utf-8":
            return  # Uvicorn refuses what is no HTTP
        assert response.headers["Content-Type"] == "application/json"
        if content:
            error = json.loads(content).get("error")
            assert (error is not None) == (status >= 400)
            if error is not None:
                assert error["code"] in CODES
                assert error["request_id"] == response.headers["X-Request-Id"]

    ask()


def test_a_body_that_was_damaged_is_refused_or_saved_as_it_is(service: str) -> None:
    whole = json.dumps(
        {"checkpoint_id": "c", "thread_id": "t", "state": {"messages": [{"role": "user", "content": "ü"}], "n": 1.5}}
    ).encode()

    @by_chance(80)
    @given(st.integers(0, len(whole)), st.integers(0, 4), st.binary(max_size=4))
    def ask(offset: int, removed: int, added: bytes) -> None:
        body = whole[:offset] + added + whole[offset + removed :]
        requests.delete(f"{service}/threads/t/checkpoints", timeout=60)
        headers = {"Content-Type": "application/json"}
        answer = requests.post(f"{service}/threads/t/checkpoints", data=body, headers=headers, timeout=60)
        there = requests.get(f"{service}/threads/t/checkpoints", timeout=60).json()["checkpoints"]
        if answer.status_code == 200:
            assert there == [answer.json()["checkpoint_id"]]
            state = requests.get(f"{service}/threads/t/checkpoints/{quote(there[0], safe='')}", timeout=60).json()
            assert state["state"] == json.loads(body)["state"]
        else:
            assert answer.status_code == 400
            assert there == []

    ask()
