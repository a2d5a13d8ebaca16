"""Malformed, incomplete, slow, huge or hostile requests get a 4xx or no response, and change nothing."""

from __future__ import annotations

import contextlib
import gzip
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from locus_mysql import MySQLConfig
from locus_mysql.server.application import create_app
from locus_mysql.server.limits import Limits

from ..kept_schemas import KeptSchemas
from .raw import RawClient, state
from .running import running

#: Small sizes, so that tests reach each limit quickly, and long times, as clients may be slow on a busy machine.
LIMITS = Limits(body_bytes=100_000, values=1_000, body_s=300.0, requests=4)

PATH = "/threads/t/checkpoints"


@pytest.fixture(scope="module")
def database(kept_schemas: KeptSchemas) -> Iterator[str]:
    """One schema for the whole module, as no test changes anything."""
    name = kept_schemas.lend(("agents",))
    yield name
    kept_schemas.take_back(name, ("agents",))


@pytest.fixture(scope="module")
def config(server_dsn: str, database: str) -> MySQLConfig:
    return MySQLConfig.from_env({"LOCUS_MYSQL_DSN": server_dsn}, database=database)


@pytest.fixture(scope="module")
def url(config: MySQLConfig) -> Iterator[str]:
    with running(create_app(config, limits=LIMITS)) as base:
        yield base


@pytest.fixture(scope="module")
def hasty_url(config: MySQLConfig) -> Iterator[str]:
    """A service that waits at most one second for a body."""
    hasty = replace(LIMITS, body_s=1.0)
    with running(create_app(config, limits=hasty)) as base:
        yield base


@pytest.fixture
def client(url: str) -> Iterator[RawClient]:
    with RawClient(url) as one:
        yield one


@pytest.fixture(autouse=True)
def nothing_is_changed(run_sql: Callable[..., Any], database: str) -> Iterator[None]:
    """Check after every test of this module that no checkpoint was stored."""
    yield
    assert run_sql(f"SELECT COUNT(*) FROM {database}.locus_checkpoints") == ((0,),)


WRONG_BODIES: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 400, "not_json"),
    "half": (state()[:-1], 400, "not_json"),
    "two": (state() + state(), 400, "not_json"),
    "not UTF-8": (state().replace(b'"messages"', b'"\xff"'), 400, "not_json"),
    "UTF-16": (state().decode().encode("utf-16"), 400, "not_json"),
    "a byte order mark": (b"\xef\xbb\xbf" + state(), 400, "not_json"),
    "NaN": (state().replace(b"[]", b"[NaN]"), 400, "not_json"),
    "Infinity": (state().replace(b"[]", b"[-Infinity]"), 400, "not_json"),
    "a number beyond every float": (state().replace(b"[]", b"[1e400]"), 400, "invalid_input"),
    "an endless number": (state().replace(b"[]", b"[" + b"9" * 5_000 + b"]"), 400, "not_json"),
    "a comment": (b"/**/" + state(), 400, "not_json"),
    "single quotes": (state().replace(b'"', b"'"), 400, "not_json"),
    "a lone surrogate": (state().replace(b"[]", b'["\\ud800"]'), 400, "not_json"),
    "a control character": (state().replace(b"[]", b'["\x01"]'), 400, "not_json"),
    "too deep": (state().replace(b"[]", b"[" * 300 + b"]" * 300), 400, "not_json"),
    "far too deep": (b"[" * 40_000 + b"]" * 40_000, 413, "body_too_large"),
    "many lists": (state().replace(b"[]", b"[" + b"[]," * 2_000 + b"[]]"), 413, "body_too_large"),
    "a list": (b"[" + state() + b"]", 400, "invalid_input"),
    "a text": (b'"x"', 400, "invalid_input"),
    "null": (b"null", 400, "invalid_input"),
    "no state": (b'{"checkpoint_id": "c"}', 400, "invalid_input"),
    "a state that is a list": (state(state=[]), 400, "invalid_input"),
    "a state that is a text": (state(state="{}"), 400, "invalid_input"),
    "a state that is null": (state(state=None), 400, "invalid_input"),
    "metadata that is a list": (state(metadata=[]), 400, "invalid_input"),
    "large metadata": (state(metadata={"k": "x" * 70_000}), 400, "invalid_input"),
    "an id that is a number": (state(checkpoint_id=1), 400, "invalid_input"),
    "an empty id": (state(checkpoint_id=""), 400, "invalid_input"),
    "a long id": (state(checkpoint_id="x" * 129), 400, "invalid_input"),
    "an id with NUL": (state(checkpoint_id="a\0b"), 400, "invalid_input"),
    "another thread": (state(thread_id="u"), 400, "thread_mismatch"),
    "another thread by normal form": (state(thread_id="T"), 400, "thread_mismatch"),
    "a time that is a number": (state(created_at=1), 400, "invalid_input"),
    "too large": (state(state={"x": "x" * 100_000}), 413, "body_too_large"),
}


