"""Reading, clearing and writing memU's records, as generators that do no I/O: `MemuStore` and `RecordOperations`."""

from __future__ import annotations

import itertools
import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from ...config import MySQLConfig
from ...dialect import Schema, Statement
from ...dialect.memu.dialect import MemuDialect
from ...dialect.memu.record_filters import RecordFilter, equals
from ...dialect.memu.tables import CORE
from ...dialect.statement import Param
from ...drivers.interface import Row
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...errors import CorruptCheckpoint, InvalidInput, NotFound
from ...families.memories.vectors.matrix import check_cache_bytes
from ...lru_cache import CachePart, LRUCache
from ...runtime.arguments import check_text, tenant_of
from ...runtime.damaged_rows import decodes_rows
from ...runtime.database import Database
from .embeddings import decode_embedding, encode_embedding
from .fields import aware
from .records import LIMITS, BaseRecord, scoped
from .scope import Scope
from .searching import KnownEmbeddings

R = TypeVar("R", bound=BaseRecord)

#: On average, one write in this number is followed by the removal of old tokens.
HOUSEKEEPING_EVERY = 64


#: The columns, of those that a category or a recall file has, that identify it besides its id.
UNIQUE = ("locus_scope", "track", "name")

#: The names of records in errors.
_KINDS = {
    "resources": "Resource",
    "items": "Item",
    "categories": "Category",
    "links": "Relation",
    "recall_files": "Recall file",
    "segments": "Segment",
}


class MemuStore:
    """The statements, the scope and the cache of one database.

    Args:
        config: The options.
        user_model: The scope of records.
        vector_cache_bytes: Memory for the embeddings that repeated searches compare.

    Raises:
        TypeError: The user model has a field that cannot be a column.
    """

    def __init__(self, config: MySQLConfig, user_model: type[BaseModel], vector_cache_bytes: int) -> None:
        self.config = config
        self.scope = Scope(user_model)
        self._dialect = MemuDialect(config.table_prefix, self.scope.columns)
        self.sql = self._dialect.records
        self.ledger = self._dialect.ledger
        self._cache_bytes = check_cache_bytes(vector_cache_bytes)
        self.embedding_tables: LRUCache[KnownEmbeddings] | CachePart[KnownEmbeddings] = LRUCache(self._cache_bytes)
        self._writes = itertools.count(1)

    def attach(self, database: Database) -> None:
        """See `HasCaches.attach`."""
        tables = "memU", self.config.table_prefix, self.scope.columns
        self.embedding_tables = CachePart(database.embeddings(self._cache_bytes), tables)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self._dialect.schema

    @property
    def tenant(self) -> str:
        """The tenant of the records."""
        return tenant_of(self.config)

    def check(self) -> Operation[None]:
        """Do nothing; running any operation creates or checks the tables."""
        return
        yield

    def write(
        self, *steps: Statement | tuple[Statement, ...], read: Statement | None = None
    ) -> Operation[tuple[Row, ...]]:
        """Run statements exactly once, even if an answer is lost; returns the rows of ``read``, which runs after them.

        One round trip, unless its answer was lost.
        """
        token = os.urandom(16)
        record, outcome_query = self.ledger.record(self.tenant, token), self.ledger.find(self.tenant, token)
        results = yield Batch.of(*steps, record, () if read is None else read, outcome_query=outcome_query)
        if read is None:
            rows: tuple[Row, ...] = ()
        elif results.earlier_attempt is None:
            rows = tuple(results.of(read).rows)
        else:
            (found,) = yield Batch.of(read)
            rows = tuple(found.rows)
        if next(self._writes) % HOUSEKEEPING_EVERY == 0:
            yield Batch.of(self.ledger.forget_old())
        return rows


