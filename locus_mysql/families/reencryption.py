"""Encrypts stored rows of all families anew, after a rotation of keys: `reencrypt`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ..config import MySQLConfig
from ..engine.bootstrap import has_own_tables
from ..engine.operation import Operation, fetch
from ..runtime.database import Database
from ..runtime.resealing import KeyCounts, count_keys, no_encryption, reseal
from ..runtime.sealing import no_support, with_keys
from .family import EncryptsColumns
from .registry import families, find_family
from .word_indexes import warn_of_clear_words


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
