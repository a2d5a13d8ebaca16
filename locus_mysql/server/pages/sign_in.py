"""Signing in to the pages: a user enters a token once, and a signed cookie identifies the user from then on.

The cookie holds the token's digest, never the token, and its expiry. The key that signs it is generated when the
service starts and stored nowhere, so a restart signs all users out, unless a key is given, which several processes may
share. Revoking a token ends its cookies at once, as every request looks its digest up. The API does not accept cookies,
so a page of another site cannot use a browser's cookie to call it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ...errors import ConfigError
from ..problems import Problem, invalid
from ..routing import Endpoints, LenientQuery
from ..tokens import Caller, Tokens, digest_of
from .rendering import ZONE_COOKIE, ZONE_KEPT_S, Links, name_of_zone, page, zones

#: A record of the file: nonce and end of a sign-in.
_RECORD = struct.Struct("<16sq")

COOKIE = "locus_mysql_inspector"

#: Lifetime of a cookie in seconds: a working day.
LASTS_S = 8 * 3600

#: The content of a cookie: when it ends, in seconds since 1970, its nonce, and the digest of its token.
_CONTENT = re.compile(r"([0-9]{1,12})\.([0-9a-f]{32})\.(.*)")

#: Length of the shortest key for cookies, in bytes: that of a SHA-256 digest.
KEY_BYTES = 32

#: Targets allowed after signing in: paths of this site, and nothing that a browser takes for another site.
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")
_FORM_FIELDS = 50

PAGES = Endpoints(base=LenientQuery)


class EndedSignIns:
    """The nonces of ended sign-ins, kept until the sign-ins would have expired.

    Any worker may receive a user's request, and a cookie that was signed out must not be valid in another worker. So
    each worker appends to one file, and reads what the others have appended.

    Args:
        path: The file; None in a single process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._ends: dict[bytes, int] = {}
        self._lock = threading.Lock()
        self._read_bytes = 0

    def add(self, nonce: str, ends_at: int) -> None:
        """Record that a sign-in was ended.

        Args:
            nonce: Its identifier, 32 hexadecimal digits.
            ends_at: When it would have expired, in seconds since 1970.
        """
        with self._lock:
            self._keep({bytes.fromhex(nonce): ends_at})
        if self._path is not None:
            with self._path.open("ab", buffering=0) as file:
                file.write(_RECORD.pack(bytes.fromhex(nonce), ends_at))

    def __contains__(self, nonce: str) -> bool:
        with self._lock:
            self._catch_up()
            return bytes.fromhex(nonce) in self._ends

    def _catch_up(self) -> None:
        """Read the records appended since the last time."""
        if self._path is None or not self._path.exists():
            return
        size = self._path.stat().st_size
        size -= size % _RECORD.size
        if size <= self._read_bytes:
            return
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            appended = file.read(size - self._read_bytes)
        self._keep(dict(_RECORD.iter_unpack(appended)))
        self._read_bytes = size

    def _keep(self, ended: dict[bytes, int]) -> None:
        now = time.time()
        self._ends = {nonce: ends_at for nonce, ends_at in (self._ends | ended).items() if ends_at > now}


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user of the pages.

    Attributes:
        caller: The user.
        nonce: Identifies this sign-in; empty where users need not sign in.
        ends_at: Its expiry, in seconds since 1970.
    """

    caller: Caller
    nonce: str = ""
    ends_at: int = 0


class SignIns:
    """Creates and checks cookies, and the secrets in forms.

    Args:
        tokens: The tokens; None if users need none.
        anyone: The caller that every user is then.
        key: The key that signs cookies; None generates one.
        sign_outs: A file of ended sign-ins that several processes share.

    Raises:
        ConfigError: The key is too short.
    """

    def __init__(
        self, tokens: Tokens | None, anyone: Caller, key: bytes | None = None, sign_outs: Path | None = None
    ) -> None:
        if key is not None and len(key) < KEY_BYTES:
            raise ConfigError(f"The cookie key has {len(key)} bytes; it needs at least {KEY_BYTES} random bytes.")
        self.tokens = tokens
        self.anyone = anyone
        self._key = key or secrets.token_bytes(KEY_BYTES)
        self._ended = EndedSignIns(sign_outs)

    def begin(self, secret: str) -> str | None:
        """Return the cookie for a token; None if the token is invalid."""
        if self.tokens is None or self.tokens.find(secret) is None:
            return None
        content = f"{int(time.time()) + LASTS_S}.{secrets.token_hex(16)}.{digest_of(secret)}"
        return f"{content}.{self._signature('cookie', content)}"

    def read(self, cookie: str) -> SignedIn | None:
        """Return the user of a cookie; None if it is forged or expired, or its token was revoked."""
        content, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature("cookie", content).encode()):
            return None
        parts = _CONTENT.fullmatch(content)  # another version or program may have signed something else with the key
        if parts is None or self.tokens is None:
            return None
        ends_at, nonce, digest = int(parts[1]), parts[2], parts[3]
        if ends_at <= time.time() or nonce in self._ended:
            return None
        caller = self.tokens.of_digest(digest)
        return None if caller is None else SignedIn(caller, nonce, ends_at)

    def end(self, cookie: str) -> None:
        """End the sign-in of a cookie."""
        found = self.read(cookie)
        if found is not None:
            self._ended.add(found.nonce, found.ends_at)

    def authenticate(self, request: Request) -> Caller:
        """Identify the user of a request by its cookie.

        Raises:
            Problem: The user has not signed in.
        """
        signed_in = SignedIn(self.anyone) if self.tokens is None else self.read(request.cookies.get(COOKIE, ""))
        if signed_in is None:
            raise Problem("not_signed_in", "Sign in with a token first.")
        request.state.signed_in = signed_in
        request.state.form_secret = self.form_secret(signed_in)
        request.state.zone = name_of_zone(request)
        return signed_in.caller

    def form_secret(self, signed_in: SignedIn) -> str:
        """Return the secret that forms which change something must contain, so that other sites cannot forge them."""
        return self._signature("form", signed_in.nonce)

    def _signature(self, purpose: Literal["cookie", "form"], content: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{content}".encode(), hashlib.sha256).hexdigest()

    async def ask(self, request: Request, next: str = "") -> Response:
        """``GET /login``: the form, or a redirect to the pages where users need not sign in."""
        links = Links(request)
        onward = onward_from(next, links)
        if self.tokens is None or self.read(request.cookies.get(COOKIE, "")) is not None:
            return RedirectResponse(onward, 303)
        return page(request, "login.html", onward=onward, refused=False)

    async def sign_in(self, request: Request) -> Response:
        """``POST /login``: set the cookie."""
        form = form_of(request)
        links = Links(request)
        onward = onward_from(form.get("next", ""), links)
        cookie = self.begin(form.get("token", "").strip())
        if cookie is None:
            return page(request, "login.html", 403, onward=onward, refused=True)
        return with_cookie(request, onward, COOKIE, cookie, LASTS_S)

    async def sign_out(self, request: Request) -> Response:
        """``POST /logout``: end the sign-in, here and in the browser."""
        checked_form(request)
        self.end(request.cookies.get(COOKIE, ""))
        return with_cookie(request, Links(request)("/login"), COOKIE, "", 0)


def with_cookie(request: Request, onward: str, name: str, value: str, lasts_s: int) -> Response:
    """Return a redirect that sets a cookie of the pages, or removes one that lasts 0 s."""
    response = RedirectResponse(onward, 303)
    response.set_cookie(
        name,
        value,
        max_age=lasts_s,
        expires=None if lasts_s else 0,
        path=Links(request)("/"),
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",  # links in messages work; forms need a secret
    )
    return response


def onward_from(given: str, links: Links) -> str:
    """Return the target after signing in: the requested one, if it is a path of this site."""
    return given if _LOCAL.fullmatch(given) else links("/")


def form_of(request: Request) -> dict[str, str]:
    """Parse the fields of a form.

    Raises:
        Problem: The form cannot be parsed.
    """
    try:
        text = request.state.body.decode()
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FORM_FIELDS)
    except ValueError:
        raise invalid("The form cannot be read.") from None
    return dict(pairs)


def checked_form(request: Request) -> dict[str, str]:
    """Parse the fields of a form that changes something, and check its secret.

    Raises:
        Problem: The form does not come from a page that this user was sent.
    """
    form = form_of(request)
    given = form.pop("form_secret", "")
    if not hmac.compare_digest(given.encode(), request.state.form_secret.encode()):
        raise Problem(
            "form_not_ours",
            "This form belongs to another sign-in, or to the time before the service was restarted. Open the page "
            "again, and send the form from there.",
        )
    return form


@PAGES.add("GET", "/inspect/zone")
def zone_form(request: Request, next: str = "") -> Response:
    """The form to choose a time zone."""
    return page(request, "zone.html", zones=zones(), onward=onward_from(next, Links(request)))


@PAGES.add("POST", "/inspect/zone", access="read", form=True)
def choose_zone(request: Request) -> Response:
    """Set the cookie with the time zone."""
    form = checked_form(request)
    name = form.get("zone", "")
    if name not in zones():
        raise invalid("There is no such time zone. Choose one of the list.")
    return with_cookie(request, onward_from(form.get("next", ""), Links(request)), ZONE_COOKIE, name, ZONE_KEPT_S)
