"""``embed`` embeds items of long-term memory whose embeddings are missing, or of another model."""

from __future__ import annotations

import argparse
import asyncio
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ..engine.retry import next_page
from ..errors import UsageError
from ..families.memories.base import AsyncMemories, SyncMemories, count_items, embed_page
from ..runtime.counting import counted
from ..runtime.transfer import TransferReport
from .arguments import FAILED, OK, add_tenant, notify
from .progress import Progress


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
    tenant, dry_run = arguments.tenant or operations.config.tenant, arguments.dry_run
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
