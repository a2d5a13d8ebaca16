"""Items to write: as callers give them (`Put`), and as they are stored (`ItemEncoder`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from ...config import MySQLConfig
from ...engine.logs import CALLS
from ...errors import InvalidInput
from ...runtime.arguments import check_limit, check_text, microseconds, tenant_of
from ...runtime.exact_json import strings_of
from .arguments import (
    SEARCHED_CHARACTERS,
    encode_metadata,
    encode_value,
    encoded_key,
    path_of,
)
from .embedding import WHOLE, EmbeddingOptions, EmbedTexts, Procedure, check_path, digest_of, texts_at
from .vectors.coding import NO_DIRECTION, Coded, decode_vector, encode_vector, model_number
from .writing import NewItem, WritingOperations

K = TypeVar("K")

#: The item's time to live is that of the store. (None means that the item never expires.)
STORE_TTL: Final = "store"


@dataclass(frozen=True, slots=True)
class Put:
    """An item to write, for `MemoryStore.put_batch`; see the arguments of `MemoryStore.put`.

    Args:
        namespace: The item's namespace.
        key: The item's key.
        value: A JSON value.
        metadata: A dict of JSON values.
        ttl_s: The item expires after this many seconds.
        if_version: Write only if the item has this version.
        text: The text that is searched by word.
        embedding: An embedding of the item.
        embeddings: Several embeddings of the item.
        index: Whether, or which paths, to embed.
        texts: Texts to embed instead of those at the paths.
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


class ItemEncoder:
    """Checks and encodes items, and embeds their texts.

    Args:
        config: The options.
        options: The options about embeddings.
        writing: Looks up stored embeddings of texts.
    """

    def __init__(self, config: MySQLConfig, options: EmbeddingOptions, writing: WritingOperations) -> None:
        self._config = config
        self._options = options
        self._writing = writing

    def encode(self, put: Put, *, in_batch: bool = False) -> NewItem:
        """Check and encode an item.

        Args:
            put: The item.
            in_batch: Whether it is one of several. Then an embedding of zeros, which has no cosine, is left out.

        Raises:
            InvalidInput: The item is not a `Put`, cannot be stored exactly, or has an embedding of another width.
        """
        if not isinstance(put, Put):
            raise InvalidInput(f"A batch takes Put(namespace, key, value), not {type(put).__name__}.")
        key = path_of(put.namespace), encoded_key(put.key)
        value = encode_value(put.value)
        if put.if_version is not None:
            check_limit(put.if_version, "if_version")
        ttl_us = microseconds(self._config.ttl_s if put.ttl_s == STORE_TTL else put.ttl_s)
        embeds = self._options.embed is not None and put.index is not False
        text = _text_of(put, whole=embeds)
        given = self._given_embeddings(put, in_batch=in_batch)
        paths = _paths_of(put.index, self._options.fields) if put.texts is None else ()
        texts = _texts_to_embed(put, text, paths) if embeds and not given else []
        searched = text[:SEARCHED_CHARACTERS] or None if self._config.search else None
        embed_paths = _stored_paths(put)
        content = key, value, encode_metadata(put.metadata), ttl_us, searched, embed_paths
        return NewItem(*content, put.if_version, [(None, coded) for coded in given], list(dict.fromkeys(texts)))

    def texts_of(self, put: Put) -> list[str]:
        """Return the texts of an item that are embedded, without duplicates."""
        paths = _paths_of(put.index, self._options.fields)
        return list(dict.fromkeys(_texts_to_embed(put, _text_of(put, whole=True), paths)))

    def embed(self, items: Sequence[NewItem]) -> Procedure[list[NewItem]]:
        """Add embeddings: known ones of texts that were embedded before, all others by one call of the function."""
        digests = {text: digest_of(text, self._options.model) for item in items for text in item.texts}
        known: dict[bytes, Coded] = {}
        if digests:
            known = yield from self._read_known(items)
        made = yield from self._embed_texts(digests, known)
        return [
            replace(item, vectors=[*item.vectors, *(made[text] for text in item.texts if text in made)], texts=())
            for item in items
        ]

    def embed_texts(self, texts: Iterable[str]) -> Procedure[dict[str, tuple[bytes, Coded]]]:
        """Return the embedding of each text with the text's digest, without those that are left out."""
        digests = {text: digest_of(text, self._options.model) for text in texts}
        return (yield from self._embed_texts(digests, {}))

    def _embed_texts(
        self, digests: Mapping[str, bytes], known: Mapping[bytes, Coded]
    ) -> Procedure[dict[str, tuple[bytes, Coded]]]:
        options, coded = self._options, dict(known)
        unknown = [text for text, digest in digests.items() if digest not in known]
        if unknown:
            embeddings = yield EmbedTexts(unknown)
            what, model = "What the embed function returned", model_number(options.model)
            for text, embedding in zip(unknown, embeddings, strict=True):
                coded[digests[text]] = encode_vector(embedding, options.dims, what, model=model)
            if options.refuses_zeros:
                coded = _without_zeros(coded)
        return {text: (digest, coded[digest]) for text, digest in digests.items() if digest in coded}

    def _read_known(self, items: Sequence[NewItem]) -> Procedure[dict[bytes, Coded]]:
        """Return the stored embeddings of these items by the digests of their texts."""
        dims, model = dims_needed(self._options.dims), model_number(self._options.model)
        keys = list({item.key for item in items if item.texts})
        stored: dict[bytes, bytes] = yield self._writing.known_vectors(tenant_of(self._config), keys)
        return {
            digest: encode_vector(decode_vector(raw), dims, model=model)
            for digest, raw in stored.items()
            if len(raw) == 4 * dims
        }

    def _given_embeddings(self, put: Put, *, in_batch: bool) -> list[Coded]:
        if isinstance(put.embeddings, str | bytes) or not isinstance(put.embeddings, Iterable):
            raise InvalidInput(f"embeddings must be a list of embeddings, not {type(put.embeddings).__name__}.")
        given = [*([] if put.embedding is None else [put.embedding]), *put.embeddings]
        model = model_number(self._options.model)
        coded = [encode_vector(vector, dims_needed(self._options.dims), model=model) for vector in given]
        if not self._options.refuses_zeros:
            return coded
        if not in_batch and any(one.is_zero for one in coded):
            raise InvalidInput(f"The embedding {NO_DIRECTION}")
        return list(_without_zeros(dict(enumerate(coded))).values())


