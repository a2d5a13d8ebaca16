"""Requests are accepted only from pages of the same host, port and scheme."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from locus_mysql.server.access import Hosts
from locus_mysql.server.problems import Problem


def refused(host: str, origin: str, scheme: str = "http") -> bool:
    headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    scope = {
        "type": "http", "method": "POST", "headers": headers, "scheme": scheme, "path": "/", "query_string": b"",
        "server": ("127.0.0.1", 8765),
    }  # fmt: skip
    try:
        Hosts(loopback=True, names=["memory.example"]).check(Request(scope))
    except Problem as problem:
        return problem.code == "cross_site"
    return False


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("localhost:8765", "http://localhost:8765", "http"),
        ("LOCALHOST.:8765", "http://localhost:8765", "http"),
        ("localhost", "http://localhost", "http"),
        ("localhost:80", "http://localhost", "http"),
        ("localhost", "http://localhost:80", "http"),
        ("[::1]:8765", "http://[::1]:8765", "http"),
        ("localhost:8765", "https://localhost:8765", "https"),
        ("memory.example", "https://memory.example", "https"),
        ("memory.example", "https://memory.example", "http"),
        ("memory.example:443", "https://memory.example", "http"),
        ("memory.example:8443", "https://memory.example:8443", "http"),
    ],
)
def test_a_page_of_the_service_may_send_requests(host: str, origin: str, scheme: str) -> None:
    assert not refused(host, origin, scheme)


@pytest.mark.parametrize(
    ("host", "origin", "scheme"),
    [
        ("localhost:8765", "http://localhost:3000", "http"),
        ("localhost:8765", "http://localhost", "http"),
        ("localhost", "http://localhost:3000", "http"),
        ("localhost:8765", "https://localhost", "http"),
        ("localhost:8765", "http://127.0.0.1:8765", "http"),
        ("memory.example", "http://memory.example", "https"),
        ("memory.example", "https://memory.example:8443", "https"),
        ("memory.example", "https://evil.example", "https"),
        ("localhost:8765", "null", "http"),
        ("localhost:8765", "", "http"),
        ("localhost:8765", "http://localhost:8765x", "http"),
        ("localhost:8765", "http://localhost:99999", "http"),
        ("localhost:8765", "ftp://localhost:8765", "http"),
        ("localhost:8765", "//localhost:8765", "http"),
    ],
)
def test_a_page_of_another_port_name_or_scheme_may_not(host: str, origin: str, scheme: str) -> None:
    assert refused(host, origin, scheme)
