"""Seals items and embeddings, with and without encryption: `SealedItems`. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ...config import MySQLConfig
from ...engine.logs import DAMAGE
from ...errors import CorruptCheckpoint, DecryptionFailed, InvalidInput
from ...runtime.sealing import Sealing, of_columns, to_columns, unverified
from .statements.dialect import ItemKey, owner_of
from .statements.tables import JSON
from .statements.vectors import EmbeddingRow, ModelEmbeddingRow, SignRow, VectorRow
from .vectors.coding import Coded

#: The format bytes of an embedding, and of one behind the digest of its text.
_EMBEDDING, _EMBEDDING_OF_TEXT = b"V", b"T"

_DIGEST_BYTES = 16


class StoredItem(Protocol):
    """A row with the sealed columns of an item."""

    @property
    def path(self) -> bytes:
        """The namespace's path."""

    @property
    def key(self) -> bytes:
        """The item's key."""

    @property
    def value(self) -> str:
        """JSON text, or encrypted."""

    @property
    def metadata(self) -> str | None:
        """JSON text of an object."""

    @property
    def seal(self) -> int | None:
        """The seal of value and metadata; None if they are encrypted."""


class Title(NamedTuple):
    """The name of an item in errors, or of an embedding with this number."""

    path: bytes
    key: bytes
    number: int | None = None

    def __str__(self) -> str:
        labels = tuple(self.path.decode(errors="replace").split("\0")[:-1])
        name = f"{self.key.decode(errors='replace')!r} in {labels!r}"
        return f"Item {name}" if self.number is None else f"Embedding {self.number} of item {name}"


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
        sealing = self._sealing.of(tenant, key[0])
        return to_columns(sealing.seal(JSON, [value.encode("utf-8", "surrogatepass")], "value", key[1], metadata))

    def open_value(self, tenant: str, row: StoredItem) -> str:
        """Return the JSON text of an item's value.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: The value or the metadata were changed, or moved from another place.
        """
        stored, title = of_columns(JSON, row.value, row.seal), Title(row.path, row.key)
        content = self._sealing.of(tenant, row.path).open(stored, title, "value", row.key, row.metadata)
        return str(content.body, "utf-8", "surrogatepass")

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
            sealed = sealing.seal(kind, pieces, "embedding", key[1], number, coded.model)
            sign = SignRow(
                *(owner_of(tenant, key[0]), key[1], number, int(expires)),
                *(len(coded.embedding) // 4, coded.model, coded.sig),
            )
            rows.append((VectorRow(tenant, *key, number, coded.model, sealed), None if self.is_on else sign))
        return rows

    def open_embedding(self, tenant: str, row: ModelEmbeddingRow) -> tuple[bytes | None, bytes]:
        """Return the digest of the embedded text, if it is known, and the embedding. Raises as `open_value` does."""
        content = self._sealing.of(tenant, row.path).open(
            row.embedding, Title(row.path, row.key, row.number), "embedding", row.key, row.number, row.model
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
        opened, damaged = [], False
        path, sealing = b"", self._sealing.of(tenant, b"")
        for row in rows:
            if row.path != path:
                path, sealing = row.path, self._sealing.of(tenant, row.path)
            key, number = row.key, row.number
            try:
                content = sealing.open(row.embedding, Title(path, key, number), "embedding", key, number, model)
            except DecryptionFailed:
                raise
            except CorruptCheckpoint:
                damaged = True
            else:
                opened.append(((path, key, number), _parts(content.kind, content.body)[1]))
        if damaged:
            DAMAGE.warning("Embeddings whose checksum is wrong were left out of a search.")
        return opened


def unchecked_embedding(stored: bytes) -> bytes:
    """Return an embedding that is not encrypted, without comparing its checksum; empty if it is too short."""
    try:
        content = unverified(stored, "")
    except CorruptCheckpoint:
        return b""
    return _parts(content.kind, content.body)[1]


def _parts(kind: bytes, body: memoryview) -> tuple[bytes | None, bytes]:
    """Return the digest of the text and the embedding."""
    if kind == _EMBEDDING_OF_TEXT:
        return bytes(body[:_DIGEST_BYTES]), bytes(body[_DIGEST_BYTES:])
    return None, bytes(body)