@pytest.mark.parametrize("name", WRONG_BODIES)
def test_a_wrong_body_is_refused_with_its_reason(name: str, client: RawClient) -> None:
    body, status, code = WRONG_BODIES[name]
    answer = client.post(PATH, body)
    assert (answer.status, answer.code) == (status, code)


def test_an_error_repeats_nothing_of_the_body(client: RawClient) -> None:
    for body in (
        state(state="SECRET"),
        state(state={"m": "SECRET"}) + b"SECRET",
        state(metadata={"k": "SECRET" * 20_000}),
    ):
        answer = client.post(PATH, body)
        assert 400 <= answer.status < 500
        assert b"SECRET" not in answer.body


WRONG_REQUESTS: dict[str, tuple[bytes, int, str]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "malformed_request"),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400, "malformed_request"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421, "wrong_host"),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400, "malformed_request"),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: HOST\r\nHost: evil\r\n\r\n", 400, "malformed_request"),
    "another host": (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "wrong_host"),
    "a host that begins like one of ours": (
        b"GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421, "wrong_host"
    ),
    "a host with a user": (b"GET /health HTTP/1.1\r\nHost: localhost@evil\r\n\r\n", 421, "wrong_host"),
    "huge headers": (
        b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"x" * 40_000 + b"\r\n\r\n", 431, "headers_too_large"
    ),
    "endless headers": (b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"x" * 300_000, 400, "malformed_request"),
    "two lengths": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        400, "malformed_request",
    ),
    "a length and chunks": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400, "malformed_request",
    ),
    "a negative length": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", 400, "malformed_request"
    ),
    "an unknown coding": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        400, "malformed_request",
    ),
    "a space before the colon": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Length : 4\r\n\r\n", 400, "malformed_request"
    ),
    "a folded header": (
        b"GET /health HTTP/1.1\r\nHost: HOST\r\nX: a\r\n\x00b\r\n\r\n", 400, "malformed_request"
    ),
    "a body where the endpoint takes none": (
        b"DELETE /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}", 400, "unexpected_body"
    ),
    "another page's form": (
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 2\r\n\r\n{}", 415, "unsupported_media_type",
    ),
    "another page": (
        b"DELETE /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nOrigin: http://evil.example\r\n\r\n",
        403, "cross_site",
    ),
    "another page of no origin": (
        b"DELETE /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nOrigin: null\r\n\r\n", 403, "cross_site"
    ),
    "another port's page": (
        b"DELETE /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nSec-Fetch-Site: same-site\r\n\r\n", 403, "cross_site"
    ),
    "a preflight": (
        b"OPTIONS /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nAccess-Control-Request-Method: DELETE\r\n\r\n",
        405, "method_not_allowed",
    ),
    "a wrong escape": (b"GET /threads/%zz/checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "an escape that is not UTF-8": (
        b"GET /threads/%ff/checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"
    ),
    "an escaped surrogate": (
        b"GET /threads/%ed%a0%80/checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"
    ),
    "an id with NUL": (b"GET /threads/a%00b/checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "an empty id": (b"GET /threads//checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "a long id": (
        b"GET /threads/" + b"x" * 513 + b"/checkpoints HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"
    ),
    "a path that climbs": (b"GET /static/../../etc/passwd HTTP/1.1\r\nHost: HOST\r\n\r\n", 404, "not_found"),
    "a whole URL": (b"GET http://evil.example/health HTTP/1.1\r\nHost: HOST\r\n\r\n", 404, "not_found"),
    "a negative limit": (b"GET /threads/t/checkpoints?limit=-1 HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "a limit of words": (b"GET /threads/t/checkpoints?limit=all HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "an empty limit": (b"GET /threads/t/checkpoints?limit= HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"),
    "two limits": (
        b"GET /threads/t/checkpoints?limit=1&limit=2 HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"
    ),
    "an unknown parameter": (
        b"GET /threads/t/checkpoints?order=x HTTP/1.1\r\nHost: HOST\r\n\r\n", 400, "invalid_input"
    ),
    "an unknown checkpoint": (b"GET /threads/t/checkpoints/c HTTP/1.1\r\nHost: HOST\r\n\r\n", 404, "not_found"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_REQUESTS)
def test_a_wrong_request_is_refused_with_its_reason(name: str, client: RawClient) -> None:
    data, status, code = WRONG_REQUESTS[name]
    client.send(data)
    answer = client.answer()
    assert answer.status == status
    # Uvicorn itself refuses what is no HTTP, as text.
    assert answer.headers["content-type"].startswith("text/plain") or answer.code == code


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get"])
def test_a_wrong_verb_is_answered_with_the_right_ones(method: str, client: RawClient) -> None:
    answer = client.request(method, PATH)
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, POST"


def test_head_is_answered_as_get_without_a_body(client: RawClient) -> None:
    asked = client.request("GET", PATH)
    answer = client.request("HEAD", PATH)
    assert (answer.status, answer.headers["content-length"]) == (200, str(len(asked.body)))
    assert client.request("GET", PATH).body == asked.body


def test_a_compressed_body_is_refused_before_it_is_read(client: RawClient) -> None:
    bomb = gzip.compress(b"[" * 50_000_000)
    answer = client.post(PATH, bomb[:50_000], "Content-Encoding: gzip")
    assert (answer.status, answer.code) == (415, "unsupported_encoding")


def test_a_body_whose_declared_length_is_too_large_is_refused_before_it_arrives(client: RawClient) -> None:
    client.send(
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100001\r\nExpect: 100-continue\r\n\r\n"
    )
    answer = client.answer()
    assert (answer.status, answer.code, answer.headers["connection"]) == (413, "body_too_large", "close")
    assert client.is_closed()


def test_a_body_that_turns_out_too_large_is_refused_when_it_does(client: RawClient) -> None:
    client.send(
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    with contextlib.suppress(ConnectionError):
        for _ in range(11):
            client.send(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
    answer = client.answer()
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert client.is_closed()


def test_a_body_in_chunks_is_as_good_as_a_whole_one(
    client: RawClient, run_sql: Callable[..., Any], database: str
) -> None:
    client.send(
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json; charset=UTF-8\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    for byte in state():
        client.send(b"1\r\n%c\r\n" % byte)
    client.send(b"0\r\n\r\n")
    assert client.answer().status == 200
    assert client.request("DELETE", PATH).status == 200


@pytest.mark.parametrize(
    "beginning",
    [
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (len(state()) + 1),
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(state()),
    ],
    ids=["length", "chunks"],
)
class TestHalfABody:
    """The sent bytes form a complete state, but the request announces a longer body."""

    def test_the_request_is_refused_when_the_rest_never_arrives(self, beginning: bytes, hasty_url: str) -> None:
        with RawClient(hasty_url) as client:
            client.send(beginning + state())
            answer = client.answer()
            assert (answer.status, answer.code) == (408, "body_too_slow")
            assert client.is_closed()

    @pytest.mark.parametrize("how", ["closed", "reset"])
    def test_the_service_answers_others_when_the_client_leaves(self, how: str, beginning: bytes, url: str) -> None:
        with RawClient(url) as client:
            client.send(beginning + state())
            if how == "reset":
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with RawClient(url) as other:
            assert other.request("GET", "/health").status == 200


def test_the_log_does_not_report_a_wrong_verb_as_an_unknown_path(
    client: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "locus_mysql.requests")
    request_id = client.request("PUT", PATH).headers["x-request-id"]
    (line,) = [one.getMessage() for one in caplog.records if request_id in one.getMessage()]
    assert line.startswith("? (no endpoint) 405 in ")


def test_slow_clients_do_not_lock_others_out(hasty_url: str) -> None:
    """Clients, ten times as many as allowed requests, send half a request each; others are served meanwhile."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(RawClient(hasty_url)) for _ in range(LIMITS.requests * 10)]
        for one in slow:
            one.send(
                b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
                b"Content-Length: 1000\r\n\r\n{"
            )
        for _ in range(5):
            with RawClient(hasty_url) as quick:
                assert quick.request("GET", PATH).status == 200
        assert {one.answer().status for one in slow} == {408}


def test_a_request_behind_a_refused_one_is_not_carried_out(client: RawClient) -> None:
    """A request that is hidden in a body is never executed."""
    hidden = b"GET /health HTTP/1.1\r\nHost: HOST\r\n\r\n"
    client.send(
        b"POST /threads/t/checkpoints HTTP/1.1\r\nHost: HOST\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
        % len(hidden)
    )
    client.send(hidden)
    assert client.answer().status == 415
    assert client.is_closed()


def test_a_clients_own_request_id_is_kept_if_it_is_safe(client: RawClient) -> None:
    assert client.request("GET", "/health", "X-Request-Id: my-id.1").headers["x-request-id"] == "my-id.1"
    for harmful in ("a b", "x" * 65, "a;b", "<script>", "ä", ""):
        given = client.request("GET", "/health", f"X-Request-Id: {harmful}").headers["x-request-id"]
        assert len(given) == 32, harmful


def test_no_id_breaks_out_of_a_header(client: RawClient) -> None:
    answer = client.request("GET", "/threads/a%0d%0aSet-Cookie:%20x=1/checkpoints/b%0d%0aX:%20y")
    assert answer.status == 404
    assert not {"set-cookie", "x"} & answer.headers.keys()


def test_every_answer_has_the_headers_that_browsers_need(client: RawClient) -> None:
    for path in ("/health", "/nowhere", PATH):
        headers = client.request("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
        assert not any(name.startswith("access-control") for name in headers)


def test_without_tokens_only_names_of_this_machine_are_answered(url: str) -> None:
    port = url.rpartition(":")[2]
    with RawClient(url) as client:
        for name in (
            "localhost",
            f"localhost:{port}",
            "LocalHost.",
            "127.0.0.1",
            "[::1]",
            "127.9.9.9:1",
            "a.localhost",
        ):
            client.send(b"GET /health HTTP/1.1\r\nHost: %b\r\n\r\n" % name.encode())
            assert client.answer().status == 200, name
