"""Removing all that is stored of a customer, in every family: `forget` of `Database`, which returns a `Receipt`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from ..config import MySQLConfig
from ..dialect import Schema
from ..dialect.statement import Query
from ..engine.bootstrap import has_own_tables, has_tables
from ..engine.operation import Operation, fetch
from ..errors import InvalidInput
from ..runtime.arguments import check_text
from .family import Maintains
from .registry import families, find_family

if TYPE_CHECKING:
    from ..runtime.database import Database

#: Globs of owners' names: for all families, or by family.
Owners: TypeAlias = str | Sequence[str] | Mapping[str, str | Sequence[str]]

#: What this package cannot remove; see docs/tenants.md.
REMAINS = (
    "Tokens of the last writes, with the tenant's name, for at least 15 minutes.",
    "Binary logs, until the server purges them; backups, exports and replicas that lag behind.",
    "Bytes in free pages of the tables' files, and words in full-text indexes, until OPTIMIZE TABLE.",
    "Caches of other processes, until they end or evict the entries; they serve nothing of it.",
)


class AccountRow(NamedTuple):
    """The account of a connection."""

    account: str


ACCOUNT = Query("SELECT CURRENT_USER()", row=AccountRow)


@dataclass(slots=True)
class Forgotten:
    """What was removed of a family.

    Args:
        owners: The number of owners, such as threads, sessions or items, that had not expired.
        parts: The number of parts that the family counts, such as checkpoints, of expired owners too.
        names: The names of owners; only of a dry run.
    """

    owners: int = 0
    parts: int = 0
    names: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Receipt:
    """What was removed, of whom, when and by whom.

    Args:
        tenant: The tenant.
        owners: The globs of owners' names by family.
        by: Who asked for it.
        began_at: When it began first, in UTC.
        ended_at: When it ended, in UTC; None if it was stopped. Repeat it with this receipt as ``earlier``.
        dry_run: Whether nothing was removed.
        families: What was removed, by family; families without tables are missing.
        remains: What may still hold something.
    """

    tenant: str
    owners: dict[str, list[str]]
    by: str
    began_at: str
    ended_at: str | None = None
    dry_run: bool = False
    families: dict[str, Forgotten] = field(default_factory=dict)
    remains: tuple[str, ...] = REMAINS

    def to_json(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Receipt:
        """Return the receipt of `to_json`."""
        families = {name: Forgotten(**one) for name, one in found["families"].items()}
        return cls(**{**found, "families": families, "remains": tuple(found["remains"])})


#: A step: an operation, and the tables that it uses if they must exist. Both kinds of engine run it.
Step: TypeAlias = tuple[Operation[Any], Schema | None]

#: Called with the receipt whenever owners were removed, or listed.
Progress: TypeAlias = Callable[[Receipt], None]


async def forget(database: Database, **options: Any) -> Receipt:
    """Remove all that is stored of a customer, in all families whose tables exist, and return a receipt.

    Args:
        database: The database.
        options: See `Database.forget`.
    """
    running, engine, result = _steps(database.config, **options), database.asynchronous, None
    try:
        while True:
            result = await engine.run(*running.send(result), "validate")
    except StopIteration as end:
        return cast("Receipt", end.value)
    finally:
        if not options.get("dry_run"):
            database.empty_caches()


def forget_blocking(database: Database, **options: Any) -> Receipt:
    """`forget` without an event loop."""
    running, engine, result = _steps(database.config, **options), database.synchronous, None
    try:
        while True:
            result = engine.run(*running.send(result), "validate")
    except StopIteration as end:
        return cast("Receipt", end.value)
    finally:
        if not options.get("dry_run"):
            database.empty_caches()


def _steps(
    config: MySQLConfig,
    *,
    tenant: str | None = None,
    owners: Owners | None = None,
    dry_run: bool = False,
    by: str = "",
    earlier: Receipt | None = None,
    progress: Progress = lambda _: None,
) -> Generator[Step, Any, Receipt]:
    """Remove or list owners; see `forget`. Yields operations, and receives their results."""
    if tenant is None and owners is None:
        raise InvalidInput("Name the customer: tenant=, for all that a tenant has stored, or owners=.")
    of_tenant = check_text(config.tenant if tenant is None else tenant, "The tenant")
    globs = _globs(owners)
    if earlier is not None and (earlier.tenant, earlier.owners, earlier.dry_run) != (of_tenant, globs, dry_run):
        raise InvalidInput("The receipt is of another customer, or of a dry run. Begin without it.")
    receipt = earlier or Receipt(of_tenant, globs, by, _now(), dry_run=dry_run)
    receipt.ended_at = None
    config = config.model_copy(update={"tenant": of_tenant})
    for name, patterns in globs.items():
        family = find_family(name)
        schema, maintenance = family.schema(config), family.maintenance(config)
        if not (yield (has_own_tables if family.on_request else has_tables)(schema), None):
            continue
        if " as " not in receipt.by:
            (row,) = yield fetch(ACCOUNT), schema
            receipt.by = f"{by or 'somebody'} as {row.account}"
        done = receipt.families.setdefault(name, Forgotten())
        for pattern in patterns:
            yield from _forget_owners(maintenance, schema, receipt, done, pattern, progress)
            if not dry_run:
                yield maintenance.forget_rest(of_tenant, pattern), schema
    receipt.ended_at = _now()
    progress(receipt)
    return receipt


def _forget_owners(
    maintenance: Maintains, schema: Schema, receipt: Receipt, done: Forgotten, pattern: str, progress: Progress
) -> Generator[Step, Any, None]:
    after = None
    while page := (yield maintenance.named(receipt.tenant, pattern, after), schema):
        after = page[-1].row
        if receipt.dry_run:
            done.owners += sum(one.live for one in page)
            done.names += [one.name for one in page]
            progress(receipt)
            continue
        for start in range(0, len(page), maintenance.together):
            removed = yield maintenance.remove(page[start : start + maintenance.together]), schema
            done.owners += removed.owners
            done.parts += removed.units
            progress(receipt)


def _globs(owners: Owners | None) -> dict[str, list[str]]:
    """Return the globs of owners' names by family."""
    if isinstance(owners, Mapping):
        return {find_family(name).name: _listed(globs) for name, globs in owners.items()}
    return {family.name: _listed("*" if owners is None else owners) for family in families()}


def _listed(globs: str | Sequence[str]) -> list[str]:
    found = [globs] if isinstance(globs, str) else list(globs)
    if not found or not all(isinstance(one, str) and one for one in found):
        raise InvalidInput("Owners are named by globs, such as 'u-17/*'; an empty one names none.")
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
