"""Rules for every endpoint in the registries, so that no new endpoint is left untested.

They cover wrong credentials, ids of another tenant, read-only tokens, forged cookies, and pages of other sites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from ci.support_desk import THREAD, fill, fill_the_rest
from locus_mysql import Database
from locus_mysql.server.application import create_app
from locus_mysql.server.pages.sign_in import COOKIE
from locus_mysql.server.routing import Endpoint
from locus_mysql.server.tokens import NewToken, Tokens, new_token

from ..conftest import MakeConfig
from .conftest import OpenClient
from .test_pages import PAGES, checked_page
from .test_pages_signing_in import cookie_of, signed_in

pytestmark = pytest.mark.kept_tables("agents")

#: A text that all data of tenant acme contains, and no request of other tenants.
MARKER = "xyzzy-of-acme"

STATE = {"messages": [{"role": "user", "content": MARKER}], "run_id": MARKER}

#: A request for each operation of the API: its query and its body. `IDS` has the values of the parameters in its
#: path.
REQUESTS: dict[tuple[str, str], tuple[dict[str, Any], Any]] = {
    ("POST", "/threads/{thread_id}/checkpoints"): ({}, {"checkpoint_id": "new", "state": {"messages": []}}),
    ("GET", "/threads/{thread_id}/checkpoints"): ({"limit": 5}, None),
    ("DELETE", "/threads/{thread_id}/checkpoints"): ({}, None),
    ("GET", "/threads/{thread_id}/checkpoints/{checkpoint_id}"): ({}, None),
    ("DELETE", "/threads/{thread_id}/checkpoints/{checkpoint_id}"): ({}, None),
    ("POST", "/threads/checkpoints"): ({}, {"checkpoint_id": "new", "state": {"messages": []}}),
    ("GET", "/threads/checkpoints"): ({}, None),
    ("DELETE", "/threads/checkpoints"): ({}, None),
    ("GET", "/threads/checkpoints/{checkpoint_id}"): ({}, None),
    ("DELETE", "/threads/checkpoints/{checkpoint_id}"): ({}, None),
    ("POST", "/checkpoints"): ({}, {"checkpoint_id": "new", "state": {"messages": []}}),
    ("GET", "/checkpoints"): ({}, None),
    ("DELETE", "/checkpoints"): ({}, None),
    ("GET", "/checkpoints/{checkpoint_id}"): ({}, None),
    ("DELETE", "/checkpoints/{checkpoint_id}"): ({}, None),
    ("GET", "/families"): ({}, None),
    ("GET", "/threads"): ({"pattern": "*"}, None),
    ("GET", "/threads/{thread_id}"): ({}, None),
    ("GET", "/threads/{thread_id}/state"): ({}, None),
    ("DELETE", "/threads/{thread_id}"): ({}, None),
    ("GET", "/threads/{thread_id}/history"): ({}, None),
    ("GET", "/threads/{thread_id}/metadata"): ({"checkpoint_id": "c"}, None),
    ("POST", "/threads/{thread_id}/copy"): ({}, {"to": "copy"}),
    ("GET", "/search"): ({"q": "acme"}, None),
    ("GET", "/metadata"): ({"key": "tag", "value": "all"}, None),
    ("POST", "/vacuum"): ({}, {"older_than_days": 300}),
    ("GET", "/memories/item"): ({"namespace": "users", "key": "k"}, None),
    ("PUT", "/memories/item"): ({}, {"namespace": ["users"], "key": "new", "value": "v"}),
    ("DELETE", "/memories/item"): ({"namespace": "users", "key": "k"}, None),
    ("POST", "/memories/batch"): ({}, {"deleted": [{"namespace": ["users"], "key": "l"}]}),
    ("GET", "/memories/keys"): ({"namespace": "users"}, None),
    ("GET", "/memories/namespaces"): ({}, None),
    ("POST", "/memories/search"): ({}, {"query": "acme"}),
    ("GET", "/sessions"): ({}, None),
    ("GET", "/sessions/{session_id}"): ({}, None),
    ("DELETE", "/sessions/{session_id}"): ({}, None),
    ("POST", "/sessions/{session_id}/touch"): ({}, {}),
    ("GET", "/sessions/{session_id}/keys"): ({}, None),
    ("GET", "/sessions/{session_id}/variables"): ({}, None),
    ("PUT", "/sessions/{session_id}/variables"): ({}, {"variables": {"other": 1}}),
    ("DELETE", "/sessions/{session_id}/variables"): ({}, None),
    ("GET", "/sessions/{session_id}/variables/{key}"): ({}, None),
    ("PUT", "/sessions/{session_id}/variables/{key}"): ({}, {"value": 1}),
    ("DELETE", "/sessions/{session_id}/variables/{key}"): ({}, None),
    ("GET", "/sessions/{session_id}/variables/{key}/ttl"): ({}, None),
    ("POST", "/sessions/{session_id}/variables/{key}/increment"): ({}, {"by": 2}),
    ("POST", "/sessions/{session_id}/variables/{key}/compare-and-set"): ({}, {"value": 2}),
    ("GET", "/sessions/{session_id}/task"): ({}, None),
    ("PUT", "/sessions/{session_id}/task"): ({}, {"task_id": "t", "description": "d", "status": "pending"}),
    ("DELETE", "/sessions/{session_id}/task"): ({}, None),
    ("GET", "/sessions/{session_id}/scratchpad"): ({}, None),
    ("POST", "/sessions/{session_id}/scratchpad"): ({}, {"content": "note"}),
    ("DELETE", "/sessions/{session_id}/scratchpad"): ({}, None),
    ("GET", "/sessions/{session_id}/checkpoints"): ({}, None),
    ("POST", "/sessions/{session_id}/checkpoints"): ({}, {"label": "l"}),
    ("POST", "/sessions/{session_id}/checkpoints/{checkpoint_id}/restore"): ({}, None),
    ("DELETE", "/sessions/{session_id}/checkpoints/{checkpoint_id}"): ({}, None),
}

#: Operations in an order in which each finds its data: deletions last, from inner to outer resources.
IN_ORDER = sorted(REQUESTS, key=lambda one: (one[0] == "DELETE", -one[1].count("/")))

#: Endpoints beside the pages in `PAGES`, which the pages' scripts and links request.
BESIDE_PAGES = {
    "/inspect/state.json": f"/inspect/state.json?family=agents&thread={THREAD}",
    "/inspect/events": f"/inspect/events?family=agents&thread={THREAD}",
    "/inspect/zone": "/inspect/zone?next=/",
}

FOREIGN: tuple[dict[str, str], ...] = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


def registries(**options: Any) -> tuple[list[Endpoint], list[Endpoint]]:
    """Return the endpoints of the API and those of the pages."""
    with Database("mysql://nobody@localhost/nowhere", driver="pymysql") as database:
        api, pages = create_app(database, vacuum=True, **options).state.groups
    return list(api.endpoints), list(pages.endpoints)


API, WEB = registries()


@pytest.fixture
def made() -> dict[str, NewToken]:
    return {
        "acme": new_token("ann", "acme", "write"),
        "reader": new_token("reader", "acme", "read"),
        "other": new_token("bob", "other", "write"),
    }


@pytest.fixture
def client(open_client: OpenClient, made: dict[str, NewToken]) -> httpx.AsyncClient:
    tokens = Tokens("\n".join(one.entry for one in made.values()))
    return open_client(tokens=tokens, vacuum=True, allow_writes=True)


def bearer(token: NewToken) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.secret}"}


async def asked(
    client: httpx.AsyncClient, operation: tuple[str, str], session_checkpoint: str = "c", **options: Any
) -> httpx.Response:
    """Send the request of an operation on the data that `keep` stores."""
    method, template = operation
    query, body = REQUESTS[operation]
    of_session = template.startswith("/sessions")
    key = "new" if template.endswith("compare-and-set") else "n" if template.endswith("increment") else "k"
    whole = operation == ("DELETE", "/threads/{thread_id}")
    ids = {
        "thread_id": "whole" if whole else "t",
        "session_id": "s",
        "key": key,
        "checkpoint_id": session_checkpoint if of_session else "c",
    }
    path = template.format(**{name: quote(value, safe="") for name, value in ids.items()})
    return await client.request(method, path, params=query, json=body, **options)


async def keep(client: httpx.AsyncClient, token: NewToken) -> str:
    """Store data of every kind for a tenant, with the marker in it; return the id of the session's checkpoint."""

    async def send(method: str, path: str, body: Any) -> Any:
        answer = await client.request(method, path, json=body, headers=bearer(token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    for path in ("/threads/t/checkpoints", "/threads/whole/checkpoints", "/threads/checkpoints", "/checkpoints"):
        for name in ("b", "c"):
            saved = {"checkpoint_id": name, "state": STATE, "metadata": {"tag": "all", "of": MARKER}}
            await send("POST", path, saved)
    for key in "kl":
        await send("PUT", "/memories/item", {"namespace": ["users", MARKER], "key": key, "value": MARKER})
        await send("PUT", "/memories/item", {"namespace": ["users"], "key": key, "value": {"text": MARKER}})
    await send("PUT", "/sessions/s/variables", {"variables": {"k": MARKER, "n": 1, MARKER: 1}})
    await send("PUT", "/sessions/s/task", {"task_id": MARKER, "description": MARKER, "status": "pending"})
    await send("POST", "/sessions/s/scratchpad", {"content": MARKER})
    made = await send("POST", "/sessions/s/checkpoints", {"label": MARKER})
    await client.get("/search", params={"q": "acme"}, headers=bearer(token))  # the search indexes the text first
    await client.post("/memories/search", json={"query": "acme"}, headers=bearer(token))
    return str(made["checkpoint_id"])


def test_every_operation_has_a_request_here() -> None:
    assert {*REQUESTS} == {(one.method, one.template) for one in API if one.access != "open"}
    assert {one.template for one in API if one.access == "open"} == {"/health", "/openapi.json"}


def test_every_page_has_an_address_here() -> None:
    known = {address.partition("?")[0] for address in PAGES.values()} | {*BESIDE_PAGES}
    assert {one.template for one in WEB if one.method == "GET" and one.access != "open"} == known
    assert {one.template for one in WEB if one.access == "open"} == {"/login", "/static/{name}"}
    assert {one.template for one in WEB if one.method != "GET"} == {
        "/login",
        "/logout",
        "/inspect/copy",
        "/inspect/delete",
        "/inspect/zone",
    }
    assert {one.method for one in WEB} == {"GET", "POST"}


async def test_no_operation_takes_wrong_credentials(
    client: httpx.AsyncClient, made: dict[str, NewToken], table_contents: Callable[[], Any]
) -> None:
    await keep(client, made["acme"])
    secret, before = made["acme"].secret, table_contents()
    wrong = [
        None, "", "Bearer", "Bearer x", "bearer lmt_", "Basic", "Basic !!!!", "Basic bm9jb2xvbg==", "Basic Og==",
        "Digest username=x", secret, f"Bearer {secret}x", f"Bearer x {secret}", f"Bearer {secret[:-1]}",
        f"Basic {secret}", f"Negotiate {secret}",
    ]  # fmt: skip
    for operation in IN_ORDER:
        for header in wrong:
            answer = await asked(client, operation, headers={} if header is None else {"Authorization": header})
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not_authenticated"), operation
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert MARKER not in answer.text
            assert secret not in answer.text
    assert (await client.get("/health")).status_code == 200
    assert table_contents() == before


@pytest.mark.kept_tables
async def test_nothing_that_only_reads_makes_tables(open_client: OpenClient, table_contents: Callable[[], Any]) -> None:
    client = open_client(vacuum=True)
    for one in API:
        if one.without_tables is not None:
            answer = await asked(client, (one.method, one.template))
            assert answer.status_code == (404 if isinstance(one.without_tables, str) else 200), one.template
            assert answer.status_code == 404 or answer.json() == one.without_tables
    for address in PAGES.values():
        answer = await client.get(address)
        assert answer.status_code in {200, 403, 404}, address
        checked_page(answer, answer.status_code)
    assert table_contents() == {}


async def test_no_operation_shows_or_changes_data_of_another_tenant(
    client: httpx.AsyncClient, made: dict[str, NewToken], table_contents: Callable[[], Any]
) -> None:
    session_checkpoint = await keep(client, made["acme"])
    before = table_contents()
    for operation in IN_ORDER:
        answer = await asked(client, operation, session_checkpoint, auth=("whoever", made["other"].secret))
        assert answer.status_code in {200, 404, 409}, (operation, answer.text)
        assert MARKER not in answer.text, operation
        assert MARKER not in str(answer.headers), operation
    after = table_contents()
    for table, rows in before.items():
        assert [row for row in rows if row not in after[table]] == [], table
    for operation in IN_ORDER:  # each request works for the tenant that owns the ids
        answer = await asked(client, operation, session_checkpoint, headers=bearer(made["acme"]))
        assert answer.status_code == 200, (operation, answer.text)


async def test_no_operation_writes_with_a_token_for_reading(
    client: httpx.AsyncClient, made: dict[str, NewToken], table_contents: Callable[[], Any]
) -> None:
    session_checkpoint = await keep(client, made["acme"])
    before = table_contents()
    access = {(one.method, one.template): one.access for one in API}
    for operation in IN_ORDER:
        answer = await asked(client, operation, session_checkpoint, headers=bearer(made["reader"]))
        if access[operation] == "write":
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "read_only"), operation
        else:
            assert answer.status_code == 200, (operation, answer.text)
    assert table_contents() == before


async def test_nothing_is_written_for_a_page_of_another_site(
    open_client: OpenClient, made: dict[str, NewToken], table_contents: Callable[[], Any]
) -> None:
    """Also without tokens, when a browser on this machine has all permissions."""
    client = open_client(vacuum=True, allow_writes=True)
    await keep(client, made["acme"])
    before = table_contents()
    for headers in FOREIGN:
        for operation in IN_ORDER:
            if operation[0] != "GET":
                answer = await asked(client, operation, headers=headers)
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site"), operation
        for one in WEB:
            if one.method != "GET":
                form = {"family": "agents", "thread": "t", "target": "new", "token": "lmt_"}
                assert (await client.post(one.template, data=form, headers=headers)).status_code == 403, one.template
    assert table_contents() == before


async def test_no_page_takes_a_cookie_that_was_forged(client: httpx.AsyncClient, made: dict[str, NewToken]) -> None:
    cookie = cookie_of(await signed_in(client, made["acme"].secret))
    ends_at, nonce, digest, signature = cookie.split(".")
    forged = [
        None, "", "...", "x", cookie[:-1], f"{cookie}0", f"{cookie}.", "é" * 9,
        ".".join([str(int(ends_at) + 1), nonce, digest, signature]),
        ".".join([ends_at, nonce[::-1], digest, signature]),
        ".".join([ends_at, nonce, "0" * 64, signature]), ".".join([ends_at, nonce, digest, "0" * 64]),
        ".".join([ends_at, nonce, digest, ""]),
    ]  # fmt: skip
    addresses = [*{address.partition("?")[0]: address for address in PAGES.values()}.values(), *BESIDE_PAGES.values()]
    client.cookies.clear()
    for one in forged:
        headers = {} if one is None else {"Cookie": f"{COOKIE}={one}".encode()}
        for address in addresses:
            answer = await client.get(address, headers=headers)
            assert answer.status_code in {303, 401, 403}, (address, one)
            assert "/login" in answer.headers.get("location", "/login")
        for endpoint in WEB:
            if endpoint.method != "GET" and endpoint.access != "open":
                form = {"family": "agents", "thread": "t", "target": "new"}
                answer = await client.post(endpoint.template, data=form, headers=headers)
                assert answer.status_code in {303, 401, 403}, endpoint.template
                assert COOKIE not in answer.headers.get("set-cookie", "")
    signed = {"Cookie": f"{COOKIE}={cookie}"}
    assert (await client.get("/", headers=signed)).status_code == 200


async def test_no_form_is_taken_without_its_secret(
    client: httpx.AsyncClient, made: dict[str, NewToken], table_contents: Callable[[], Any]
) -> None:
    await keep(client, made["acme"])
    secrets = []
    for name in ("other", "acme"):
        client.cookies.clear()
        await signed_in(client, made[name].secret)
        secrets.append(checked_page(await client.get("/inspect/zone")).inputs()["form_secret"])
    of_other, own = secrets
    before = table_contents()
    for one in WEB:
        if one.method != "GET" and one.access != "open":
            form = {"family": "agents", "thread": "t", "target": "new"}
            for secret in ({}, {"form_secret": ""}, {"form_secret": "0" * 64}, {"form_secret": of_other}):
                checked_page(await client.post(one.template, data={**form, **secret}), 403)
            assert (await client.post(one.template, json={**form, "form_secret": own})).status_code == 415
    assert table_contents() == before


@pytest.mark.slow
async def test_a_state_to_be_had_whole_is_nobody_elses(open_client: OpenClient, make_config: MakeConfig) -> None:
    """Checks the JSON of a state; `test_pages` covers the pages, and `test_pages_live` live events."""
    async with Database(make_config(driver="pymysql")) as database:
        async for _ in fill(database, "acme"):
            pass
        await fill_the_rest(database, "acme")
    address = BESIDE_PAGES["/inspect/state.json"]
    other = await open_client(store={"tenant": "other"}).get(address)
    assert other.status_code == 404
    assert "refund" not in other.text
    own = await open_client(store={"tenant": "acme"}).get(address)
    assert own.status_code == 200
    assert "refund" in own.text
