"""`Tokens`: access tokens, and the `Caller` that each identifies. Only digests are kept.

    [[token]]
    name = "billing agents"
    tenant = "acme"
    access = "write"
    sha256 = "9b74c9897bac770ffc029102a200c5de1ad5b5a0d7a54e3ba5a4a5a7a1b5d5f1"

`new_token` draws 256 random bits, so a plain digest of a token is safe to keep.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ..errors import ConfigError
from ..runtime.arguments import check_tenant
from ..runtime.regular_files import read_regular

#: INFO: the file of tokens was read again. WARNING: it lists no token any more. ERROR, each minute: it cannot be read,
#: so the tokens read before stay valid.
TOKENS = logging.getLogger("locus_mysql.tokens")

#: The prefix of every token, so that scanners find tokens in repositories and logs.
PREFIX = "lmt_"

#: Seconds between two checks whether the file has changed.
LOOK_S = 1.0

#: Seconds between two log messages that the file cannot be read.
LOG_AGAIN_S = 60.0

#: Size of the largest file that is read, in bytes.
MAX_FILE_BYTES = 1 << 24

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ADVICE = "`python -m locus_mysql token` makes a token and prints its entry."


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, as its token identifies it.

    Args:
        name: The name in the token's entry; for the log, never shown to other callers.
        tenant: The only tenant whose threads, memories and sessions it sees.
        may_write: Whether it may change them.
    """

    name: str
    tenant: str
    may_write: bool


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must hold printable characters only")
    return value


def _digest(value: str) -> str:
    if not _DIGEST.fullmatch(value):
        raise ValueError("must be 64 hexadecimal digits in lower case, as `python -m locus_mysql token` prints them")
    return value


class TokenEntry(BaseModel):
    """A token's entry in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    name: Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
    tenant: Annotated[str, AfterValidator(check_tenant), AfterValidator(_printable)]
    access: Literal["read", "write"]
    sha256: Annotated[str, AfterValidator(_digest)]

    @property
    def caller(self) -> Caller:
        """Return the caller that the token identifies."""
        return Caller(self.name, self.tenant, self.access == "write")


class _Listed(BaseModel):
    """The content of a file of tokens."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: list[TokenEntry] = Field(default_factory=list)


class Tokens:
    """Tokens by their digests, from a file or a text. A file is read again when it has changed.

    A token is rotated without a restart: add the new one, distribute it, remove the old one. An emptied file revokes
    all tokens. A file that is missing or cannot be read only causes log messages, so that a mistake in an editor or a
    deployment does not revoke access.

    Args:
        text: The content of such a file.
        path: The file.

    Raises:
        ConfigError: The file does not exist, cannot be parsed, or lists no token.
    """

    def __init__(self, text: str | None = None, *, path: Path | None = None) -> None:
        if (text is None) == (path is None):
            raise ConfigError("Give either a file of tokens or a text.")
        self.path = path
        self._looked_at = time.monotonic()
        self._logged_at = -LOG_AGAIN_S
        self._stamp: tuple[int, ...] | None = None
        self._entries: Sequence[TokenEntry] = ()
        if text is not None:
            self._entries = entries_of(text, "The text of tokens")
        else:
            self._read()
        if not self._entries:
            raise ConfigError(f"There are no tokens. {_ADVICE}")

    def find(self, secret: str) -> Caller | None:
        """Return the caller of a token, or None. Takes the same time for every token, valid or not."""
        return self.of_digest(digest_of(secret))

    def of_digest(self, digest: str) -> Caller | None:
        """Return the caller of the token with this digest, as `find` does."""
        self._look()
        found: Caller | None = None
        for entry in self._entries:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry.caller
        return found

    def _look(self) -> None:
        """Read the file again if it has changed."""
        now = time.monotonic()
        if self.path is None or now < self._looked_at + LOOK_S:
            return
        self._looked_at = now
        try:
            changed = self._read()
        except ConfigError as error:
            if now >= self._logged_at + LOG_AGAIN_S:
                self._logged_at = now
                TOKENS.error("The tokens read before stay valid, including those removed since. %s", error)
            return
        self._logged_at = -LOG_AGAIN_S
        if changed and self._entries:
            TOKENS.info("The file of tokens was read again: %d tokens.", len(self._entries))
        elif changed:
            TOKENS.warning("The file of tokens lists no token any more: every request is refused.")

    def _read(self) -> bool:
        """Read the file unless it is unchanged since the last time."""
        assert self.path is not None  # noqa: S101 - for the type checker; callers have asked
        try:
            status = self.path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if stamp == self._stamp:
                return False
            text = read_regular(self.path, MAX_FILE_BYTES, follow_links=True).decode("utf-8")
        except OSError as error:
            raise ConfigError(f"The file of tokens: {error.strerror or 'it cannot be read'}. {_ADVICE}") from None
        except UnicodeDecodeError:
            raise ConfigError("The file of tokens is not UTF-8.") from None
        self._entries = entries_of(text, "The file of tokens")
        self._stamp = stamp
        return True


def entries_of(text: str, what: str) -> Sequence[TokenEntry]:
    """Parse the tokens of a text in TOML.

    Args:
        text: The text.
        what: A name of the text for error messages.

    Raises:
        ConfigError: The text has another form, or lists a token twice. The message never quotes the text.
    """
    try:
        listed = _Listed.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        raise ConfigError(f"{what}: not TOML. {_ADVICE}") from None
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{what}: {path}: {problem['msg'].removeprefix('Value error, ')}. {_ADVICE}") from None
    if len({entry.sha256 for entry in listed.token}) < len(listed.token):
        raise ConfigError(f"{what}: the same token is listed twice.")
    return listed.token


class NewToken(NamedTuple):
    """A new token and its entry for the file."""

    secret: str
    entry: str


def new_token(name: str, tenant: str, access: Literal["read", "write"]) -> NewToken:
    """Draw a token.

    Args:
        name: The name of its owner.
        tenant: The tenant whose threads, memories and sessions it gives access to.
        access: ``read`` or ``write``.

    Raises:
        ConfigError: An argument is invalid.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    fields = {"name": name, "tenant": tenant, "access": access, "sha256": digest_of(secret)}
    # A JSON string is a valid TOML string, except for DEL, which is not printable, and surrogate pairs.
    lines = [f"{field} = {json.dumps(value, ensure_ascii=False)}" for field, value in fields.items()]
    entry = "\n".join(["[[token]]", *lines, ""])
    entries_of(entry, "The token")
    return NewToken(secret, entry)


def digest_of(secret: str) -> str:
    """Return the SHA-256 digest by which a token is looked up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
