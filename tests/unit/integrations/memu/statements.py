"""Every statement of memU's records, made with arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from locus_mysql.dialect import Statement
from locus_mysql.dialect.statement import Param
from locus_mysql.integrations.memu import statements
from locus_mysql.integrations.memu.statements import Condition, Filter, Page, Records, memu_dialect
from locus_mysql.integrations.memu.tables import CORE, ScopeColumn
from locus_mysql.records import ledger

SCOPE = (ScopeColumn("user_id", "VARCHAR(255)"), ScopeColumn("Level", "BIGINT"))

#: Filters of each form.
FILTERS: tuple[Filter, ...] = (
    (),
    (Condition("user_id", ("ann", None, "bob")), Condition("id", ("x",)), Condition("Level", ())),
)


def columns(role: str) -> dict[str, Param]:
    """Return a value for each column of a record."""
    return dict.fromkeys((*CORE[role], "locus_tenant", "locus_seals", "user_id", "Level"), "text")


def memu_statements() -> Iterator[tuple[str, Statement]]:
    """Yield the name of each statement, and the statement in each of its forms."""
    sql = memu_dialect("p_", SCOPE)
    yield from (("create", statement) for statement in sql.schema.create())
    yield "RECORD", ledger.RECORD(sql, tenant="t", token=b"sixteen bytes ab")
    for role in CORE:
        records = Records(sql, role, "t")
        yield from _of_all(records)
        yield "insert", records.insert(columns(role))
        yield "insert_or_keep", records.insert(columns(role), statements.KEEP)
        for merged in ({}, {"a": "1", "b": "2"}):
            yield from (("update", one) for one in records.update("id", {"user_id": "ann"}, "{}", merged))
    items, links = Records(sql, "items", "t"), Records(sql, "links", "t")
    for name in ("GUARD_RESOURCE", "RESTORE_HASHES", "UNLINK"):
        yield name, items.make(getattr(statements, name), id="x", ids=["a"], item_id="i", category_id="c")
    yield "link", links.insert(columns("links"), declared=statements.LINK)
    yield "reinforce", items.insert(columns("items"), statements.REINFORCE, statements.REINFORCED, iso="%Y")
    yield "restore_item", items.insert(columns("items"), statements.KEEP, statements.RESTORED)
    differences: dict[str, Any] = {"embedding_difference": None, "description_difference": 5}
    for role in ("categories", "recall_files"):
        yield "complete", Records(sql, role, "t").insert(columns(role), statements.COMPLETE, **differences)


def _of_all(records: Records) -> Iterator[tuple[str, Statement]]:
    """Yield the statements that read or delete records of any kind."""
    yield "GUARD_OWN", records.make(statements.GUARD_OWN, ids=["a", "b"])
    for where in FILTERS:
        for page in (None, Page(("name", "id"), None, 5), Page(("track", "name", "id"), ("a", "b", "c"), 5)):
            yield "LIST", records.make(statements.LIST, where, page)
        for name in ("LOCK", "DELETE"):
            yield from ((name, one) for one in records.each(getattr(statements, name), ["a", "b"], where))
        for pieces in (statements.SALIENCE, statements.NO_SALIENCE):
            for name in ("AGES", "COUNT", "MARKS", "FINGERPRINT", "ITEM_EMBEDDINGS", "RESOURCE_EMBEDDINGS"):
                yield name, records.make(getattr(statements, name), where, pieces=pieces, dims=2)
        yield "SERVER_TIME", records.make(statements.SERVER_TIME, where)
