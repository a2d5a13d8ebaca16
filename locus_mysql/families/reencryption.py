"""Encrypts stored rows of all families anew, after a rotation of keys: `reencrypt`; and finds indexes in clear text."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..config import MySQLConfig
from ..dialect import Schema, Statement, resealing
from ..dialect.resealing import OwnerTable, Resealing, RowKey, SealedColumn
from ..dialect.schema import ExistingTable
from ..dialect.words import INDEX_NAMES
from ..encryption import Encryption
from ..engine.bootstrap import has_own_tables
from ..engine.operation import Batch, Operation, fetch
from ..engine.retry import next_page
from ..errors import CorruptCheckpoint, EncryptionError
from ..runtime.database import Database
from ..runtime.sealing import Sealing, Value, no_support, of_columns, of_text, sealed_by, to_text, with_keys
from .family import EncryptsColumns
from .registry import families, find_family

#: The columns of rows of another table, by the columns that link them.
Owners: TypeAlias = Mapping[RowKey, tuple[Any, ...]]

#: Rows, each as its key and the id of the key that encrypts it; None stands for clear text.
Page: TypeAlias = Sequence[tuple[RowKey, str | None]]

#: Rows whose keys one statement reads.
PAGE_ROWS = 1_000

#: Owners whose rows one statement reads.
PAGE_OWNERS = 200

#: Rows that one transaction replaces.
BATCH_ROWS = 50


@dataclass(slots=True)
class KeyCounts:
    """Rows of a column by the keys that encrypt them.

    Args:
        rows: The number of rows by the id of the key; None stands for clear text.
        replaced: Rows that were encrypted anew.
        damaged: Messages about rows that cannot be decrypted, and were left as they are.
    """

    rows: Counter[str | None] = field(default_factory=Counter)
    replaced: int = 0
    damaged: list[str] = field(default_factory=list)

    def others(self, active: str) -> int:
        """Return the number of rows that another key encrypts, or none."""
        return self.rows.total() - self.rows[active]


def count_keys(column: SealedColumn) -> Operation[KeyCounts]:
    """Count the rows of a column, of all tenants, by the keys that encrypt them. Changes nothing."""
    counts = KeyCounts()
    sql = Resealing(column)
    if column.emptied is not None:
        (found,) = yield Batch.of(resealing.COUNT_EMPTIED(sql))
        counts.rows.update({None: found.rows[0][0]} if found.rows[0][0] else {})
    after: RowKey | None = ()
    while after is not None:
        page, after = yield from _page(resealing.page(sql, after, PAGE_ROWS), after, is_text=column.is_text)
        counts.rows.update(key_id for _, key_id in page)
    return counts


def reseal(
    column: SealedColumn, family: str, encryption: Encryption, progress: Callable[[int], None] = lambda _: None
) -> Operation[KeyCounts]:
    """Encrypt the rows of a column, of all tenants, with the active key where another key or none encrypts them.

    Rows are replaced only if their bytes are those that were read, so writers are not disturbed. It may be stopped and
    started again at any time.

    Args:
        column: The column.
        family: The family's name.
        encryption: The keys.
        progress: Called with the number of rows of each page.

    Raises:
        EncryptionError: A row is encrypted with an unknown key. Earlier batches of at most `BATCH_ROWS` rows were
            replaced.
    """
    return (yield from _Resealing(column, Sealing(encryption, family), progress).run())


class _Resealing:
    """Encrypts the rows of one column anew, and counts them.

    Args:
        column: The column.
        sealing: The keys.
        progress: Called with the number of rows of each page.
    """

    def __init__(self, column: SealedColumn, sealing: Sealing, progress: Callable[[int], None]) -> None:
        self._column = column
        self._sql = Resealing(column)
        self._sealing = sealing
        self._progress = progress
        self._counts = KeyCounts()
        #: The keys of rows that cannot be decrypted, and were left as they are.
        self._left: set[RowKey] = set()

    def run(self) -> Operation[KeyCounts]:
        """Replace and count all rows."""
        column, counts = self._column, self._counts
        yield from self._empty()
        if column.owner_table is not None:
            yield from self._by_owner(column.owner_table)
        after: RowKey | None = ()
        while after is not None:
            page, after = yield from _page(resealing.page(self._sql, after, PAGE_ROWS), after, is_text=column.is_text)
            stale = {key: key_id for key, key_id in self._stale(page).items() if key not in self._left}
            owners = yield from self._owners(list(stale))
            yield from self._replace_all(list(stale), owners)
            if column.owner_table is None:
                self._count(page)
            else:  # rows with an owner were counted
                counts.rows.update(key_id for key, key_id in stale.items() if _link(column, key) not in owners)
        return counts

    def _by_owner(self, owner_table: OwnerTable) -> Operation[None]:
        """Encrypt the rows of each owner anew, and count them.

        It reads the owners along their primary key, as no index leads from a row to its owner.
        """
        column, sql = self._column, self._sql
        key_width, link_width = len(owner_table.key), len(owner_table.link)
        last: RowKey | None = ()
        while last is not None:
            (found,) = yield Batch.of(resealing.owner_page(sql, owner_table, last, PAGE_OWNERS))
            last = next_page(last, tuple(found.rows[-1][:key_width])) if len(found.rows) == PAGE_OWNERS else None
            owners = {
                tuple(row[key_width : key_width + link_width]): tuple(row[key_width + link_width :])
                for row in found.rows
            }
            after: RowKey | None = () if owners else None
            while after is not None:
                links = [link for link in owners if not after or link >= _link(column, after)]
                reading = resealing.owned_page(sql, links, after, PAGE_ROWS)
                page, after = yield from _page(reading, after, is_text=column.is_text)
                yield from self._replace_all(list(self._stale(page)), owners)
                self._count(page)

    def _stale(self, page: Page) -> dict[RowKey, str | None]:
        """Return the rows of a page that the active key does not encrypt."""
        return {key: key_id for key, key_id in page if not self._sealing.has_active_key(key_id)}

    def _count(self, page: Page) -> None:
        self._counts.rows.update(key_id for _, key_id in page)
        self._progress(len(page))

    def _empty(self) -> Operation[None]:
        """Remove the rows of the table that has clear text only."""
        while self._column.emptied is not None:
            (removed,) = yield Batch.of(resealing.EMPTY(self._sql, limit=PAGE_ROWS))
            if removed.affected < PAGE_ROWS:
                return

    def _owners(self, keys: Sequence[RowKey]) -> Operation[Owners]:
        """Return the owners of rows whose table does not have them, by the columns that link both tables."""
        column = self._column
        if column.owner_table is None or not keys:
            return {}
        width = len(column.owner_table.link)
        links = list(dict.fromkeys(_link(column, key) for key in keys))
        (found,) = yield Batch.of(resealing.OWNERS(self._sql, links=links))
        return {tuple(row[:width]): tuple(row[width:]) for row in found.rows}

    def _replace_all(self, keys: Sequence[RowKey], owners: Owners) -> Operation[None]:
        """Encrypt rows anew, in several transactions."""
        for start in range(0, len(keys), BATCH_ROWS):
            (found,) = yield Batch.of(resealing.ROWS(self._sql, keys=list(keys[start : start + BATCH_ROWS])))
            rows = [dict[str, Any](zip(self._column.columns, values, strict=True)) for values in found.rows]
            replaced = [statements for row in rows if (statements := self._replacement(row, owners))]
            if replaced:
                results = yield Batch(tuple(statement for statements in replaced for statement in statements))
                each = len(replaced[0])
                self._counts.replaced += sum(result.affected for result in results[each - 1 :: each])

    def _replacement(self, row: dict[str, Any], owners: Owners) -> tuple[Statement, ...]:
        """Return the statements that encrypt a row anew; none, and a message, if the row cannot be decrypted."""
        column = self._column
        content = _bytes(row[column.column], is_text=column.is_text)
        if column.seal and row[column.seal] is not None:
            content = of_columns(column.kind, row[column.column], row[column.seal])
        key = tuple(row[name] for name in column.key)
        what = f"Row {key!r} of table {column.table!r}"
        if column.owner_table is not None:
            owner = owners.get(tuple(row[name] for name in column.owner_table.link))
            if owner is None:
                self._leave(key, f"{what} belongs to no row of table {column.owner_table.table!r}. Delete it.")
                return ()
            row |= zip(column.owner, owner, strict=True)
        bound = self._sealing.of(row["tenant"], *(_part(row[name]) for name in column.owner))
        base = () if row.get("base") is None else (_part(row["base"]),)
        plain = (*(_part(row[name]) for name in column.row), *base)
        identity = (*column.identity(row), *base) if column.identity else plain
        try:
            if not content:  # only other columns hold clear text
                sealed = b""
            else:
                if sealed_by(content) is not None:
                    clear = bound.open(content, what, column.name, *identity)
                else:
                    clear = bound.verify(content, what, column.name, *plain)
                sealed = bound.seal(clear.kind, (clear.body,), column.name, *identity)
        except CorruptCheckpoint as error:
            self._leave(key, str(error))
            return ()
        digest = hashlib.sha256(_bytes(row[column.column])).hexdigest()
        return resealing.replace(self._sql, row, to_text(sealed) if column.is_text else sealed, digest)

    def _leave(self, key: RowKey, message: str) -> None:
        """Leave a row as it is."""
        self._counts.damaged.append(message)
        self._left.add(key)


def _link(column: SealedColumn, key: RowKey) -> RowKey:
    """Return the values that link a row, given by its key, to its owner."""
    return () if column.owner_table is None else key[: len(column.owner_table.link)]


def _page(statement: Statement, after: RowKey, *, is_text: bool) -> Operation[tuple[Page, RowKey | None]]:
    """Return the rows after a key that hold something, and the last row's key, which is None after the last page."""
    (found,) = yield Batch.of(statement)
    rows = []
    for row in found.rows:
        *key, beginning, has_clear_text = row
        # The beginning is too short to hold a nonce and a tag.
        key_id = sealed_by(_bytes(beginning, is_text=is_text) + bytes(64))
        if beginning or has_clear_text:
            rows.append((tuple(key), None if has_clear_text else key_id))
    last = next_page(after, tuple(found.rows[-1][:-2])) if len(found.rows) == PAGE_ROWS else None
    return rows, last


