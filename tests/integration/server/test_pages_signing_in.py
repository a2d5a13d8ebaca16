"""Signing in to the pages: cookies, their users and expiry; other sites cannot act for a user."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Literal

import httpx
import pytest

from locus_mysql import CheckpointStore
from locus_mysql.server.pages import sign_in
from locus_mysql.server.pages.sign_in import COOKIE, LASTS_S
from locus_mysql.server.tokens import LOOK_S, NewToken, Tokens, new_token

from ..conftest import MakeConfig
from .conftest import OpenClient
from .test_pages import checked_page

THREAD = "/inspect/thread?family=dicts&thread=t"


def token(name: str = "ann", tenant: str = "acme", access: Literal["read", "write"] = "write") -> NewToken:
    return new_token(name, tenant, access)


async def signed_in(client: httpx.AsyncClient, secret: str, onward: str = "/") -> httpx.Response:
    return await client.post("/login", data={"token": secret, "next": onward})


def cookie_of(response: httpx.Response) -> str:
    return SimpleCookie(response.headers["set-cookie"])[COOKIE].value


@pytest.fixture
def ann() -> NewToken:
    return token()


@pytest.fixture
def guarded(open_client: OpenClient, ann: NewToken) -> httpx.AsyncClient:
    """Return a client of a service with Ann's token that has not signed in."""
    return open_client(tokens=Tokens(ann.entry), allow_writes=True)


async def test_a_page_without_sign_in_redirects_to_the_form_and_back(guarded: httpx.AsyncClient, ann: NewToken) -> None:
    response = await guarded.get(THREAD)
    assert response.status_code == 303
    form = checked_page(await guarded.get(response.headers["location"])).inputs()
    assert form["next"] == THREAD

    response = await signed_in(guarded, ann.secret, form["next"])

    assert (response.status_code, response.headers["location"]) == (303, THREAD)
    assert (await guarded.get("/")).status_code == 200


async def test_a_stranger_learns_nothing(guarded: httpx.AsyncClient) -> None:
    response = await signed_in(guarded, token().secret)

    page = checked_page(response, 403)
    assert "This token is not valid" in page.text
    assert "set-cookie" not in response.headers
    for tag, attributes in page.elements:
        assert tag != "input" or attributes.get("name") != "token" or "value" not in attributes


async def test_a_cookie_is_not_for_scripts_nor_for_other_sites_and_holds_no_token(
    guarded: httpx.AsyncClient, ann: NewToken
) -> None:
    response = await signed_in(guarded, ann.secret)

    header = response.headers["set-cookie"].lower()
    assert "httponly" in header
    assert "samesite=lax" in header
    assert "path=/" in header
    assert f"max-age={LASTS_S}" in header
    assert "secure" not in header  # over unencrypted HTTP, a browser would not return it
    assert ann.secret.lower() not in header
    assert ann.secret not in str(response.headers)


@pytest.mark.parametrize(
    "content", ["{}.{}", "never.{}.{}", "{0}9999999999999999999.{1}.{2}", "{0}.x.{2}", "-1.{1}.{2}"]
)
async def test_a_signed_cookie_with_other_content_is_nobodys(
    open_client: OpenClient, ann: NewToken, content: str
) -> None:
    client = open_client(tokens=Tokens(ann.entry), cookie_key=b"k" * 32)
    ends_at, nonce, digest, _ = cookie_of(await signed_in(client, ann.secret)).split(".")
    text = content.format(ends_at, nonce, digest)
    signature = hmac.new(b"k" * 32, f"cookie\0{text}".encode(), hashlib.sha256).hexdigest()
    client.cookies.clear()
    answer = await client.get("/", headers={"Cookie": f"{COOKIE}={text}.{signature}"})
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/login")


async def test_services_with_the_same_key_take_each_others_cookies_and_forms(
    open_client: OpenClient, ann: NewToken
) -> None:
    keys = (b"k" * 32, b"k" * 32, b"o" * 32)
    one, same, other = (open_client(tokens=Tokens(ann.entry), cookie_key=key) for key in keys)
    cookie = {"Cookie": f"{COOKIE}={cookie_of(await signed_in(one, ann.secret))}"}
    page = await same.get("/", headers=cookie)
    assert page.status_code == 200
    assert (await other.get("/", headers=cookie)).status_code == 303
    form = {"form_secret": checked_page(page).inputs()["form_secret"]}
    assert (await one.post("/logout", data=form, headers=cookie)).headers["location"] == "/login"


