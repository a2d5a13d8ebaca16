"""Items as callers give them, and what is to be stored of them: `Put` and `prepare`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...config import MySQLConfig
from ...dialect.memories.writing import ItemRow
from ...errors import InvalidInput
from .arguments import (
    SEARCHED_CHARACTERS,
    check_count,
    check_text,
    encode_metadata,
    encode_value,
    microseconds,
    strings_of,
)
from .namespaces import encoded_key, path_of
from .paths import WHOLE, check_path, texts_at
from .vectors.coding import Coded, encode_vector

#: Where no time to live is given, the store's own holds; None then means that the item never expires.
STORE_TTL: Final = "store"


@dataclass(frozen=True, slots=True)
class Put:
    """An item to write, for `MemoryStore.put_batch`.

    Args:
        namespace: As in `MemoryStore.put`, like the others.
        key: The item's.
        value: A JSON value.
        metadata: A dict.
        ttl_s: The item expires after this many seconds.
        if_version: The version that it must have.
        text: What is searched by word.
        embedding: An embedding of the item.
        embeddings: Several.
        index: What is embedded.
        texts: What is embedded instead of what stands at paths.
    """

    namespace: Sequence[str]
    key: str
    value: Any
    metadata: Mapping[str, Any] | None = None
    ttl_s: float | str | None = STORE_TTL
    if_version: int | None = None
    text: str | None = None
    embedding: Any = None
    embeddings: Sequence[Any] = ()
    index: bool | Sequence[str] = True
    texts: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """An item to write, checked and encoded, but for the embeddings of its texts.

    Args:
        row: What stands in its row.
        given: The caller's embeddings.
        texts: What is to be embedded, each text once.
        if_version: See `Put`.
    """

    row: ItemRow
    given: list[Coded]
    texts: list[str]
    if_version: int | None


def prepare(put: Put, config: MySQLConfig, *, dims: int | None, fields: Sequence[str], embeds: bool) -> Prepared:
    """An item checked and encoded.

    Args:
        put: The item.
        config: The options.
        dims: The width of embeddings; None: there are none.
        fields: Paths of what is embedded, unless the item says otherwise.
        embeds: Whether texts are embedded.

    Raises:
        InvalidInput: It is no `Put`, something in it cannot be stored exactly, or has the wrong width.
    """
    if not isinstance(put, Put):
        raise InvalidInput(f"A batch takes Put(namespace, key, value), not {type(put).__name__}.")
    path, key = path_of(put.namespace), encoded_key(put.key)
    value = encode_value(put.value)
    if put.if_version is not None:
        check_count(put.if_version, "if_version")
    ttl_us = microseconds(config.ttl_s if put.ttl_s == STORE_TTL else put.ttl_s)
    whole = _whole_text(put, embeds=embeds and put.index is not False)
    if isinstance(put.embeddings, str | bytes) or not isinstance(put.embeddings, Iterable):
        raise InvalidInput(f"embeddings must be a list of embeddings, not {type(put.embeddings).__name__}.")
    given = [*([] if put.embedding is None else [put.embedding]), *put.embeddings]
    coded = [encode_vector(vector, dims_needed(dims)) for vector in given]
    texts: list[str] = []
    paths = _paths_of(put.index, fields)
    if embeds and not coded and put.index is not False:
        if put.texts is not None:
            texts = [check_text(text, "A text to embed") for text in put.texts]
        else:
            for at in paths:
                texts += [whole] * bool(whole) if at == WHOLE else texts_at(put.value, at)
    row = ItemRow(
        path,
        key,
        value,
        encode_metadata(put.metadata),
        ttl_us,
        whole[:SEARCHED_CHARACTERS] or None if config.search else None,
    )
    return Prepared(row, coded, list(dict.fromkeys(texts)), put.if_version)


def _whole_text(put: Put, *, embeds: bool) -> str:
    """The text of an item: all of it where it may be embedded, else as much as is searched."""
    if put.text is not None:
        return check_text(put.text, "The text")
    return "\n".join(strings_of(put.value, None if embeds else SEARCHED_CHARACTERS))


def _paths_of(index: object, fields: Sequence[str]) -> Sequence[str]:
    """The paths of what an item has embedded."""
    if isinstance(index, bool):
        return fields if index else ()
    if isinstance(index, str):
        raise InvalidInput(f"index must be a list of paths, not one text; write [{index!r}].")
    if not isinstance(index, Sequence):
        raise InvalidInput(f"index must be True, False or a list of paths, not {type(index).__name__}.")
    return [check_path(path) for path in index]


def dims_needed(dims: int | None) -> int:
    """The width of embeddings.

    Raises:
        InvalidInput: The store keeps none.
    """
    if dims is None:
        raise InvalidInput("The store was made without dims, the width of its embeddings; it keeps none.")
    return dims
