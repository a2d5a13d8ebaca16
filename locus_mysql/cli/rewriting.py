"""``migrate``, ``reencrypt`` and ``embed``: change stored tables and rows to another layout, key or model."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ..config import MySQLConfig
from ..dialect.schema import Step
from ..engine.migration import Plan, plan
from ..engine.migration import migrate as migrate_tables
from ..engine.retry import next_page
from ..errors import UsageError
from ..families.family import EncryptsColumns
from ..families.memories.store import AsyncMemories, SyncMemories, count_items, embed_page
from ..families.migrating import asked, exists, migrating
from ..families.reencryption import Reencrypted, reencrypt
from ..families.registry import families
from ..runtime.arguments import tenant_of
from ..runtime.database import Database
from ..transfer.engine import TransferReport
from ..wording import counted
from .arguments import FAILED, OK, add_connection, add_prefix, add_tenant, notify, options_of
from .progress import Progress
from .tables import add_family, without_tables


def add_migrate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``migrate``."""
    add_connection(parser)
    add_prefix(parser, "locus_; none for memu")
    add_family(parser, families())
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="only show the steps; exit with 1 if there are any")
    mode.add_argument("--sql", action="store_true", help="only print the statements that are still to be run")


def migrate(arguments: argparse.Namespace) -> int:
    """Show, print or carry out the steps from the tables' layouts to this version's."""
    config = migrating(MySQLConfig.from_env(**options_of(arguments)))
    look = arguments.check or arguments.sql

    async def run() -> list[Plan]:
        plans = []
        async with Database(config) as database:
            engine = database.asynchronous
            for family in asked(arguments.family):
                schema = family.schema(config)
                if await engine.run(exists(family, schema, named=arguments.family is not None)):
                    operation = plan(config, schema) if look else migrate_tables(config, schema, _print_step)
                    found = await engine.run(operation)
                    if found.layout is not None:
                        _print(found, sql=arguments.sql, done=not look)
                        plans.append(found)
            if not plans:
                # The first deployment of a program runs this before the program creates its tables.
                message = f"Nothing to migrate. {await without_tables(database, arguments.family)}"
                print(f"-- {message}" if arguments.sql else message)
        return plans

    plans = asyncio.run(run())
    return FAILED if arguments.check and any(one.pending for one in plans) else OK


def _print_step(step: Step) -> None:
    print(f"step     {_described(step)}", flush=True)


def _described(step: Step) -> str:
    return f"{step.words} ({step.blocks} wait)" if step.blocks else step.words


def _print(found: Plan, *, sql: bool, done: bool) -> None:
    """Print the layout of a family, and the steps that are still to be done; or only their statements."""
    if sql:
        for step in found.steps:
            print(f"-- {_described(step)}\n{step.sql};")
    elif not found.pending:
        print(f"current  {found.family}, layout {found.layout}")
    elif done:
        print(f"migrated {found.family} from layout {found.layout} to {found.wanted}")
    else:
        print(f"older    {found.family}, layout {found.layout}; this version needs layout {found.wanted}:")
        for step in found.steps:
            print(f"step     {_described(step)}")


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
        print(_counts_in_words(one, only_counts))
        for message in (*one.damaged, *one.clear_text_indexes):
            notify(f"locus-mysql: {message}")
    active = None if config.encryption is None else config.encryption.active
    others = any(key_id != active for one in found for key_id in one.rows)
    if arguments.check and not others and config.encryption is not None and config.encryption.reads_clear:
        notify("locus-mysql: Every row is encrypted with the active key: take reads_clear away from all programs.")
    return FAILED if any(one.damaged for one in found) or (arguments.check and others) else OK


def _counts_in_words(one: Reencrypted, only_counts: bool) -> str:
    """Return the counts of a family as a line."""
    keys = [
        f"{number} {'in clear text' if key_id is None else f'with key {key_id}'}"
        for key_id, number in sorted(one.rows.items(), key=lambda item: item[0] or "")
    ]
    found = f"{one.family}: {', '.join(keys) if keys else 'no rows'}"
    return found if only_counts else f"{found}. Encrypted anew: {one.replaced}."


def add_embed(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``embed``."""
    parser.add_argument(
        "store",
        metavar="MODULE:NAME",
        help="the store with its embed function, such as app.memories:store; or a function that returns it",
    )
    parser.add_argument(
        "--namespace", nargs="+", default=[], metavar="LABEL", help="only items in this namespace and below (all)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only print the number of items to embed")
    add_tenant(parser, "items")


def embed_items(arguments: argparse.Namespace) -> int:
    """Embed a tenant's items with the function of a store. Items that are embedded already are skipped."""
    found = _imported(arguments.store)
    report = asyncio.run(_embed(found, arguments))
    return OK if report.complete else FAILED


async def _embed(found: Any, arguments: argparse.Namespace) -> TransferReport:
    store = _memories_of(found, arguments.store)
    operations = store._operations
    tenant, dry_run = arguments.tenant or tenant_of(operations.config), arguments.dry_run
    report, after = TransferReport("item", "embedded", dry_run=dry_run), None
    try:
        total = await count_items(store, arguments.namespace, tenant=tenant)
        with Progress("items") as progress:
            report.notify = progress.notify
            while True:
                page = await embed_page(store, arguments.namespace, after, tenant=tenant, dry_run=dry_run)
                report.copied += page.embedded
                report.changed += page.changed
                for path, key in page.damaged:
                    report.leave_out(f"Item {key!r} in {path!r} was left out: it is damaged.")
                report.present += page.examined - page.embedded - page.changed - len(page.damaged)
                progress.advance(report, total)
                if page.last is None:
                    break
                after = next_page(after, page.last)
    finally:
        closing = found.close()
        if inspect.isawaitable(closing):
            await closing
    model = operations.items.options.model
    named = f"the model {model!r}" if model else "a model without a name"
    print(
        f"{'To embed' if dry_run else 'Embedded'} with {named}: {counted(report.copied, 'item')}. "
        f"{report.present} more have its embeddings already, or no text to embed."
    )
    if report.changed:
        notify(f"{counted(report.changed, 'item')} changed meanwhile. Run the command again.")
    return report


def _imported(name: str) -> Any:
    """Return a store by its name; a function of this name is called."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{name!r} cannot be imported: {error}. Give the store as MODULE:NAME.") from None
    return found() if callable(found) else found


def _memories_of(found: Any, name: str) -> AsyncMemories[Any] | SyncMemories[Any]:
    store = found if isinstance(found, AsyncMemories | SyncMemories) else getattr(found, "_items", None)
    if not isinstance(store, AsyncMemories | SyncMemories):
        raise UsageError(f"{name!r} is no store of long-term memory, but {type(found).__name__}.")
    if store._operations.embed is None:
        raise UsageError(f"The store {name!r} has no function that embeds. Create it with embed= and dims=.")
    return store
