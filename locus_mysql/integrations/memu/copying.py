"""Copying between any two of memU's databases: `copy_database`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...errors import InvalidInput
from .database import AsyncMemuDatabase, MemuDatabase
from .restoring import fields_of, scope_of

T = TypeVar("T")

#: So many records are written in one transaction.
AT_ONCE = 200

#: The repository of each kind of records, its method that lists them, and the name of its model in memU's SQL stores.
_KINDS = {
    "resources": ("resource_repo", "list_resources", "Resource"),
    "categories": ("memory_category_repo", "list_categories", "MemoryCategory"),
    "items": ("memory_item_repo", "list_items", "MemoryItem"),
    "links": ("category_item_repo", "list_relations", "CategoryItem"),
}


@dataclass(slots=True)
class Copied:
    """What `copy_database` did.

    Args:
        resources: How many the source had, as for the others.
        categories: Of these, those of one scope and name became one.
        items: How many the source had.
        relations: Without those whose item or category the source no longer had.
        ids: The ids in the destination by those in the source, where they differ.
        changed: How many records came to the source, or went, while it was read; then copy again.
    """

    resources: int = 0
    categories: int = 0
    items: int = 0
    relations: int = 0
    ids: dict[str, str] = field(default_factory=dict)
    changed: int = 0


def copy_database(source: Any, destination: Any) -> Copied:
    """Copy all resources, items, categories and relations of one of memU's databases into another one.

    Into a `MemuDatabase` records are copied as they are, with their ids and times, in some transactions: so it may be
    repeated, and goes on where it ended. Into any other database it goes by the methods of memU's protocols, which
    choose ids and times anew: it must be empty before.

    Args:
        source: A database by memU's protocols: memU's own in memory, in SQLite or Postgres, or a `MemuDatabase`.
        destination: Another one.

    Raises:
        InvalidInput: The destination's user model does not allow the scope of a record.
    """
    for database in (source, destination):
        if isinstance(database, AsyncMemuDatabase):
            raise InvalidInput("copy_database is synchronous: give MemuDatabase(database.database, user_model=…).")
    found = {role: _records(source, role) for role in _KINDS}
    there = {id_of(record) for role in ("items", "categories") for record in found[role]}
    links = [
        record for record in found["links"] if {fields_of(record)["item_id"], fields_of(record)["category_id"]} <= there
    ]
    copied = Copied(len(found["resources"]), len(found["categories"]), len(found["items"]), len(links))
    if isinstance(destination, MemuDatabase):
        _restore(destination, found, links, copied)
    else:
        _recreate(destination, found, links, copied)
    for role in _KINDS:
        copied.changed += len({*map(id_of, found[role])} ^ {*map(id_of, _records(source, role))})
    return copied


def id_of(record: object) -> str:
    """The id of a record."""
    return str(fields_of(record)["id"])


def _restore(destination: MemuDatabase, found: dict[str, list[Any]], links: list[Any], copied: Copied) -> None:
    for some in _portions(found["resources"]):
        destination.restore(resources=some)
    for some in _portions(found["categories"]):
        copied.ids |= destination.restore(categories=some)
    for some in _portions(found["items"]):
        destination.restore(items=some)
    for some in _portions(links):
        renamed = [fields_of(link) for link in some]
        for link in renamed:
            link["category_id"] = copied.ids.get(link["category_id"], link["category_id"])
        destination.restore(relations=renamed)


def _recreate(destination: Any, found: dict[str, list[Any]], links: list[Any], copied: Copied) -> None:
    for record in found["resources"]:
        fields = fields_of(record)
        made = destination.resource_repo.create_resource(
            **_only(fields, "url", "modality", "local_path", "caption"),
            embedding=fields["embedding"],
            user_data=scope_of("resources", fields),
        )
        copied.ids[fields["id"]] = made.id
    for record in found["categories"]:
        fields = fields_of(record)
        made = destination.memory_category_repo.get_or_create_category(
            **_only(fields, "name", "description"),
            embedding=fields["embedding"],
            user_data=scope_of("categories", fields),
        )
        copied.ids[fields["id"]] = made.id
        if fields.get("summary") is not None:
            destination.memory_category_repo.update_category(category_id=made.id, summary=fields["summary"])
    for record in found["items"]:
        fields = fields_of(record)
        made = destination.memory_item_repo.create_item(
            resource_id=copied.ids.get(fields["resource_id"]),
            **_only(fields, "memory_type", "summary"),
            embedding=fields["embedding"],
            user_data=scope_of("items", fields),
        )
        copied.ids[fields["id"]] = made.id
        if fields.get("extra"):
            destination.memory_item_repo.update_item(item_id=made.id, extra=fields["extra"])
    for record in links:
        fields = fields_of(record)
        destination.category_item_repo.link_item_category(
            copied.ids[fields["item_id"]], copied.ids[fields["category_id"]], scope_of("links", fields)
        )


def _records(database: Any, role: str) -> list[Any]:
    """All records of a kind.

    What memU's SQL stores list lacks scope and ``extra``, as their records have no such fields; so of these the rows
    are read, through their own sessions.
    """
    repository, listing, model = _KINDS[role]
    repo = getattr(database, repository)
    sessions, models = getattr(repo, "_sessions", None), getattr(repo, "_sqla_models", None)
    if sessions is not None and models is not None:
        with sessions.session() as session:
            rows = session.query(getattr(models, model)).all()
            return [{**fields_of(row), "embedding": _embedding(row)} for row in rows]
    records = getattr(repo, listing)()
    return list(records.values()) if isinstance(records, dict) else list(records)


def _embedding(row: Any) -> Any:
    """The embedding in a row of memU's own tables; in SQLite it is JSON text."""
    text = getattr(row, "embedding_json", None)
    return getattr(row, "embedding", None) if text is None else json.loads(text)


def _only(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: fields.get(name) for name in names}


def _portions(records: Sequence[T]) -> Iterable[Sequence[T]]:
    return (records[start : start + AT_ONCE] for start in range(0, len(records), AT_ONCE))
