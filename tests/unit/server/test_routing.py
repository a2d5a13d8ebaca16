"""Routing of raw paths to endpoints."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response

from locus_mysql.server.callers import Caller
from locus_mysql.server.problems import Problem
from locus_mysql.server.routing import Endpoint, Router, segments_of

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda one: one not in ".|..")


async def nothing(_request: Request) -> Response:
    return Response()


def router(*templates: str) -> Router:
    endpoints = [Endpoint(*one.split(" "), nothing) for one in templates]
    return Router(endpoints, lambda _: Caller("a", "t", may_write=True))


def scope(raw: bytes, root_path: str = "") -> dict[str, Any]:
    return {"raw_path": raw, "path": "wrong", "root_path": root_path}


@given(IDS, IDS)
def test_any_ids_come_out_of_a_path_as_they_went_in(thread_id: str, checkpoint_id: str) -> None:
    raw = f"/threads/{quote(thread_id, safe='')}/checkpoints/{quote(checkpoint_id, safe='')}".encode()
    found = router("GET /threads/{t}/checkpoints/{c}").find("GET", segments_of(scope(raw)))
    assert found is not None
    assert found[1] == {"t": thread_id, "c": checkpoint_id}


@pytest.mark.parametrize("root", ["", "/memory", "/a/b", "/ü x", "/memory/"])
def test_the_mount_path_of_the_application_is_removed(root: str) -> None:
    raw = quote(root.rstrip("/")).encode() + b"/threads/a%2Fb"
    assert segments_of(scope(raw, root)) == ["threads", "a/b"]
    assert segments_of({"path": "/memory/x", "root_path": "/memory"}) == ["x"]


@pytest.mark.parametrize("raw", [b"/%", b"/%z0", b"/a%2", b"/%ff", b"/%C3", b"/\xff"])
def test_invalid_percent_encoding_is_refused(raw: bytes) -> None:
    with pytest.raises(Problem) as refused:
        segments_of(scope(raw))
    assert refused.value.status == 400


@pytest.mark.parametrize("raw", [b"x/threads", b"http:/threads", b"*", b"http://localhost/threads"])
def test_an_unknown_path_matches_no_endpoint(raw: bytes) -> None:
    with pytest.raises(Problem) as refused:
        segments_of(scope(raw))
    assert refused.value.status == 404


def test_the_most_specific_template_wins() -> None:
    two = router("GET /threads/{t}", "GET /threads/checkpoints", "DELETE /threads/{t}")
    found = two.find("GET", ["threads", "checkpoints"])
    assert found is not None
    assert found[0].template == "/threads/checkpoints"
    assert two.find("HEAD", ["threads", "x"]) is not None
    assert two.find("GET", ["threads"]) is None
    with pytest.raises(Problem) as refused:
        two.find("POST", ["threads", "checkpoints"])
    assert refused.value.headers == {"Allow": "DELETE, GET, HEAD"}
