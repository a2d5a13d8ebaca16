"""Copies between any two of memU's databases: `copy_database`."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, NamedTuple

from ...errors import InvalidInput
from ...transfer.engine import TransferReport, UnitSource, UnitTarget, run_blocking, transfer
from .database import AsyncMemuDatabase, AsyncRecallDatabase, MemuDatabase, RecallDatabase
from .restoring import fields_of, scope_of

#: The number of records that one transaction writes.
AT_ONCE = 200


class Kind(NamedTuple):
    """A kind of records: its repository, the method that lists them, and its model in memU's SQL stores."""

    repository: str
    listing: str
    model: str


#: The kinds in the order in which they are written: each after the kinds that it refers to.
KINDS = {
    "resources": Kind("resource_repo", "list_resources", "Resource"),
    "categories": Kind("memory_category_repo", "list_categories", "MemoryCategory"),
    "items": Kind("memory_item_repo", "list_items", "MemoryItem"),
    "relations": Kind("category_item_repo", "list_relations", "CategoryItem"),
    "recall_files": Kind("recall_file_repo", "list_recall_files", "RecallFile"),
    "segments": Kind("recall_file_segment_repo", "list_segments", "RecallFileSegment"),
}


#: The field that refers to a record which the destination may have under another id.
_REFERENCES = {"relations": "category_id", "segments": "recall_file_id"}


class Portion(NamedTuple):
    """Some records of a kind, as dicts of their fields."""

    kind: str
    records: list[dict[str, Any]]


def copy_database(source: Any, destination: Any) -> TransferReport:
    """Copy all records of one of memU's or memu-cli's databases into another one with the same protocol.

    A `MemuDatabase` or `RecallDatabase` receives exact copies, with ids and times, in several transactions; a repeated
    call continues an interrupted one. In any other database, records are created by the methods of memU's protocols,
    which choose new ids and times; that database must be empty.

    Args:
        source: A database by these protocols: memU's own in memory, in SQLite or Postgres, or one of this package.
        destination: Another database with the same protocol.

    Returns:
        The result. ``kinds`` has the number of records of each kind, without relations whose item or category the
        source no longer had. ``ids`` has the ids that differ in the destination, for example of categories or recall
        files with the same scope and name, which become one. ``changed`` is the number of records that were added to
        the source or removed from it meanwhile; if it is not 0, copy again.

    Raises:
        InvalidInput: The destination's user model does not allow the scope of a record, or the two databases have
            different protocols.
    """
    for database in (source, destination):
        if isinstance(database, AsyncMemuDatabase | AsyncRecallDatabase):
            name = type(database).__name__.removeprefix("Async")
            raise InvalidInput(f"copy_database is synchronous: give {name}(database.database, user_model=…).")
    kinds = kinds_of(source)
    if kinds != kinds_of(destination):
        raise InvalidInput("One of the databases has memU's protocol, and the other one memu-cli's.")
    target: UnitTarget[Portion] = (
        RestoringTarget(destination)
        if isinstance(destination, MemuDatabase | RecallDatabase)
        else CreatingTarget(destination)
    )
    report = TransferReport("record", kinds=dict.fromkeys(kinds, 0))
    return run_blocking(transfer(Records(source, kinds), target, report))


def kinds_of(database: Any) -> tuple[str, ...]:
    """Return the kinds of records that a database has, by its repositories."""
    return tuple(kind for kind, one in KINDS.items() if hasattr(database, one.repository))


class Records(UnitSource[Portion]):
    """Reads the records of a database.

    Args:
        database: The database.
        kinds: The kinds of its records.
    """

    def __init__(self, database: Any, kinds: Sequence[str]) -> None:
        self._database = database
        self._kinds = kinds
        self._found: dict[str, list[dict[str, Any]]] = {}
        self._ids: dict[str, set[str]] = {}

    async def open(self) -> int:
        """Read all records; return their number."""
        self._found = found = {kind: records_of(self._database, kind) for kind in self._kinds}
        self._ids = {kind: {record["id"] for record in records} for kind, records in found.items()}
        if "relations" in found:
            found["relations"] = [
                one
                for one in found["relations"]
                if one["item_id"] in self._ids["items"] and one["category_id"] in self._ids["categories"]
            ]
        return sum(map(len, found.values()))

    async def units(self) -> AsyncGenerator[Portion, None]:
        """Yield the records in portions."""
        for kind, records in self._found.items():
            for start in range(0, len(records), AT_ONCE):
                yield Portion(kind, records[start : start + AT_ONCE])

    async def changed(self) -> int:
        """Return the number of records that were added or removed during the copy."""
        return sum(
            len(self._ids[kind] ^ {record["id"] for record in records_of(self._database, kind)}) for kind in self._kinds
        )


