"""The seal of what is stored: `Sealing`, for one family of tables. No SQL computes or compares a seal.

A seal covers the content with its format, and the place that it belongs to: the family, the tenant, the owner (a
thread, a session, a namespace or a transcript), the column, and what identifies the row (a name or a token that the
client chose, and the token of the row that it builds on). Content that was changed, moved or swapped is refused. What
the server assigns, such as a ``seq`` or a time, is not covered.

There are two forms. Bytes carry their seal (`Sealing.seal` and `Sealing.open`):

- Without encryption: the format byte, a checksum of 4 bytes, and the content. It detects damage, not forgeries.
- With encryption: the byte `SEALED`, the length and the text of the key's id, a random nonce of 12 bytes, and the
  ciphertext of AES-256-GCM over format and content, with its tag of 16 bytes.

Columns that the server has to read, such as ids and metadata, stay as they are, and a column beside them has their
checksum (`Sealing.checksum`), with and without encryption.

A checksum is the CRC32 of row and content, combined by XOR with that of family, tenant and owner. So rows can be copied
for another owner without reading them: their checksums are combined with one number (`Sealing.shift`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import struct
from collections.abc import Generator, Iterable
from functools import lru_cache
from operator import xor
from typing import Any, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from ..config import MySQLConfig
from ..dialect import Schema
from ..encryption import Encryption
from ..engine.operation import compute
from ..errors import CorruptCheckpoint, CryptographyMissing, DecryptionFailed, EncryptionError
from ..extras import install_command

T = TypeVar("T")

#: A value of a readable column that a seal covers.
Value: TypeAlias = str | bytes | int | None

#: The first byte of sealed bytes. No other format begins with it, and neither does UTF-8.
SEALED = b"\xfe"

#: Bytes that sealing adds, besides the text of the key's id.
OVERHEAD_BYTES = 1 + 1 + 12 + 16

#: Bytes that sealing adds without encryption: the checksum. The content brings its format byte along.
CHECKSUM_BYTES = 4

#: The message for a search by word in encrypted tables.
NO_WORDS = "Search by word is off, as encryption= is set: an index of words would be clear text."

_CHANGED = "its bytes were changed, moved from another row, or the row it builds on is missing"

_NONCE_BYTES, _TAG_BYTES = 12, 16

#: The beginning of what a tag covers. It names the version of the format.
_CONTEXT = b"locus-mysql sealed 1"
_MASKS = b"locus-mysql masks 1"
_DIGESTS = b"locus-mysql digests 1"

# The checksum is in the order of SQL's HEX(), because a statement that copies rows combines it with a number.
_CHECKSUM = struct.Struct(">I")


class Opened(NamedTuple):
    """Content that was sealed.

    Args:
        kind: Its format byte.
        body: Its other bytes.
    """

    kind: bytes
    body: memoryview


class Start(NamedTuple):
    """The checksums of the beginning of a place, and of its owner."""

    checksum: int
    owner: int


class Sealing:
    """Seals and opens what one family of tables stores.

    Args:
        encryption: The keys; None if the store does not encrypt.
        family: The family's name.
        tenant: The tenant of the rows.
        owner: The thread, session, namespace or transcript of the rows.
    """

    __slots__ = ("_encryption", "_owner_key")

    def __init__(
        self, encryption: Encryption | None, family: str, tenant: str = "", owner: Iterable[Value] = ()
    ) -> None:
        self._encryption = encryption
        self._owner_key = (family, tenant, *owner)

    @property
    def is_on(self) -> bool:
        """Return whether it encrypts."""
        return self._encryption is not None

    @property
    def reads_clear(self) -> bool:
        """Return whether it opens what is not encrypted: without keys, and while encryption is being switched on."""
        return self._encryption is None or self._encryption.reads_clear

    def is_current(self, stored: bytes | None) -> bool:
        """Return whether stored bytes may stay: the active key encrypts them, or no key if it does not encrypt."""
        return self._encryption is None or (stored is not None and sealed_by(stored) == self._encryption.active)

    def has_active_key(self, key_id: str | None) -> bool:
        """Return whether the id of a key is that of the active one."""
        return self._encryption is not None and key_id == self._encryption.active

    def of(self, tenant: str, *owner: Value) -> Sealing:
        """Return the sealing of the rows of a tenant and an owner."""
        return Sealing(self._encryption, str(self._owner_key[0]), tenant, owner)

    def seal(self, kind: bytes, pieces: Iterable[bytes | memoryview], column: str, *row: Value) -> bytes:
        """Return the bytes to store.

        Args:
            kind: The format of the content, one byte other than `SEALED`.
            pieces: The content, to be joined.
            column: The name of the column.
            row: What identifies the row, which never changes, and the row that it builds on.
        """
        if self._encryption is not None:
            return self._encrypted(self._encryption, b"".join((kind, *pieces)), column, row)
        pieces = tuple(pieces)
        return b"".join((kind, _CHECKSUM.pack(self._checksum(kind, pieces, column, row)), *pieces))

    def open(self, stored: bytes, what: object, column: str, *row: Value) -> Opened:
        """Return the content of stored bytes.

        Args:
            stored: The bytes.
            what: The name of the row, for errors; only they turn it into text.
            column: The name of the column.
            row: What identifies the row, as for `seal`.

        Raises:
            EncryptionError: They are encrypted and there is no key, or in clear text although keys are given.
            DecryptionFailed: They are encrypted, and were changed or moved from another place.
            CorruptCheckpoint: They were changed, or moved from another place.
        """
        encryption, key_id = self._encryption, sealed_by(stored)
        if key_id is None:
            if self.reads_clear:
                return self.verify(stored, what, column, *row)
            if not stored:
                raise _damaged(what, "it is empty")
            raise EncryptionError(
                f"{what} is stored in clear text, and encryption= is set. Run `locus-mysql reencrypt`, which encrypts "
                "rows from before; until it has, Encryption(reads_clear=True) reads them."
            )
        if encryption is None:
            raise EncryptionError(f"{what} is encrypted with key {key_id!r}; set encryption= with this key.")
        try:
            key = encryption.key(key_id)
        except EncryptionError as error:
            raise EncryptionError(f"{what} is encrypted with key {key_id!r}. {error}") from None
        content = self._decrypted(key, stored, what, column, row)
        if not content:
            raise _damaged(what, "it is empty")
        return Opened(content[:1], memoryview(content)[1:])

    def verify(self, stored: bytes, what: object, column: str, *row: Value) -> Opened:
        """Return the content of bytes that were sealed without encryption, whether there are keys or not.

        Raises:
            CorruptCheckpoint: They were changed, or moved from another place.
        """
        content = unverified(stored, what)
        if _CHECKSUM.unpack_from(stored, 1)[0] != self._checksum(content.kind, (content.body,), column, row):
            raise _damaged(what, _CHANGED)
        return content

    def seal_text(self, kind: bytes, text: str, column: str, *row: Value) -> tuple[str, int | None]:
        """Return text for a column that the server reads, and its seal for a column beside it.

        Encrypted text is in base64, and has no seal beside it. For the arguments see `seal`.
        """
        content = text.encode("utf-8", "surrogatepass")
        if self._encryption is not None:
            return to_text(self._encrypted(self._encryption, kind + content, column, row)), None
        return text, self._checksum(kind, (content,), column, row)

    def open_text(self, kind: bytes, text: str, seal: int | None, what: object, column: str, *row: Value) -> str:
        """Return the text that `seal_text` sealed. Raises as `open` does."""
        if seal is None or self._encryption is not None:
            content = self.open(of_columns(kind, text, seal), what, column, *row)
            return str(content.body, "utf-8", "surrogatepass")
        if seal != self._checksum(kind, (text.encode("utf-8", "surrogatepass"),), column, row):
            raise _damaged(what, _CHANGED)
        return text

    def start(self, column: str, *row: Value) -> Start:
        """Return the beginning of a place that rows share, whose last value differs; see `body_at`."""
        return Start(crc32(_joined((column, *row))), _checksum_of_owner(self._owner_key))

    def checksum(self, column: str, *values: Value) -> int:
        """Return the checksum of readable columns of a row, below 2**32.

        Args:
            column: The name of what is covered, so that checksums of other columns differ.
            values: The values of the columns, including what identifies the row.
        """
        return crc32(_joined(values), _checksum_of_column(column)) ^ _checksum_of_owner(self._owner_key)

    def shift(self, other: Sealing) -> int:
        """Return the number that turns checksums of this owner's rows into those of another owner's, by XOR."""
        return _checksum_of_owner(self._owner_key) ^ _checksum_of_owner(other._owner_key)

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

    def _encrypted(self, encryption: Encryption, content: bytes, column: str, row: Iterable[Value]) -> bytes:
        key_id = encryption.active.encode()
        header = b"".join((SEALED, bytes((len(key_id),)), key_id))
        nonce = os.urandom(_NONCE_BYTES)
        cipher = _cipher(encryption.key(encryption.active))
        sealed: bytes = cipher.encrypt(nonce, content, self._covered(header, column, row))
        return b"".join((header, nonce, sealed))

    def _decrypted(self, key: bytes, stored: bytes, what: object, column: str, row: Iterable[Value]) -> bytes:
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

    def _covered(self, header: bytes, column: str, row: Iterable[Value]) -> bytes:
        """Return what the tag covers besides the content."""
        return b"".join((_CONTEXT, header, _joined((*self._owner_key, column, *row))))

    def _checksum(self, kind: bytes, pieces: Iterable[bytes | memoryview], column: str, row: Iterable[Value]) -> int:
        checksum = crc32(kind, crc32(_joined((column, *row))))
        for piece in pieces:
            checksum = crc32(piece, checksum)
        return checksum ^ _checksum_of_owner(self._owner_key)


def body_at(stored: bytes, start: Start, last: bytes) -> bytes | None:
    """Return the content behind the format byte, or None if the bytes were not sealed, in clear text, for this place.

    `Sealing.verify` for many rows, in less time.

    Args:
        stored: The bytes.
        start: The beginning of the place.
        last: Its last value.
    """
    body = stored[1 + CHECKSUM_BYTES :]
    if not body:
        return None
    checksum = crc32(body, crc32(b"%d:%b%b" % (len(last), last, stored[:1]), start.checksum))
    return body if checksum ^ start.owner == _CHECKSUM.unpack_from(stored, 1)[0] else None


def unverified(stored: bytes, what: object) -> Opened:
    """Return the content of bytes that are not encrypted, or of their beginning, without comparing the checksum.

    Raises:
        CorruptCheckpoint: They are too short.
    """
    if not stored:
        raise _damaged(what, "it is empty")
    if len(stored) < 1 + CHECKSUM_BYTES:
        raise _damaged(what, "it is cut short")
    return Opened(stored[:1], memoryview(stored)[1 + CHECKSUM_BYTES :])


def _damaged(what: object, reason: str) -> CorruptCheckpoint:
    return CorruptCheckpoint(f"{what} cannot be read back: {reason}. Restore it from a backup, or delete it.")


@lru_cache(maxsize=4096)
def _checksum_of_owner(owner_key: tuple[Value, ...]) -> int:
    return crc32(_joined(owner_key))


@lru_cache(maxsize=1024)
def _checksum_of_column(column: str) -> int:
    return crc32(_joined((column,)))


def _joined(values: Iterable[Value]) -> bytes:
    """Return values as bytes, each after its length, so that no two lists of values give the same."""
    parts = []
    for value in values:
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogatepass")
        elif isinstance(value, int):
            value = b"%d" % value
        parts.append(b"~" if value is None else b"%d:%b" % (len(value), value))
    return b"".join(parts)


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


def of_columns(kind: bytes, text: str, seal: int | None) -> bytes:
    """Return the sealed bytes of two columns; see `Sealing.seal_text`.

    Args:
        kind: The format of the content, if it is not encrypted.
        text: The text.
        seal: The seal beside it; None if it is encrypted.
    """
    if seal is None:
        return of_text(text)
    return b"".join((kind, _CHECKSUM.pack(seal), text.encode("utf-8", "surrogatepass")))


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
        "Give this store a Database without encryption=; docs/security.md lists the families that support it."
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