class RecordOperations(Generic[R]):
    """Reads and clears one kind of record.

    Args:
        store: The store.
        role: The role of the table.
        record: The class of the records.
    """

    def __init__(self, store: MemuStore, role: str, record: type[R]) -> None:
        self.store = store
        self.role = role
        self.model: type[R] = scoped(store.scope.user_model, record)
        self._core = tuple(name for name in CORE[role] if name in record.model_fields)
        self._kind = _KINDS[role]

    @property
    def tenant(self) -> str:
        """The tenant of the records."""
        return self.store.tenant

    def load_existing(self) -> Operation[None]:
        """Create or check the tables. Nothing is loaded, as every answer comes from the database."""
        yield from self.store.check()

    def find(self, condition: RecordFilter) -> Operation[list[R]]:
        """Return the records that match a filter, oldest first."""
        (found,) = yield Batch.of(self.store.sql.list(self.role, self.tenant, condition))
        return sorted(map(self.read, found.rows), key=_age)

    def one(self, id: object) -> Operation[R | None]:
        """Return the record with an id; None if there is none."""
        if not isinstance(id, str) or len(id) > LIMITS["id"]:
            return None  # no record can have this id
        found = yield from self.find(equals("id", check_text(id, "id")))
        return found[0] if found else None

    def all(self) -> Operation[dict[str, R]]:
        """Return all records by id, oldest first."""
        return _by_id((yield from self.find(RecordFilter())))

    def ids(self) -> Operation[list[str]]:
        """Return the ids of all records, oldest first."""
        rows = yield from fetch(self.store.sql.ids(self.role, self.tenant))
        return [row.id for row in sorted(rows, key=lambda row: (row.created_at, row.id))]

    def count(self) -> Operation[int]:
        """Count the records."""
        ((count,),) = yield from fetch(self.store.sql.count(self.role, self.tenant))
        return count

    def where(self, where: Mapping[str, Any] | None) -> Operation[dict[str, R]]:
        """Return the records that a filter selects, by id, oldest first."""
        return _by_id((yield from self.find(self.store.scope.condition(self.role, where))))

    def clear(self, where: Mapping[str, Any] | None) -> Operation[dict[str, R]]:
        """Delete the records that a filter selects; returns those that this call deleted. Two round trips."""
        return (yield from self.remove(self.store.scope.condition(self.role, where)))

    def remove(self, condition: RecordFilter) -> Operation[dict[str, R]]:
        """Delete the records that match a filter; returns those that this call deleted. Two round trips."""
        doomed = _by_id((yield from self.find(condition)))
        if not doomed:
            return {}
        ids, token = list(doomed), os.urandom(16)
        # The filter is applied again: a record may have changed meanwhile, and no longer match.
        locks = self.store.sql.lock(self.role, self.tenant, ids, condition)
        results = yield Batch.of(
            locks,
            self.store.sql.delete(self.role, self.tenant, ids, condition),
            self.store.ledger.record(self.tenant, token),
            outcome_query=self.store.ledger.find(self.tenant, token),
        )
        if results.earlier_attempt is None:  # else an earlier attempt, whose answer was lost, has deleted them all
            locked = {row.id for lock in locks for row in results.rows(lock)}
            doomed = {id: record for id, record in doomed.items() if id in locked}
        return doomed

    def delete(self, name: str, id: str) -> Operation[None]:
        """Delete a record, if it exists. One round trip.

        Args:
            name: The name of the argument, for errors.
            id: The record's id.
        """
        yield from self.store.write(self.store.sql.delete(self.role, self.tenant, [id_of(name, id)]))

    def create(self, scope: Mapping[str, Param], embedding: Any, **values: Param) -> Operation[R]:
        """Store a new record. One round trip.

        Args:
            scope: The columns of its scope.
            embedding: Its embedding.
            values: The other columns.
        """
        raw = encode_embedding(embedding)
        columns = self.new(scope, **values, embedding=raw)
        read = self.store.sql.list(self.role, self.tenant, equals("id", columns["id"]))
        rows = yield from self.store.write(self.store.sql.insert(self.role, columns), read=read)
        return self.read(rows[0]) if rows else self.gone(columns, embedding=decode_embedding(raw))

    def complete(self, user_data: object, embedding: Any, **values: Param) -> Operation[R]:
        """Return the record with these values in its scope; create it if none exists. One round trip.

        An existing record gets the embedding or the description only if its own is empty.

        Args:
            user_data: The scope.
            embedding: The embedding.
            values: The other columns, of which ``name`` and ``track`` identify a record in its scope.
        """
        scope = self.store.scope.params(user_data)
        key = self.store.scope.key(self.tenant, scope)
        raw = encode_embedding(embedding)
        columns = self.new(scope, **values, embedding=raw, locus_scope=key)
        unique = RecordFilter.all([equals(name, columns[name]) for name in UNIQUE if name in columns])
        read = self.store.sql.list(self.role, self.tenant, unique)
        rows = yield from self.store.write(self.store.sql.insert_or_complete(self.role, columns), read=read)
        return self.read(rows[0]) if rows else self.gone(columns, embedding=decode_embedding(raw))

    def change(self, id: str, taken: str, given: Mapping[str, Param]) -> Operation[R]:
        """Change the columns of a record whose values are not None. One round trip.

        Args:
            id: The record's id.
            taken: The message if another record has the new values of a unique key.
            given: The columns.

        Raises:
            NotFound: No such record exists.
            InvalidInput: Another record has the new values of a unique key.
        """
        values = {column: value for column, value in given.items() if value is not None}
        read = self.store.sql.list(self.role, self.tenant, equals("id", id))
        try:
            rows = yield from self.store.write(self.store.sql.update(self.role, self.tenant, id, values), read=read)
        except Duplicate:
            raise InvalidInput(f"{taken}; nothing was changed.") from None
        except Outdated:
            rows = ()
        if not rows:
            raise NotFound(f"{self._kind} with id {id} not found")
        return self.read(rows[0])

    @decodes_rows
    def read(self, row: Row) -> R:
        """Return the record of a row.

        Raises:
            CorruptCheckpoint: A checksum is wrong, or ``extra`` is not a JSON object.
        """
        *content, sound = row
        values: dict[str, Any] = dict(zip(self.store.sql.columns[self.role], content, strict=True))
        if not sound:
            raise CorruptCheckpoint(f"{self._kind} {values['id']!r} cannot be read: its checksum is wrong. Delete it.")
        for name in ("created_at", "updated_at", "happened_at"):
            if name in values:
                values[name] = aware(values[name])
        if "embedding" in values:
            values["embedding"] = decode_embedding(values["embedding"])
        if "extra" in values:
            values["extra"] = _object(values["extra"], values["id"])
        for name, field in self.store.scope.fields.items():
            if values[name] is not None:
                values[name] = field.read(values[name])
        return self.model.model_construct(**{name: values[name] for name in (*self._core, *self.store.scope.fields)})

    def new(self, scope: Mapping[str, Param], **values: Param) -> dict[str, Param]:
        """Return the columns of a new record."""
        return {
            "id": str(uuid.uuid4()),
            "created_at": None,
            "updated_at": None,
            **values,
            "locus_tenant": self.tenant,
            **scope,
        }

    def gone(self, values: Mapping[str, Param], **known: Any) -> R:
        """Return a new record that another process deleted before it could be read."""
        now = datetime.now(UTC)
        fields = {name: value for name, value in values.items() if name in self._core}
        for name, field in self.store.scope.fields.items():
            fields[name] = None if values[name] is None else field.read(values[name])
        return self.model.model_construct(**{**fields, "created_at": now, "updated_at": now, **known})


def id_of(name: str, value: object) -> str:
    """Check an id, which may be any text."""
    return check_text(value, name)


def text_of(name: str, value: object, *, optional: bool = False) -> str | None:
    """Check a text that is stored in a column.

    Raises:
        InvalidInput: It is longer than the column.
    """
    if value is None and optional:
        return None
    text = check_text(value, name)
    limit = LIMITS.get(name)
    if limit is not None and len(text) > limit:
        raise InvalidInput(f"{name} is {len(text)} characters long; the limit is {limit}. Shorten it.")
    return text


def _by_id(records: list[R]) -> dict[str, R]:
    return {record.id: record for record in records}


def _age(record: BaseRecord) -> tuple[Any, str]:
    return (record.created_at, record.id)


def _object(text: object, id: object) -> dict[str, Any]:
    try:
        value = json.loads(cast(str, text))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CorruptCheckpoint(f"Item {id!r} cannot be read: its extra is no JSON object. Delete it.")
    return value