class RestoringTarget(UnitTarget[Portion]):
    """Writes exact copies of records into a database of this package.

    Args:
        database: The database.
    """

    def __init__(self, database: MemuDatabase | RecallDatabase) -> None:
        self._database = database

    async def write(self, portion: Portion, report: TransferReport) -> None:
        """Write some records; records that the database already has stay unchanged."""
        count(portion, report)
        records = portion.records
        if field := _REFERENCES.get(portion.kind):
            records = [{**one, field: report.ids.get(one[field], one[field])} for one in records]
        report.ids |= self._database.restore(**{portion.kind: records})


class CreatingTarget(UnitTarget[Portion]):
    """Creates records in any of memU's databases, which choose their ids and times.

    Args:
        database: The database.
    """

    def __init__(self, database: Any) -> None:
        self._database = database
        #: The field of resources that only this protocol has.
        self._only_here = "track" if hasattr(database, "recall_file_repo") else "modality"
        self._create: dict[str, Callable[[dict[str, Any], dict[str, str]], Any]] = {
            "resources": self._resource,
            "categories": self._category,
            "items": self._item,
            "relations": self._relation,
            "recall_files": self._recall_file,
            "segments": self._segment,
        }

    async def write(self, portion: Portion, report: TransferReport) -> None:
        """Create some records."""
        count(portion, report)
        for record in portion.records:
            made = self._create[portion.kind](record, report.ids)
            if portion.kind not in _REFERENCES:
                report.ids[record["id"]] = made.id

    def _resource(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        return self._database.resource_repo.create_resource(
            **_only(record, "url", "local_path", "caption", "embedding", self._only_here),
            user_data=scope_of("resources", record),
        )

    def _category(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        repository = self._database.memory_category_repo
        made = repository.get_or_create_category(
            **_only(record, "name", "description", "embedding"), user_data=scope_of("categories", record)
        )
        if record.get("summary") is not None:
            repository.update_category(category_id=made.id, summary=record["summary"])
        return made

    def _item(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        repository = self._database.memory_item_repo
        made = repository.create_item(
            resource_id=ids.get(record["resource_id"]),
            **_only(record, "memory_type", "summary", "embedding"),
            user_data=scope_of("items", record),
        )
        if record.get("extra"):
            repository.update_item(item_id=made.id, extra=record["extra"])
        return made

    def _relation(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        return self._database.category_item_repo.link_item_category(
            ids[record["item_id"]], ids[record["category_id"]], scope_of("links", record)
        )

    def _recall_file(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        repository = self._database.recall_file_repo
        made = repository.get_or_create_recall_file(
            **_only(record, "name", "track", "description", "embedding"), user_data=scope_of("recall_files", record)
        )
        if record.get("content") is not None:
            repository.update_recall_file(recall_file_id=made.id, content=record["content"])
        return made

    def _segment(self, record: dict[str, Any], ids: dict[str, str]) -> Any:
        return self._database.recall_file_segment_repo.create_segment(
            recall_file_id=ids.get(record["recall_file_id"], record["recall_file_id"]),
            **_only(record, "track", "text", "embedding"),
            user_data=scope_of("segments", record),
        )


def count(portion: Portion, report: TransferReport) -> None:
    """Count the records of a portion."""
    report.copied += len(portion.records)
    report.kinds[portion.kind] += len(portion.records)


def records_of(database: Any, kind: str) -> list[dict[str, Any]]:
    """Return the fields of all records of a kind.

    The lists of memU's SQL stores lack scope and ``extra``, as their records have no such fields; so the rows of these
    stores are read through their private sessions and models, checked with memU 1.5.1 and memu-cli 0.10.0.
    """
    repository, listing, model = KINDS[kind]
    repo = getattr(database, repository)
    sessions, models = getattr(repo, "_sessions", None), getattr(repo, "_sqla_models", None)
    if sessions is not None and models is not None:
        with sessions.session() as session:
            from sqlalchemy import select  # which memU's SQL stores are built on

            rows = session.scalars(select(getattr(models, model))).all()
            return [{**fields_of(row), "id": str(row.id), "embedding": _embedding(row)} for row in rows]
    records = getattr(repo, listing)()
    found = map(fields_of, records.values() if isinstance(records, dict) else records)
    return [{**fields, "id": str(fields["id"])} for fields in found]


def _embedding(row: Any) -> Any:
    """Return the embedding in a row of memU's own tables; in SQLite it is JSON text."""
    text = getattr(row, "embedding_json", None)
    return getattr(row, "embedding", None) if text is None else json.loads(text)


def _only(record: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: record.get(name) for name in names}
