"""The keys of encryption at rest: `Encryption`. It encrypts nothing itself; see `runtime.sealing`."""

from __future__ import annotations

import base64
import binascii
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeAlias

from pydantic import SecretStr

from .background_loop import in_thread, result_of
from .errors import ConfigError, EncryptionError, LocusMySQLError

#: Length of a key of AES-256.
KEY_BYTES = 32

#: The time limit of one call of a function that returns keys, in seconds.
TIMEOUT_S = 30.0

#: The word in a text of keys that stands for the argument of this name.
_READS_CLEAR = "reads_clear"

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")

#: A key: 32 bytes, or their base64 text.
Key: TypeAlias = bytes | str | SecretStr

#: Returns the key of an id.
KeyFunction: TypeAlias = Callable[[str], Key | Awaitable[Key]]


class Encryption:
    """The keys that encrypt what stores write. Frozen; keys are never shown.

    Args:
        keys: Keys by their ids: 32 bytes each, or base64 of them. Or a function, also an ``async`` one, that returns
            the key of an id, such as one that asks a KMS: it is called in a thread, once for each id in each process,
            and has 30 s to answer.
        active: The id of the key that encrypts new rows; the others only decrypt. An id has 1 to 32 letters, digits,
            ``.``, ``_`` and ``-``, and is stored with each row.
        reads_clear: Whether rows in clear text are read, too, and encrypted when they are written again. For the time
            in which encryption is switched on; without it, they are refused.

    Raises:
        ConfigError: A key does not have 32 bytes, an id is wrong, or there is no key of the active id.

    Example:
        ```python
        import secrets

        from locus_mysql import Encryption

        encryption = Encryption(keys={"2026-11": secrets.token_bytes(32)}, active="2026-11")
        ```
    """

    def __init__(self, *, keys: Mapping[str, Key] | KeyFunction, active: str, reads_clear: bool = False) -> None:
        self.active = check_key_id(active)
        self.reads_clear = reads_clear
        self._ask: KeyFunction | None = None
        self._known: dict[str, bytes] = {}
        if isinstance(keys, Mapping):
            self._known = {check_key_id(key_id): _decoded(key, key_id) for key_id, key in keys.items()}
            if active not in self._known:
                raise ConfigError(f"Encryption: there is no key {active!r}, which is the active one. Add it to keys.")
        elif callable(keys):
            self._ask = keys
        else:
            raise ConfigError("Encryption: keys must be a dict of keys by their ids, or a function that returns one.")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the keys in a text such as ``2026-11=BASE64 2026-10=BASE64``; the first one is active.

        Args:
            text: Pairs of an id and a key in base64, joined by ``=``, with spaces or line breaks between them. From
                ``#`` on, a line is a comment. The word ``reads_clear`` among them sets this argument.

        Raises:
            ConfigError: It is not of this form. The message repeats no part of the text.
        """
        keys: dict[str, Key] = {}
        words = re.sub(r"#.*", "", text).split()
        for word in words:
            if word == _READS_CLEAR:
                continue
            key_id, equals, key = word.partition("=")
            if not equals or not key or key_id in keys:
                raise ConfigError(
                    "Keys for encryption must be written ID=BASE64, one for each id, with spaces or line breaks "
                    "between them; the first one is the active key."
                )
            keys[key_id] = key
        if not keys:
            raise ConfigError("There is no key for encryption; write ID=BASE64, with the active key first.")
        return cls(keys=keys, active=next(iter(keys)), reads_clear=_READS_CLEAR in words)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Return the keys in a file, in the form that `from_text` reads.

        Raises:
            ConfigError: The file cannot be read, or is not of this form.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"The file of keys {str(path)!r} cannot be read: {type(error).__name__}.") from None
        return cls.from_text(text)

    @property
    def asks(self) -> bool:
        """Return whether a function returns the keys."""
        return self._ask is not None

    def knows(self, key_id: str) -> bool:
        """Return whether the key of an id is in memory."""
        return key_id in self._known

    @property
    def known(self) -> tuple[str, ...]:
        """Return the ids of the keys in memory."""
        return tuple(self._known)

    def key(self, key_id: str) -> bytes:
        """Return the key of an id. It blocks while a function returns it; a key that is known takes no time.

        Raises:
            EncryptionError: There is no such key, or the function failed.
        """
        known = self._known.get(key_id)
        if known is not None:
            return known
        if self._ask is None:
            raise EncryptionError(
                f"Key {key_id!r} is unknown; known are {', '.join(map(repr, self._known))}. Add it to the keys of "
                "encryption=."
            )
        known = self._known[key_id] = _decoded(_asked(self._ask, key_id), key_id)
        return known

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Encryption):
            return NotImplemented
        return self is other or (
            self.active == other.active
            and self.reads_clear == other.reads_clear
            and self._ask is other._ask
            and (self._ask is not None or self._known == other._known)
        )

    def __hash__(self) -> int:
        return hash(self.active)

    def __repr__(self) -> str:
        reads_clear = ", reads_clear=True" if self.reads_clear else ""
        return f"Encryption(keys=…, active={self.active!r}{reads_clear})"

    def __reduce__(self) -> Any:
        raise TypeError("Encryption cannot be pickled, as it holds keys; make it in each process.")


def check_key_id(key_id: object) -> str:
    """Return the id of a key.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
        raise ConfigError("Encryption: the id of a key must have 1 to 32 letters, digits, '.', '_' and '-'.")
    return key_id


def _decoded(key: object, key_id: str) -> bytes:
    """Return the bytes of a key; no message shows a part of it."""
    if isinstance(key, SecretStr):
        key = key.get_secret_value()
    if isinstance(key, str):
        try:
            key = base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigError(f"Encryption: key {key_id!r} is not base64.") from None
    if not isinstance(key, bytes | bytearray):
        raise ConfigError(f"Encryption: key {key_id!r} must be bytes or base64 text, not {type(key).__name__}.")
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"Encryption: key {key_id!r} has {len(key)} bytes; AES-256 needs {KEY_BYTES}. Make one with "
            f"secrets.token_bytes({KEY_BYTES})."
        )
    return bytes(key)


def _asked(ask: KeyFunction, key_id: str) -> object:
    """Call a function that returns keys, in a thread, as it may hang or start an event loop."""

    def call() -> object:
        key = ask(key_id)
        return result_of(key) if inspect.isawaitable(key) else key

    answer = in_thread(call, "locus-mysql key")
    try:
        return answer.result(TIMEOUT_S)
    except LocusMySQLError:
        raise
    except BaseException as error:
        if not answer.done() and not isinstance(error, TimeoutError):  # this thread was interrupted
            raise
        reason = f"raised {type(error).__name__}" if answer.done() else f"did not return within {TIMEOUT_S:g} s"
    raise EncryptionError(f"The function given as keys of encryption= {reason} when asked for key {key_id!r}.")
