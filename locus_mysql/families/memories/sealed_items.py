"""Seals items and embeddings, encrypted or not: `SealedItems`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...config import MySQLConfig
from ...engine.logs import DAMAGE
from ...errors import InvalidInput
from ...runtime.sealing import CHECKSUM_BYTES, Sealing, Start, body_at, sealed_by
from .statements.tables import JSON, ItemKey, dialect_of, owner_of
from .statements.vectors import EmbeddingRow, ModelEmbeddingRow, SignRow, VectorRow
from .vectors.coding import Coded

#: The format bytes of an embedding, and of one behind the digest of its text.
_EMBEDDING, _EMBEDDING_OF_TEXT = b"V", b"T"

_DIGEST_BYTES = 16

#: The positions of an embedding that is not encrypted, and of one behind a digest.
_AT, _OF_TEXT_AT = 1 + CHECKSUM_BYTES, 1 + CHECKSUM_BYTES + _DIGEST_BYTES


class Title(NamedTuple):
    """The name of an item in errors, or of an embedding with this number."""

    path: bytes
    key: bytes
    number: int | None = None

    @property
    def place(self) -> str:
        """The key and the namespace."""
        labels = tuple(self.path.decode(errors="replace").split("\0")[:-1])
        return f"{self.key.decode(errors='replace')!r} in {labels!r}"

    def __str__(self) -> str:
        return f"Item {self.place}" if self.number is None else f"Embedding {self.number} of item {self.place}"


class SealedItems:
    """Seals and opens the rows of the family, bound to tenant, namespace and key; embeddings to number and model too.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self._sealing = Sealing(config.encryption, "memories")

    @property
    def is_on(self) -> bool:
        """Return whether it encrypts."""
        return self._sealing.is_on

    def refuse_value_filter(self, filter: Mapping[str, Any] | None) -> None:
        """Refuse conditions on values, which the server cannot read.

        Raises:
            InvalidInput: There is encryption, and the filter has a condition.
        """
        if filter and self.is_on:
            raise InvalidInput(
                "Filters on values are off, as encryption= is set: the server cannot read them. Filter by metadata "
                "(metadata_filter), which is stored in clear text."
            )

    def seal_value(self, tenant: str, key: ItemKey, value: str, metadata: str | None) -> tuple[str, int | None]:
        """Return the columns ``value`` and ``seal`` of an item."""
        return self._sealing.of(tenant, key[0]).seal_text(JSON, value, "value", key[1], metadata)

    def open_value(self, tenant: str, key: ItemKey, value: str, metadata: str | None, seal: int | None) -> str:
        """Return the JSON text of an item's value, from the columns of its row.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: The value or the metadata were changed, or moved from another place.
        """
        sealing = self._sealing.of(tenant, key[0])
        return sealing.open_text(JSON, value, seal, Title(*key), "value", key[1], metadata)

    def seal_embeddings(
        self, tenant: str, key: ItemKey, vectors: Sequence[tuple[bytes | None, Coded]], *, expires: bool
    ) -> list[tuple[VectorRow, SignRow | None]]:
        """Return the rows of an item's embeddings; with encryption without signs, which show what they are near to.

        Args:
            tenant: The tenant.
            key: The item.
            vectors: The embeddings, each with the digest of its text if it is known.
            expires: Whether the item may expire.
        """
        sealing = self._sealing.of(tenant, key[0])
        rows: list[tuple[VectorRow, SignRow | None]] = []
        for number, (digest, coded) in enumerate(vectors):
            kind, pieces = _EMBEDDING, [coded.embedding]
            if digest is not None:
                kind, pieces = _EMBEDDING_OF_TEXT, [digest, coded.embedding]
            sealed = sealing.seal(kind, pieces, "embedding", coded.model, number, key[1])
            row = VectorRow(tenant, *key, number, coded.model, sealed)
            rows.append((row, None if self.is_on else sign_row(row, coded, expires=expires)))
        return rows

    def open_embedding(self, tenant: str, row: ModelEmbeddingRow) -> tuple[bytes | None, bytes]:
        """Return the digest of the embedded text, if it is known, and the embedding. Raises as `open_value` does."""
        content = self._sealing.of(tenant, row.path).open(
            row.embedding, Title(row.path, row.key, row.number), "embedding", row.model, row.number, row.key
        )
        return _parts(content.kind, content.body)

    def open_undamaged(
        self, tenant: str, rows: Iterable[EmbeddingRow], model: int
    ) -> list[tuple[tuple[bytes, bytes, int], bytes]]:
        """Return the embeddings of rows by their keys, without damaged ones, which are logged.

        Raises:
            EncryptionError: There is no key for one, or it is in clear text although keys are given.
            DecryptionFailed: An encrypted one was changed or moved.
        """
        opened: list[tuple[tuple[bytes, bytes, int], bytes]] = []
        starts: dict[tuple[bytes, int], Start] = {}
        reads_clear, damaged = self._sealing.reads_clear, False
        for row in rows:
            path, key, number, stored = row
            start = starts.get((path, number))
            if start is None:
                start = self._sealing.of(tenant, path).start("embedding", model, number)
                starts[path, number] = start
            encrypted = sealed_by(stored) is not None
            if reads_clear and not encrypted and (body := body_at(stored, start, key)) is not None:
                of_text = stored[:1] == _EMBEDDING_OF_TEXT
                opened.append(((path, key, number), body[_DIGEST_BYTES:] if of_text else body))
            elif encrypted or not reads_clear:
                opened.append(((path, key, number), self.open_embedding(tenant, ModelEmbeddingRow(*row, model))[1]))
            else:
                damaged = True
        if damaged:
            DAMAGE.warning("Embeddings whose checksum is wrong were left out of a search.")
        return opened


class ItemTables:
    """Base of operations on items: the tables of a configuration, and what seals and opens their rows.

    Args:
        config: The options.
    """

    def __init__(self, config: MySQLConfig) -> None:
        self.config = config
        self.sql = dialect_of(config)
        self._sealed = SealedItems(config)


def sign_row(row: VectorRow, coded: Coded, *, expires: bool) -> SignRow:
    """Return the row with the signs of an embedding."""
    owner, dims = owner_of(row.tenant, row.path), len(coded.embedding) // 4
    return SignRow(owner, row.key, row.number, int(expires), dims, row.model, coded.sig)


def unchecked_embedding(stored: bytes) -> bytes:
    """Return an embedding that is not encrypted, without comparing its checksum."""
    return stored[begin_of_embedding(stored) :]


def begin_of_embedding(stored: bytes) -> int:
    """Return where the 32-bit floats begin in an embedding that is not encrypted."""
    return _OF_TEXT_AT if stored[:1] == _EMBEDDING_OF_TEXT else _AT


def _parts(kind: bytes, body: memoryview) -> tuple[bytes | None, bytes]:
    """Return the digest of the text and the embedding."""
    if kind == _EMBEDDING_OF_TEXT:
        return bytes(body[:_DIGEST_BYTES]), bytes(body[_DIGEST_BYTES:])
    return None, bytes(body)