async def test_before_signing_in_pages_reveal_nothing_about_permitted_changes(
    guarded: httpx.AsyncClient, ann: NewToken
) -> None:
    for address in ("/login", "/nothing"):
        response = await guarded.get(address, headers={"Accept": "text/html"})
        assert "Read-only" not in response.text
        assert "Changes are allowed" not in response.text
    await signed_in(guarded, ann.secret)
    assert "Changes are allowed" in (await guarded.get("/")).text


async def test_a_cookie_ends_by_itself(
    guarded: httpx.AsyncClient, ann: NewToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in, "LASTS_S", -1)
    cookie = cookie_of(await signed_in(guarded, ann.secret))
    assert (await guarded.get("/", headers={"Cookie": f"{COOKIE}={cookie}"})).status_code == 303


async def test_signing_out_ends_a_cookie_also_for_who_kept_it(guarded: httpx.AsyncClient, ann: NewToken) -> None:
    cookie = cookie_of(await signed_in(guarded, ann.secret))
    form = checked_page(await guarded.get("/")).inputs()

    response = await guarded.post("/logout", data={"form_secret": form["form_secret"]})

    assert response.status_code == 303
    assert (await guarded.get("/", headers={"Cookie": f"{COOKIE}={cookie}"})).status_code == 303


async def test_a_token_that_is_taken_away_ends_its_cookies(
    open_client: OpenClient, ann: NewToken, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(ann.entry)
    client = open_client(tokens=Tokens(path=file))
    await signed_in(client, ann.secret)
    assert (await client.get("/")).status_code == 200

    file.write_text(token("ben").entry + "# rolled\n")

    end = time.monotonic() + 60 + LOOK_S
    while (await client.get("/")).status_code != 303:
        assert time.monotonic() < end


@pytest.mark.parametrize(
    "onward", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb: c", ""]
)
async def test_signing_in_never_redirects_to_another_site(
    guarded: httpx.AsyncClient, ann: NewToken, onward: str
) -> None:
    response = await signed_in(guarded, ann.secret, onward)
    assert response.headers["location"] == "/"


async def test_programs_are_not_let_in_by_a_cookie_nor_people_by_a_header(
    guarded: httpx.AsyncClient, ann: NewToken
) -> None:
    headers = {"Authorization": f"Bearer {ann.secret}"}
    assert (await guarded.get("/", headers=headers)).status_code == 303
    await signed_in(guarded, ann.secret)
    assert (await guarded.get("/")).status_code == 200
    assert (await guarded.get("/threads/t/checkpoints")).status_code == 401
    assert (await guarded.get("/threads/t/checkpoints", headers=headers)).status_code == 200


async def test_without_tokens_nobody_signs_in(client: httpx.AsyncClient) -> None:
    assert (await client.get("/")).status_code == 200
    response = await client.get("/login")
    assert (response.status_code, response.headers["location"]) == (303, "/")


async def test_a_signed_in_user_sees_the_tenant_of_the_token(
    open_client: OpenClient, make_config: MakeConfig, ann: NewToken
) -> None:
    for tenant in ("acme", "other"):
        async with CheckpointStore(make_config(driver="pymysql", tenant=tenant)) as store:
            await store.save(f"of {tenant}", {})
    client = open_client(tokens=Tokens(ann.entry))
    await signed_in(client, ann.secret)

    text = checked_page(await client.get("/")).text

    assert "of acme" in text
    assert "of other" not in text


async def test_no_page_has_a_token_in_it(guarded: httpx.AsyncClient, ann: NewToken) -> None:
    await signed_in(guarded, ann.secret)
    for address in ("/", "/inspect/statistics", "/login?next=/", "/nothing"):
        response = await guarded.get(address)
        assert not re.search("lmt_[A-Za-z0-9_-]{20}", response.text + str(response.headers))