def _bytes(value: Any, *, is_text: bool = False) -> bytes:
    """Return the bytes of a value; of text, those that are encoded in it."""
    if value is None:
        return b""
    if is_text:
        return of_text(str(value))
    return value.encode() if isinstance(value, str) else bytes(value)


def _part(value: Any) -> Value:
    """Return the value of a column as a part of what identifies a row."""
    return value if value is None or isinstance(value, str | bytes | int) else str(value)


def no_encryption() -> EncryptionError:
    """Return the error for a call that needs keys."""
    return EncryptionError(
        "Rows cannot be encrypted, as there are no keys: set encryption=Encryption(keys=…, active=…)."
    )


@dataclass(frozen=True, slots=True)
class Reencrypted:
    """A family whose rows were counted, or encrypted anew.

    Args:
        family: Its name.
        rows: The number of rows found by the id of the key that encrypts them; None stands for clear text.
        replaced: The number of rows that were encrypted anew.
        damaged: Messages about rows that cannot be decrypted, and were left as they are.
        clear_text_indexes: Messages about indexes for searches by word from before encryption was turned on, which
            hold words in clear text. Each ends with the ALTER TABLE statement that removes them, which is not run, as
            it needs privileges that an application lacks.
    """

    family: str
    rows: dict[str | None, int]
    replaced: int
    damaged: tuple[str, ...]
    clear_text_indexes: tuple[str, ...]


