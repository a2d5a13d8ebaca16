"""Every statement of memU's records, made with arguments."""

from __future__ import annotations

from collections.abc import Iterator

from locus_mysql.dialect import Statement
from locus_mysql.dialect.statement import Param
from locus_mysql.integrations.memu import statements
from locus_mysql.integrations.memu.statements import Condition, Filter, MemuDialect, Page, memu_dialect
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
    """Yield the name of each statement or of the function that makes it, and the statement."""
    sql = memu_dialect("p_", SCOPE)
    yield from (("create", statement) for statement in sql.schema.create())
    for name in ("GUARD_CHANGED", "SERVER_TIME"):
        yield name, getattr(statements, name)(sql)
    yield "GUARD_RESOURCE", statements.GUARD_RESOURCE(sql, id="x", tenant="t")
    yield "GUARD_OWN", statements.GUARD_OWN(sql, tenant="t", ids=["a", "b"], pieces={"table": "{items}"})
    yield "RESTORE_HASHES", statements.RESTORE_HASHES(sql, tenant="t", ids=["a"])
    yield "UNLINK", statements.UNLINK(sql, tenant="t", item_id="i", category_id="c")
    yield "link", statements.link(sql, columns("links"))
    yield "insert_or_reinforce", statements.insert_or_reinforce(sql, columns("items"))
    for role in ("categories", "recall_files"):
        differences = {"embedding": None, "description": 5}
        yield "insert_or_complete", statements.insert_or_complete(sql, role, columns(role), differences)
    for role in CORE:
        yield "insert", statements.insert(sql, role, columns(role))
        yield "insert_or_keep", statements.insert_or_keep(sql, role, columns(role))
        yield "count_records", statements.count_records(sql, role, "t")
        for merged in ({}, {"a": "1", "b": "2"}):
            made = statements.update(sql, role, "t", "id", {"user_id": "ann"}, "{}", merged)
            yield from (("update", statement) for statement in made)
        for where in FILTERS:
            yield from (("filters", statement) for statement in _filtered(sql, role, where))


def _filtered(sql: MemuDialect, role: str, where: Filter) -> Iterator[Statement]:
    for page in (None, Page(("name", "id"), None, 5), Page(("track", "name", "id"), ("a", "b", "c"), 5)):
        yield statements.find_records(sql, role, "t", where, page)
    yield statements.find_ages(sql, role, "t", where)
    yield from statements.lock(sql, role, "t", ["a", "b"], where)
    yield from statements.delete(sql, role, "t", ["a", "b"], where)
    for salience in (False, True):
        yield statements.marks(sql, "t", 2, where, salience=salience)
        yield statements.item_embeddings(sql, "t", 2, where, salience=salience)
    yield statements.fingerprint(sql, "t", 2, where)
    yield from statements.embeddings_of(sql, "t", 2, ["a"])
    yield statements.resource_embeddings(sql, "t", 2, where)
    yield ledger.RECORD(sql, tenant="t", token=b"sixteen bytes ab")
