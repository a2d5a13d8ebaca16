"""The declaration of the tables of long-term memory: `tables_of`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from ...config import MySQLConfig
from ...dialect import Statement
from ...errors import InvalidInput
from ...records.tables import Owner, Part, Row, Sealed, Spaces, Tables
from ...runtime.sealing import sealed_by
from .arguments import path_of, searched_text
from .sealed_items import Title, sign_row, unchecked_embedding
from .statements.items import touch
from .statements.tables import JSON, MemoryDialect, Token, dialect_of
from .statements.vectors import SignRow, VectorRow, remove_loose, replace_embeddings
from .vectors.coding import decode_vector, encode_vector

#: The name of an item: the labels of its namespace and its key, as the segments of a path, escaped as in JSON Pointer.
_NAME = (
    "CONVERT(CONCAT(REPLACE(REPLACE(REPLACE(o.path, '~', '~0'), '/', '~1'), CHAR(0), '/'), o.item_key) USING utf8mb4)"
    " COLLATE utf8mb4_0900_bin"
)


def tables_of(config: MySQLConfig) -> Tables:
    """Return the tables of a configuration."""
    return _tables(dialect_of(config))


@lru_cache(maxsize=64)
def _tables(sql: MemoryDialect) -> Tables:
    """Return the tables of a dialect. Each item is an owner, so that no namespace is too large to be one.

    Deleting and writing an item again may give it its earlier version, and embedding it anew leaves its version as it
    is. So items are compared by all their rows.
    """
    return Tables(
        sql.schema,
        sql.names,
        Owner(
            "items",
            key=("path", "item_key"),
            sealed=(
                Sealed(
                    "value",
                    "value",
                    row=("item_key", "metadata"),
                    cleared=("search_text", "pending_text", "unindexed"),
                    seal="seal",
                    kind=JSON,
                    words=words_of,
                ),
            ),
            noun="item",
            epoch=("version", "updated_at"),
            bound=("path",),
            described=lambda row: Title(row["path"], row["item_key"]).place,
            stamp="updated_at",
            spaces=Spaces("path", partial(path_of, empty=True)),
            name=_NAME,
            written="o.updated_at",
            together=500,
        ),
        (
            Part(
                "vectors",
                key=("path", "item_key", "number"),
                sealed=(Sealed("embedding", "embedding", row=("model", "number", "item_key"), emptied="signs"),),
                noun="embedding",
                title="number",
                unmoved=("removed", "stamp"),
                removed="removed",
            ),
        ),
        partial(_writing, sql),
        removing=partial(_removing, sql),
        restores=True,
    )


def _removing(
    sql: MemoryDialect, tenant: str, token: bytes, items: Sequence[Row]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that remove the embeddings of items; caches see by stamps and marks what was removed."""
    keys = [(row["path"], row["item_key"]) for row in items]
    return touch(sql, Token(tenant, token), [path for path, _ in keys]), remove_loose(sql, tenant, keys)


def words_of(value: str) -> dict[str, Any]:
    """Return the columns with the words of an item for which no other text was given, from its value as JSON."""
    text = searched_text(json.loads(value))
    return {"search_text": None, "pending_text": text, "unindexed": None if text is None else 1}


def _writing(
    sql: MemoryDialect, tenant: str, token: bytes, items: Sequence[Row], parts: Mapping[str, Sequence[tuple[Any, ...]]]
) -> tuple[list[Statement], list[Statement]]:
    """Return the statements that write items: other processes see by the stamps of namespaces what is new."""
    keys = [(row["path"], row["item_key"]) for row in items]
    may_expire = {(row["path"], row["item_key"]): (row["ttl_us"] or row["expires_at"]) is not None for row in items}
    vectors = [VectorRow(*row) for row in parts["vectors"]]
    rows = [(one, _sign(one, expires=may_expire[one.path, one.key])) for one in vectors]
    return touch(sql, Token(tenant, token), [path for path, _ in keys]), replace_embeddings(sql, tenant, keys, rows)


def _sign(row: VectorRow, *, expires: bool) -> SignRow | None:
    """Return the signs of an embedding, which a search reads first; None for an encrypted one."""
    if sealed_by(row.embedding) is not None:
        return None
    floats = unchecked_embedding(row.embedding)
    if not floats or len(floats) % 4:
        raise InvalidInput(f"{Title(row.path, row.key, row.number)} holds no 32-bit floats.")
    return sign_row(row, encode_vector(decode_vector(floats), None, model=row.model), expires=expires)
