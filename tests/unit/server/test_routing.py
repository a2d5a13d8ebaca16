"""Routing of raw paths to endpoints."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.testclient import TestClient

from locus_mysql.server.access import Hosts
from locus_mysql.server.dispatching import Admission, Dispatcher
from locus_mysql.server.limits import Limits
from locus_mysql.server.problems import Problem
from locus_mysql.server.requests import Requests
from locus_mysql.server.routing import Endpoint, Group, explain_no_route, segments_of
from locus_mysql.server.tokens import Caller

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(lambda one: one not in ".|..")


def router(*templates: str) -> Starlette:
    """Return an application that answers the template and the path parameters of each request."""

    def endpoint(method: str, template: str) -> Endpoint:
        async def handler(request: Request) -> Response:
            return JSONResponse([template, request.path_params])

        return Endpoint(method, template, handler, "open")

    group = Group([endpoint(*one.split(" ")) for one in templates], lambda _: Caller("a", "t", may_write=True))
    app = Starlette(
        routes=Dispatcher(Limits(), Admission(2, 2)).routes([group]),
        middleware=[Middleware(Requests, Hosts(), 1.0)],
        exception_handlers={HTTPException: explain_no_route},
    )
    app.router.redirect_slashes = False
    app.state.groups, app.state.services, app.state.metrics = [group], Mock(), Mock()
    return app


def ask(app: Starlette, method: str, path: str) -> Any:
    with TestClient(app) as client:
        return client.request(method, path)


def scope(raw: bytes, root_path: str = "") -> dict[str, Any]:
    return {"raw_path": raw, "path": "wrong", "root_path": root_path}


@given(IDS, IDS)
def test_any_ids_come_out_of_a_path_as_they_went_in(thread_id: str, checkpoint_id: str) -> None:
    raw = f"/threads/{quote(thread_id, safe='')}/checkpoints/{quote(checkpoint_id, safe='')}".encode()
    assert segments_of(scope(raw)) == ["threads", thread_id, "checkpoints", checkpoint_id]


@pytest.mark.parametrize("one", ["a/b", "%2F", "ü \n", "\u20ac?#"])
def test_an_id_of_any_characters_reaches_its_endpoint(one: str) -> None:
    path = f"/threads/{quote(one, safe='')}/checkpoints/x"
    found = ask(router("GET /threads/{t}/checkpoints/{c}"), "GET", path).json()
    assert found[1] == {"t": one, "c": "x"}


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
    two = router("GET /threads/{t}", "GET /threads/checkpoints", "DELETE /threads/{t}", "DELETE /threads/checkpoints")
    assert ask(two, "GET", "/threads/checkpoints").json()[0] == "/threads/checkpoints"
    assert ask(two, "HEAD", "/threads/x").status_code == 200
    assert ask(two, "GET", "/threads").status_code == 404
    refused = ask(two, "POST", "/threads/checkpoints")
    assert (refused.status_code, refused.headers["allow"]) == (405, "DELETE, GET, HEAD")