def _without_zeros(coded: Mapping[K, Coded]) -> dict[K, Coded]:
    """Leave out embeddings of zeros, and log it."""
    kept = {key: one for key, one in coded.items() if not one.is_zero}
    if len(kept) < len(coded):
        CALLS.warning(
            "Embeddings that are all zeros, and so have no cosine, were not stored: %d.", len(coded) - len(kept)
        )
    return kept


def _stored_paths(put: Put) -> str | None:
    """Return what is stored about the texts to embed: the paths, as JSON text; None for those of the store."""
    if put.index is False or put.embedding is not None or put.embeddings:
        return "[]"
    return None if put.index is True else encode_value(list(put.index))


def _texts_to_embed(put: Put, text: str, paths: Sequence[str]) -> list[str]:
    if put.texts is not None:
        return [check_text(one, "A text to embed") for one in put.texts]
    texts: list[str] = []
    for path in paths:
        texts += [text] * bool(text) if path == WHOLE else texts_at(put.value, path)
    return texts


def _text_of(put: Put, *, whole: bool) -> str:
    """Return the text of an item: the whole, or as much as is searched by word."""
    if put.text is not None:
        return check_text(put.text, "The text")
    return "\n".join(strings_of(put.value, None if whole else SEARCHED_CHARACTERS))


def _paths_of(index: object, fields: Sequence[str]) -> Sequence[str]:
    """Return the paths of the texts to embed."""
    if isinstance(index, bool):
        return fields if index else ()
    if isinstance(index, str):
        raise InvalidInput(f"index must be a list of paths, not one text; write [{index!r}].")
    if not isinstance(index, Sequence):
        raise InvalidInput(f"index must be True, False or a list of paths, not {type(index).__name__}.")
    return [check_path(path) for path in index]


def dims_needed(dims: int | None) -> int:
    """Return the width of embeddings.

    Raises:
        InvalidInput: The store keeps no embeddings.
    """
    if dims is None:
        raise InvalidInput(
            "The store was created without dims, the width of embeddings, so it stores no embeddings. Create it with "
            "dims."
        )
    return dims
