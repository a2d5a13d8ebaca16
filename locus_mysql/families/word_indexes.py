"""Indexes for searches by word from before encryption was turned on: they hold words in clear text."""

from __future__ import annotations

from collections.abc import Iterable

from ..dialect import Schema
from ..dialect.schema import ExistingTable
from ..dialect.words import INDEX_NAMES

#: The indexes for searches by word: of the texts, and of the rows whose text is not indexed yet.
SEARCH_INDEXES = (*INDEX_NAMES.values(), "pending")


def warn_of_clear_words(schema: Schema, tables: Iterable[ExistingTable]) -> tuple[str, ...]:
    """Return a sentence, with the statement that removes them, for each table that still has such indexes.

    Args:
        schema: The family's declared tables. A family that encrypts declares none of these indexes; one that does not
            encrypt may, and is not reported.
        tables: The existing tables; some may be missing.
    """
    indexes = {table.name.casefold(): (table.indexes or "").split(",") for table in tables}
    sentences = []
    for declared in schema.tables:
        existing = indexes.get(declared.name.casefold(), [])
        unused = [index for index in SEARCH_INDEXES if index in existing and f"KEY {index} " not in declared.definition]
        if unused:
            drops = ", ".join(f"DROP KEY {index}" for index in unused)
            sentences.append(
                f"Table {declared.name!r} has indexes for searches by word from before encryption was turned on. They "
                "hold words of earlier texts in clear text, also after `reencrypt`. Remove them: "
                f"ALTER TABLE `{declared.name}` {drops};"
            )
    return tuple(sentences)
