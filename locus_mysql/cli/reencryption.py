"""``reencrypt`` encrypts stored rows with the active key."""

from __future__ import annotations

import argparse
import asyncio
import sys

from ..config import MySQLConfig
from ..families.family import EncryptsColumns
from ..families.reencryption import Reencrypted, reencrypt
from ..families.registry import families
from ..runtime.counting import counted
from ..runtime.database import Database
from .arguments import FAILED, OK, add_connection, add_prefix, notify, options_of
from .tables import add_family


def add_reencrypt(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``reencrypt``."""
    add_connection(parser)
    add_prefix(parser)
    add_family(parser, [family for family in families() if isinstance(family, EncryptsColumns)])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--dry-run", action="store_true", help="only print the number of rows of each key")
    only.add_argument(
        "--check",
        action="store_true",
        help="like --dry-run, and exit with 1 if a row is not encrypted with the active key",
    )


def reencrypt_rows(arguments: argparse.Namespace) -> int:
    """Encrypt the rows of all tenants with the active key; creates no tables."""
    config = MySQLConfig.from_env(**options_of(arguments), ddl_mode="validate")
    only_counts: bool = arguments.dry_run or arguments.check
    seen = 0

    def report(family: str, number: int) -> None:
        nonlocal seen
        seen += number
        if sys.stderr.isatty():
            notify(f"{family}: {counted(seen, 'row')} examined")

    async def run() -> list[Reencrypted]:
        async with Database(config) as database:
            return await reencrypt(database, family=arguments.family, dry_run=only_counts, progress=report)

    found = asyncio.run(run())
    for one in found:
        print(_in_words(one, only_counts))
        for message in (*one.damaged, *one.clear_text_indexes):
            notify(f"locus-mysql: {message}")
    active = None if config.encryption is None else config.encryption.active
    others = any(key_id != active for one in found for key_id in one.rows)
    return FAILED if any(one.damaged for one in found) or (arguments.check and others) else OK


def _in_words(one: Reencrypted, only_counts: bool) -> str:
    """Return the counts of a family as a line."""
    keys = [
        f"{number} {'in clear text' if key_id is None else f'with key {key_id}'}"
        for key_id, number in sorted(one.rows.items(), key=lambda item: item[0] or "")
    ]
    found = f"{one.family}: {', '.join(keys) if keys else 'no rows'}"
    return found if only_counts else f"{found}. Encrypted anew: {one.replaced}."
