"""Encrypts stored bytes and binds them to their row: `Sealing`, for one family of tables.

Sealed bytes are the format byte `SEALED`, the length and the text of the key's id, a random nonce of 12 bytes, and the
ciphertext of AES-256-GCM with its tag of 16 bytes. The tag also covers the format, the key's id, and the family,
tenant, owner, column and identity of the row. So bytes of another row, column, thread or tenant do not decrypt.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Generator, Iterable
from functools import lru_cache
from operator import xor
from typing import Any, TypeVar

from ..config import MySQLConfig
from ..dialect import Schema
from ..encryption import Encryption
from ..engine.operation import compute
from ..errors import CryptographyMissing, DecryptionFailed, EncryptionError
from ..extras import install_command

T = TypeVar("T")

#: The first byte of sealed bytes. No other format begins with it, and neither does UTF-8.
SEALED = b"\xfe"

#: Bytes that sealing adds, besides the text of the key's id.
OVERHEAD_BYTES = 1 + 1 + 12 + 16

#: The message for a search by word in encrypted tables.
NO_WORDS = "Search by word is off, as encryption= is set: an index of words would be clear text."

_NONCE_BYTES, _TAG_BYTES = 12, 16

#: The beginning of what a tag covers. It names the version of the format.
_CONTEXT = b"locus-mysql sealed 1"
_MASKS = b"locus-mysql masks 1"
_DIGESTS = b"locus-mysql digests 1"


class Sealing:
    """Encrypts and decrypts the bytes of one family of tables; without `Encryption`, it returns them unchanged.

    Args:
        encryption: The keys; None if the store does not encrypt.
        family: The family's name.
        tenant: The tenant of the rows.
        owner: The thread, session, namespace or transcript of the rows.
    """

    __slots__ = ("_encryption", "_owner_key")

    def __init__(
        self, encryption: Encryption | None, family: str, tenant: str = "", owner: Iterable[str | bytes] = ()
    ) -> None:
        self._encryption = encryption
        self._owner_key = (family, tenant, *owner)

    @property
    def is_on(self) -> bool:
        """Return whether it encrypts."""
        return self._encryption is not None

    def leaves(self, stored: bytes) -> bool:
        """Return whether stored bytes are read as they are: neither are they encrypted, nor must they be."""
        return self._encryption is None and stored[:1] != SEALED

    def is_current(self, stored: bytes | None) -> bool:
        """Return whether stored bytes may stay: the active key encrypts them, or no key if it does not encrypt."""
        return self._encryption is None or (stored is not None and sealed_by(stored) == self._encryption.active)

    def has_active_key(self, key_id: str | None) -> bool:
        """Return whether the id of a key is that of the active one."""
        return self._encryption is not None and key_id == self._encryption.active

    def of(self, tenant: str, *owner: str | bytes) -> Sealing:
        """Return the sealing of the rows of a tenant and an owner."""
        return Sealing(self._encryption, str(self._owner_key[0]), tenant, owner)

    def seal(self, content: bytes, column: str, *row: str | bytes) -> bytes:
        """Return the bytes to store.

        Args:
            content: The content. Empty content stays empty.
            column: The name of the column.
            row: The identity of the row, which never changes.
        """
        encryption = self._encryption
        if encryption is None or not content:
            return content
        key_id = encryption.active.encode()
        header = b"".join((SEALED, bytes((len(key_id),)), key_id))
        nonce = os.urandom(_NONCE_BYTES)
        cipher = _cipher(encryption.key(encryption.active))
        sealed: bytes = cipher.encrypt(nonce, content, self._covered(header, column, row))
        return b"".join((header, nonce, sealed))

    def open(self, stored: bytes, what: str, column: str, *row: str | bytes) -> bytes:
        """Return the content of stored bytes.

        Args:
            stored: The bytes.
            what: The name of the row, for errors.
            column: The name of the column.
            row: The identity of the row.

        Raises:
            EncryptionError: They are encrypted and there is no key, or in clear text although keys are given.
            DecryptionFailed: They were changed, or moved from another row.
        """
        encryption = self._encryption
        key_id = sealed_by(stored)
        if key_id is None:
            if encryption is None or not stored:
                return stored
            raise EncryptionError(
                f"{what} is stored in clear text, and encryption= is set. Run `locus-mysql reencrypt`, which encrypts "
                "rows from before."
            )
        if encryption is None:
            raise EncryptionError(f"{what} is encrypted with key {key_id!r}; set encryption= with this key.")
        try:
            key = encryption.key(key_id)
        except EncryptionError as error:
            raise EncryptionError(f"{what} is encrypted with key {key_id!r}. {error}") from None
        return self._decrypted(key, stored, what, column, row)

    def mask(self, number: int, token: bytes) -> int:
        """Return a whole number of 64 bits hidden by the active key, or a hidden one as it was.

        Args:
            number: The number.
            token: Random bytes that hide only this number. They are not secret.
        """
        encryption = self._encryption
        if encryption is None:
            return number
        own = hmac.digest(encryption.key(encryption.active), _MASKS, "sha256")  # a key for this purpose only
        pad = hmac.digest(own, "\0".join(map(str, self._owner_key)).encode() + token, "sha256")[:8]
        return int.from_bytes(bytes(map(xor, number.to_bytes(8, signed=True), pad)), signed=True)

    def digests(self, digest: bytes, *row: str | bytes) -> list[bytes]:
        """Return keyed digests of a digest, of the same length: by the active key, then by the other keys in memory.

        So equal contents are recognised by who has the keys, and only in the same row. Without encryption, the digest
        itself.
        """
        encryption = self._encryption
        if encryption is None:
            return [digest]
        place = self._covered(_DIGESTS, "digest", (*row, digest))
        key_ids = dict.fromkeys((encryption.active, *encryption.known))
        own = [hmac.digest(encryption.key(key_id), _DIGESTS, "sha256") for key_id in key_ids]
        return [hmac.digest(key, place, "sha256")[: len(digest)] for key in own]

    def _decrypted(self, key: bytes, stored: bytes, what: str, column: str, row: Iterable[str | bytes]) -> bytes:
        cipher, invalid = _cipher(key), _invalid_tag()
        header_bytes = 2 + stored[1]
        nonce_end = header_bytes + _NONCE_BYTES
        covered = self._covered(stored[:header_bytes], column, row)
        try:
            content: bytes = cipher.decrypt(stored[header_bytes:nonce_end], memoryview(stored)[nonce_end:], covered)
        except (invalid, ValueError):
            raise DecryptionFailed(
                f"{what} cannot be decrypted: it was changed, or moved from another row, or key "
                f"{sealed_by(stored)!r} is not the one that encrypted it. Restore the row from a backup."
            ) from None
        return content

    def _covered(self, header: bytes, column: str, row: Iterable[str | bytes]) -> bytes:
        """Return what the tag covers besides the content; each part follows its length."""
        parts = [part.encode() if isinstance(part, str) else part for part in (*self._owner_key, column, *row)]
        return b"".join((_CONTEXT, header, *(b"%d:%b" % (len(part), part) for part in parts)))


def sealed_by(stored: bytes | bytearray) -> str | None:
    """Return the id of the key that encrypted bytes; None if they are not encrypted."""
    if stored[:1] != SEALED or len(stored) < 2:
        return None
    end = 2 + stored[1]
    if not 2 < end <= len(stored) - _NONCE_BYTES - _TAG_BYTES or not stored[2:end].isascii():
        return None
    return bytes(stored[2:end]).decode()


def to_text(sealed: bytes) -> str:
    """Return encrypted bytes as text, for a column of text: base64. It begins with a slash, which no JSON does."""
    return base64.b64encode(sealed).decode()


def of_text(text: str) -> bytes:
    """Return the encrypted bytes in a text; of a text that is not encrypted, the text in UTF-8."""
    if text[:1] == "/":
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            pass
    return text.encode("utf-8", "surrogatepass")


def content_digest(content: bytes, secret: bytes | None, *place: str) -> str:
    """Return a digest that identifies content within a place, in hexadecimal; without a secret, that of the content.

    Args:
        content: The content.
        secret: Random bytes, which are stored encrypted, so that digests stay the same when the keys change.
        place: The tenant, and what else the row belongs to. Equal content elsewhere has another digest.
    """
    if secret is None:
        return hashlib.sha256(content).hexdigest()
    parts = [*(part.encode(errors="surrogatepass") for part in place), content]
    return hmac.digest(secret, b"".join(b"%d:%b" % (len(part), part) for part in parts), "sha256").hex()


def refuse_clear_tables(config: MySQLConfig, schema: Schema) -> None:
    """Refuse tables that would hold clear text although encryption is required.

    Raises:
        EncryptionError: The family does not encrypt what it stores.
        CryptographyMissing: The package ``cryptography`` is not installed.
    """
    if config.encryption is None:
        return
    if not schema.encrypts:
        raise no_support(schema.family)
    _aesgcm()


def no_support(family: str) -> EncryptionError:
    """Return the error for a family that does not encrypt what it stores."""
    return EncryptionError(
        f"Tables of family {family!r} do not support encryption, and encryption= is set, so nothing is stored in them. "
        "Give this store a Database without encryption=; docs/encryption.md lists the families that support it."
    )


def fetching_keys(operation: Generator[Any, Any, T], config: MySQLConfig) -> Generator[Any, Any, T]:
    """Return an operation that first fetches the keys it needs, if a function returns them; see `with_keys`."""
    encryption = config.encryption
    return operation if encryption is None or not encryption.asks else with_keys(operation, encryption)


def with_keys(operation: Generator[Any, Any, T], encryption: Encryption) -> Generator[Any, Any, T]:
    """Run an operation, and fetch the keys of the rows that it reads and writes before it needs them.

    A function that returns keys is thus called in a thread, and does not stop an event loop.
    """
    yield from _fetch_keys(encryption, {encryption.active})
    try:
        step = next(operation)
        while True:
            try:
                results = yield step
            except GeneratorExit:
                operation.close()
                raise
            except BaseException as error:
                step = operation.throw(error)
            else:
                yield from _fetch_keys(encryption, _key_ids(results))
                step = operation.send(results)
    except StopIteration as end:
        value: T = end.value
        return value


def _fetch_keys(encryption: Encryption, key_ids: Iterable[str]) -> Generator[Any, Any, None]:
    for key_id in key_ids:
        if not encryption.knows(key_id):
            try:
                yield from compute(lambda wanted=key_id: encryption.key(wanted))  # type: ignore[misc]  # mypy infers no type of such a default
            except EncryptionError:
                if key_id == encryption.active:
                    raise  # any other key is asked for again, and then the error names the row


def _key_ids(results: Any) -> set[str]:
    """Return the ids of keys in the values of results; values of other kinds of steps have none."""
    found = set()
    for result in results if isinstance(results, list) else ():
        for row in getattr(result, "rows", ()):
            for value in row:
                if isinstance(value, str) and value[:1] == "/":
                    value = of_text(value)
                if isinstance(value, bytes) and value[:1] == SEALED and (key_id := sealed_by(value)) is not None:
                    found.add(key_id)
    return found


@lru_cache(maxsize=64)
def _cipher(key: bytes) -> Any:
    return _aesgcm()(key)


def _aesgcm() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise CryptographyMissing(
            f"encryption= needs the package cryptography. Install it: {install_command('encryption')}."
        ) from None
    return AESGCM


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    return InvalidTag
