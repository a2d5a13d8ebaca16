"""Encrypts items and embeddings: `SealedItems`. Without encryption, they stay as they are. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ...config import MySQLConfig
from ...dialect.memories.moving import KeptRow
from ...dialect.memories.vectors import VectorRow
from ...dialect.memories.writing import ItemRow
from ...errors import InvalidInput
from ...runtime.sealing import Sealing, of_text, to_text

R = TypeVar("R", ItemRow, KeptRow)


class SealedItems:
    """Encrypts the rows of the family, bound to tenant, namespace and key; embeddings to their number as well.

    Args:
        config: The options; None to encrypt nothing.
    """

    def __init__(self, config: MySQLConfig | None = None) -> None:
        self._sealing = Sealing(None if config is None else config.encryption, "memories")

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

    def item(self, tenant: str, row: R) -> R:
        """Return the row to store for an item."""
        if not self.is_on:
            return row
        sealing = self._sealing.of(tenant, row.path, row.key)
        return replace(row, value=to_text(sealing.encrypt(row.value.encode("utf-8", "surrogatepass"), "value")))

    def value(self, tenant: str, path: bytes, key: bytes, stored: str) -> str:
        """Return the JSON text of a stored value.

        Raises:
            EncryptionError: There is no key for it, or it is in clear text although keys are given.
            CorruptCheckpoint: It was changed, or moved from another place.
        """
        if not self.is_on and stored[:1] != "/":
            return stored
        content = self._sealing.of(tenant, path, key).decrypt(of_text(stored), _title(path, key), "value")
        return content.decode("utf-8", "surrogatepass")

    def vector(self, tenant: str, row: VectorRow) -> VectorRow:
        """Return the row to store for an embedding: without signs, which show what it is near to."""
        if not self.is_on:
            return row
        sealing, index = self._sealing.of(tenant, row.path, row.key), str(row.number)
        return replace(
            row,
            digest=None if row.digest is None else sealing.digests(row.digest)[0],
            embedding=sealing.encrypt(row.embedding, "embedding", index),
            sig=None,
        )

    def embedding(self, tenant: str, path: bytes, key: bytes, index: int, stored: bytes) -> bytes:
        """Return a stored embedding. Raises as `value` does."""
        if self._sealing.leaves(stored):
            return stored
        title = _title(path, key)
        what = f"The embedding {index} of {title[0].lower()}{title[1:]}"
        return self._sealing.of(tenant, path, key).decrypt(stored, what, "embedding", str(index))

    def digest_of(self, tenant: str, path: bytes, key: bytes, stored: bytes, known: Iterable[bytes]) -> bytes:
        """Return which of the known digests of texts is stored; the stored bytes if it is none of them."""
        if self.is_on:
            sealing = self._sealing.of(tenant, path, key)
            return next((digest for digest in known if stored in sealing.digests(digest)), stored)
        return stored


def _title(path: bytes, key: bytes) -> str:
    labels = path.decode(errors="replace").split("\0")[:-1]
    return f"Item {key.decode(errors='replace')!r} in {tuple(labels)!r}"
