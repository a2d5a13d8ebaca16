"""Which tokens there are, and whose they are: `Tokens`. Only their digests are kept.

    [[token]]
    name = "billing agents"
    tenant = "acme"
    access = "write"
    sha256 = "9b74c9897bac770ffc029102a200c5de1ad5b5a0d7a54e3ba5a4a5a7a1b5d5f1"

A token is drawn by `new_token`, so it has 256 random bits, and a plain digest of it tells nobody anything.
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
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from ..errors import ConfigError
from ..runtime.arguments import check_tenant
from ..runtime.regular_files import read_regular
from .callers import Caller

#: The file of tokens was read anew: INFO. It lists none any more: WARNING. It cannot be read, and the tokens that were
#: read before stay in force: ERROR, again each minute.
TOKENS = logging.getLogger("locus_mysql.tokens")

#: How every token begins, so that one that strays into a repository or a log can be found.
PREFIX = "lmt_"

#: How often it is looked whether the file has changed, in seconds.
LOOK_S = 1.0

#: How often it is told that the file cannot be read, in seconds.
TOLD_AGAIN_S = 60.0

#: The largest file that is read.
MAX_FILE_BYTES = 1 << 24

_DIGEST = re.compile(r"[0-9a-f]{64}")


class TokenEntry(BaseModel):
    """A token, as a file lists it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    name: Annotated[str, Field(min_length=1, max_length=128)]
    tenant: str
    access: Literal["read", "write"]
    sha256: str

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("must hold printable characters only")
        return value

    @field_validator("tenant")
    @classmethod
    def _check_tenant(cls, value: str) -> str:
        if not check_tenant(value).isprintable():
            raise ValueError("must hold printable characters only")
        return value

    @field_validator("sha256")
    @classmethod
    def _check_digest(cls, value: str) -> str:
        if not _DIGEST.fullmatch(value):
            raise ValueError(
                "must be 64 hexadecimal digits in lower case, as `python -m locus_mysql token` prints them"
            )
        return value

    @property
    def caller(self) -> Caller:
        """Whoever has the token."""
        return Caller(self.name, self.tenant, self.access == "write")


class _Listed(BaseModel):
    """What a file of tokens holds."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    token: list[TokenEntry] = Field(default_factory=list)


class Tokens:
    """Tokens by their digests, from a file or a text. A file is read anew when it has changed.

    So a token is rolled without a restart: add the new one, hand it out, remove the old one. A file that is emptied
    takes all tokens away. One that cannot be read, or is gone, changes nothing but the log, so that a slip of an editor
    or of a deployment locks nobody out.

    Args:
        text: What a file would hold.
        path: The file.

    Raises:
        ConfigError: There is no file, or it holds something else, or no token to begin with.
    """

    def __init__(self, text: str | None = None, *, path: Path | None = None) -> None:
        if (text is None) == (path is None):
            raise ConfigError("Give either a file of tokens or a text.")
        self.path = path
        self._looked_at = time.monotonic()
        self._told_at = -TOLD_AGAIN_S
        self._stamp: tuple[int, ...] | None = None
        self._entries: Sequence[TokenEntry] = ()
        if text is not None:
            self._entries = entries_of(text, "The text of tokens")
        else:
            self._read()
        if not self._entries:
            raise ConfigError(f"There are no tokens. {_ADVICE}")

    def find(self, secret: str) -> Caller | None:
        """Whose token this is; None if it is nobody's. Takes as long whatever the token is, and whichever it is."""
        return self.of_digest(digest_of(secret))

    def of_digest(self, digest: str) -> Caller | None:
        """Whose token this is the digest of, as `find` tells it."""
        self._look()
        found: Caller | None = None
        for entry in self._entries:
            if hmac.compare_digest(entry.sha256, digest):
                found = entry.caller
        return found

    def _look(self) -> None:
        """Read the file anew if it has changed."""
        now = time.monotonic()
        if self.path is None or now < self._looked_at + LOOK_S:
            return
        self._looked_at = now
        try:
            changed = self._read()
        except ConfigError as error:
            if now >= self._told_at + TOLD_AGAIN_S:
                self._told_at = now
                TOKENS.error("The tokens read before stay in force, also those taken away since. %s", error)
            return
        self._told_at = -TOLD_AGAIN_S
        if changed and self._entries:
            TOKENS.info("The file of tokens was read anew: %d tokens.", len(self._entries))
        elif changed:
            TOKENS.warning("The file of tokens lists none any more: nobody is let in.")

    def _read(self) -> bool:
        """Read the file, if it is not as it was when it was last read."""
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
    """The tokens that a text in TOML lists.

    Args:
        text: The text.
        what: What it is, for an error.

    Raises:
        ConfigError: It is something else, or lists the same one twice. Never repeats what it holds.
    """
    try:
        listed = _Listed.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        raise ConfigError(f"{what}: not TOML. {_ADVICE}") from None
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{what}: {place}: {problem['msg'].removeprefix('Value error, ')}. {_ADVICE}") from None
    if len({entry.sha256 for entry in listed.token}) < len(listed.token):
        raise ConfigError(f"{what}: the same token stands there twice.")
    return listed.token


_ADVICE = "`python -m locus_mysql token` makes a token and prints its entry."


class NewToken(NamedTuple):
    """A token, and how a file lists it."""

    secret: str
    entry: str


def new_token(name: str, tenant: str, access: Literal["read", "write"]) -> NewToken:
    """Draw a token.

    Args:
        name: Who will have it.
        tenant: Whose threads, memories and sessions it is for.
        access: Whether it is for reading only.

    Raises:
        ConfigError: An argument cannot be one.
    """
    secret = PREFIX + secrets.token_urlsafe(32)
    fields = {"name": name, "tenant": tenant, "access": access, "sha256": digest_of(secret)}
    # A text of JSON is one of TOML, too, but for DEL, which is not printable, and pairs of surrogates.
    lines = [f"{field} = {json.dumps(value, ensure_ascii=False)}" for field, value in fields.items()]
    entry = "\n".join(["[[token]]", *lines, ""])
    entries_of(entry, "The token")
    return NewToken(secret, entry)


def digest_of(secret: str) -> str:
    """By which a token is known."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