async def reencrypt(
    database: Database,
    *,
    family: str | None = None,
    dry_run: bool = False,
    progress: Callable[[str, int], None] = lambda *_: None,
) -> list[Reencrypted]:
    """Encrypt the rows of all tenants with the active key, where another key or none encrypts them.

    It reads every row's first bytes, and replaces rows in small transactions, each only if nothing has changed it
    since. It may run beside writers, and may be stopped and called again. Writers should have the active key before.

    Args:
        database: The database, with ``encryption``.
        family: The name of a family of tables; None for all that support encryption and have tables.
        dry_run: Whether the rows are only counted.
        progress: Called after each page with the family's name and the number of rows in it; not with ``dry_run``.

    Returns:
        Each family's counts, and messages about damaged rows and about indexes in clear text.

    Raises:
        EncryptionError: The database has no keys, a row's key is unknown, or the family does not support encryption.

    Example:
        ```python
        import secrets

        from locus_mysql import Database, Encryption, reencrypt

        keys = {"2026-10": secrets.token_bytes(32), "2026-11": secrets.token_bytes(32)}
        encryption = Encryption(keys=keys, active="2026-11")
        async with Database("mysql://user:password@localhost/app", encryption=encryption) as db:
            for counts in await reencrypt(db):
                print(counts.family, counts.replaced)
        ```
    """
    config = database.config
    encryption = config.encryption
    if encryption is None:
        raise no_encryption()
    chosen = families() if family is None else [find_family(family)]
    done = []
    for one in chosen:
        if not isinstance(one, EncryptsColumns):
            if family is not None:
                raise no_support(one.name)
            continue
        if await database.asynchronous.run(has_own_tables(one.schema(config))):
            operation = _of_family(one, config, dry_run, progress)
            done.append(await database.asynchronous.run(with_keys(operation, encryption)))
    return done


def _of_family(
    family: EncryptsColumns, config: MySQLConfig, dry_run: bool, progress: Callable[[str, int], None]
) -> Operation[Reencrypted]:
    rows: Counter[str | None] = Counter()
    replaced, damaged = 0, []
    for column in family.encrypted_columns(config):
        counts: KeyCounts
        if dry_run or config.encryption is None:
            counts = yield from count_keys(column)
        else:
            counts = yield from reseal(
                column, family.name, config.encryption, lambda number: progress(family.name, number)
            )
        rows.update(counts.rows)
        replaced += counts.replaced
        damaged += counts.damaged
    schema = family.schema(config)
    tables = yield from fetch(schema.describe())
    return Reencrypted(family.name, dict(rows), replaced, tuple(damaged), warn_of_clear_words(schema, tables))


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
