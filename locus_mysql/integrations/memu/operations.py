"""Reading, clearing and writing memU's records, as generators that do no I/O: `MemuStore` and `RecordOperations`."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from ...config import MySQLConfig
from ...dialect import Query, Schema, Statement
from ...dialect.statement import Param
from ...drivers.interface import Row
from ...engine.operation import Batch, Duplicate, Operation, Outdated, fetch
from ...errors import CorruptCheckpoint, InvalidInput, NotFound
from ...families.memories.vectors.matrix import check_cache_bytes
from ...lru_cache import CachePart, LRUCache
from ...records import ledger
from ...runtime.arguments import check_text, tenant_of
from ...runtime.database import Database
from ...runtime.server_rows import decodes_rows
from . import statements
from .declaration import RecordSeals
from .records import BaseRecord, decode_embedding, encode_embedding, scoped
from .scope import Scope, aware
from .searching import KnownEmbeddings
from .statements import Filter, Page, Records, equals, memu_dialect
from .tables import CORE, LIMITS, OPTIONAL

R = TypeVar("R", bound=BaseRecord)

#: The filter of a repository's methods: ``field`` or ``field__in``, of the record or its scope; None selects all.
Where: TypeAlias = Mapping[str, Any] | None

#: The columns, of those that a category or a recall file has, that identify it besides its id.
UNIQUE = ("locus_scope", "track", "name")


class MemuStore:
    """The statements, the scope and the cache of one database.

    Args:
        config: The options.
        user_model: The scope of records.
        vector_cache_bytes: Memory for the embeddings that repeated searches compare.

    Raises:
        TypeError: The user model has a field that cannot be a column.
    """

    def __init__(self, config: MySQLConfig, user_model: type[BaseModel], vector_cache_bytes: int = 0) -> None:
        self.config = config
        self.tenant = tenant_of(config)
        self.scope = Scope(user_model)
        self.sql = memu_dialect(config.table_prefix, self.scope.columns)
        self.records = {role: Records(self.sql, role, self.tenant) for role in CORE}
        self.seals = {role: RecordSeals(self.tenant, role, self.scope.fields) for role in CORE}
        self._cache_bytes = check_cache_bytes(vector_cache_bytes)
        self.embedding_tables: LRUCache[KnownEmbeddings] | CachePart[KnownEmbeddings] = LRUCache(self._cache_bytes)

    #: See `Store.tenant_scope`: statements and seals are made for one tenant.
    of_one_tenant = True

    def attach(self, database: Database) -> None:
        """Use the caches and the counters of a database, which all its stores share."""
        tables = "memU", self.tenant, self.config.table_prefix, self.scope.columns
        self.embedding_tables = CachePart(database.embeddings(self._cache_bytes), tables)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self.sql.schema

    def load_existing(self) -> Operation[None]:
        """Create or check the tables now, as running any operation does. Nothing is loaded."""
        return
        yield

    def sealed(self, role: str, columns: Mapping[str, Param]) -> dict[str, Param]:
        """Return the columns of a new record with their seals."""
        return {**columns, "locus_seals": self.seals[role].text(columns)}

    def recording(self) -> tuple[Statement, Query[ledger.OutcomeRow]]:
        """Return the statement that records a new write's token, and the query for its outcome."""
        token = os.urandom(16)
        record = ledger.RECORD(self.sql, tenant=self.tenant, token=token)
        return record, ledger.FIND(self.sql, tenant=self.tenant, token=token)

    def write(
        self, *steps: Statement | tuple[Statement, ...], read: Statement | None = None
    ) -> Operation[tuple[Row, ...]]:
        """Run statements exactly once, even if an answer is lost; return the rows of ``read``, which runs after them.

        One round trip, unless its answer was lost.
        """
        record, outcome_query = self.recording()
        results = yield Batch.of(*steps, record, () if read is None else read, outcome_query=outcome_query)
        if read is None:
            rows: tuple[Row, ...] = ()
        elif results.earlier_attempt is None:
            rows = tuple(results.of(read).rows)
        else:
            (found,) = yield Batch.of(read)
            rows = tuple(found.rows)
        yield from ledger.in_passing(self._housekeeping)
        return rows

    def _housekeeping(self) -> Operation[None]:
        yield ledger.forget_some(self.sql)


class RecordOperations(Generic[R]):
    """Reads, clears and writes one kind of record. The methods of a subclass are those of a repository.

    Args:
        store: The store.
    """

    #: The role of the table, the name of the records in errors, and the class of the records.
    role: ClassVar[str]
    noun: ClassVar[str]
    record: ClassVar[type[BaseRecord]]
    #: The name of the view of all records.
    view: ClassVar[str]
    #: Whether that and other results with several records are lists; else they are mappings by id.
    is_listed: ClassVar[bool] = False
    #: Whether the protocol has a method that clears the records.
    is_cleared: ClassVar[bool] = True

    def __init__(self, store: MemuStore) -> None:
        self.store = store
        self.records = store.records[self.role]
        self.seals = store.seals[self.role]
        self.model = cast(type[R], scoped(store.scope.user_model, self.record))
        self._core = tuple(name for name in CORE[self.role] if name in self.record.model_fields)

    def load_existing(self) -> Operation[None]:
        """Create or check the tables. Nothing is loaded, as every answer comes from the database."""
        yield from self.store.load_existing()

    def find(self, conditions: Filter, page: Page | None = None) -> Operation[list[R]]:
        """Return the records that a filter selects, oldest first; of a page, in its order."""
        (found,) = yield Batch.of(self.records.make(statements.LIST, conditions, page))
        records = [self.read(row) for row in found.rows]
        return records if page is not None else sorted(records, key=lambda record: (record.created_at, record.id))

    def one(self, id: object) -> Operation[R | None]:
        """Return the record with an id; None if there is none."""
        if not isinstance(id, str) or len(id) > LIMITS["id"]:
            return None  # no record can have this id
        found = yield from self.find(equals(id=check_text(id, "id")))
        return found[0] if found else None

    def ids(self) -> Operation[list[str]]:
        """Return the ids of all records, oldest first."""
        rows = yield from fetch(self.records.make(statements.AGES))
        return [row.id for row in sorted(rows, key=lambda row: (row.created_at, row.id))]

    def count(self) -> Operation[int]:
        """Count the records."""
        ((count,),) = yield from fetch(self.records.make(statements.COUNT))
        return count

    def conditions(self, where: Where) -> Filter:
        """Return the conditions of a filter.

        Args:
            where: ``field`` or ``field__in``, of the record or its scope; None selects all.

        Raises:
            InvalidInput: It has an unknown field, or a value of another type than the field's; a ValueError too.
        """
        return self.store.scope.conditions(self.role, where)

    def where(self, where: Where = None) -> Operation[dict[str, R]]:
        """Return the records that a filter selects, by id, oldest first."""
        return _by_id((yield from self.find(self.conditions(where))))

    def remove(self, conditions: Filter) -> Operation[dict[str, R]]:
        """Delete the records that meet conditions; return those that this call deleted. Two round trips."""
        doomed = _by_id((yield from self.find(conditions)))
        if not doomed:
            return {}
        record, outcome_query = self.store.recording()
        # The filter is applied again: a record may have changed meanwhile, and no longer match.
        locks = self.records.each(statements.LOCK, [*doomed], conditions)
        deletes = self.records.each(statements.DELETE, [*doomed], conditions)
        results = yield Batch.of(locks, deletes, record, outcome_query=outcome_query)
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
        yield from self.store.write(self.records.each(statements.DELETE, [check_text(id, name)]))

    def create(self, user_data: object, embedding: Any, **values: object) -> Operation[R]:
        """Store a new record. One round trip.

        Args:
            user_data: Its scope.
            embedding: Its embedding.
            values: The other columns, which are texts.

        Raises:
            InvalidInput: A text is too long, or the user model does not allow the scope.
        """
        raw = encode_embedding(embedding)
        columns = self.new(self.store.scope.params(user_data), **self._texts(values), embedding=raw)
        read = self.records.make(statements.LIST, equals(id=columns["id"]))
        rows = yield from self.store.write(self.records.insert(columns), read=read)
        return self.read(rows[0]) if rows else self.deleted(columns, embedding=decode_embedding(raw))

    def complete(self, user_data: object, embedding: Any, **values: object) -> Operation[R]:
        """Return the record with these values in its scope; create it if none exists. One round trip.

        An existing record gets the embedding or the description only if its own is empty.

        Args:
            user_data: The scope.
            embedding: The embedding.
            values: The other columns, which are texts; ``name`` and ``track`` identify a record in its scope.
        """
        scope = self.store.scope.params(user_data)
        raw = encode_embedding(embedding)
        key = self.store.scope.key(self.store.tenant, scope)
        columns = self.new(scope, **self._texts(values), embedding=raw, locus_scope=key)
        unique = equals(**{name: columns[name] for name in UNIQUE if name in columns})
        differences: dict[str, Any] = {
            f"{name}_difference": self.seals.difference(columns, name) for name in ("embedding", "description")
        }
        insert = self.records.insert(columns, statements.COMPLETE, **differences)
        rows = yield from self.store.write(insert, read=self.records.make(statements.LIST, unique))
        return self.read(rows[0]) if rows else self.deleted(columns, embedding=decode_embedding(raw))

    def change(
        self,
        id: str,
        given: Mapping[str, Param],
        extra: Mapping[str, Any] = MappingProxyType({}),
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> Operation[R]:
        """Change a record. One round trip.

        Args:
            id: The record's id.
            given: The columns.
            extra: Values to set in ``extra``.
            texts: The same as JSON texts.

        Raises:
            NotFound: No such record exists.
            Duplicate: Another record has the new values of a unique key.
        """
        update = self.records.update(id, given, self.seals.text_of_changed(id, given, extra), texts)
        try:
            rows = yield from self.store.write(update, read=self.records.make(statements.LIST, equals(id=id)))
        except Outdated:
            rows = ()
        if not rows:
            raise NotFound(f"{self.noun} with id {id} not found")
        return self.read(rows[0])

    def change_unless_taken(self, id: str, taken: str, **given: Any) -> Operation[R]:
        """Change the columns of a record whose values are not None. One round trip.

        Args:
            id: The record's id.
            taken: The message if another record has the new values of a unique key.
            given: The columns: texts, and ``embedding``.

        Raises:
            NotFound: No such record exists.
            InvalidInput: Another record has the new values of a unique key.
        """
        raw = encode_embedding(given.pop("embedding", None))
        texts = {name: text_of(name, text) for name, text in given.items() if text is not None}
        try:
            return (yield from self.change(id, texts if raw is None else {**texts, "embedding": raw}))
        except Duplicate:
            raise InvalidInput(f"{taken}; nothing was changed.") from None

    def _texts(self, values: Mapping[str, object]) -> dict[str, Param]:
        """Check the texts of columns; None stands for NULL, where a column may be."""
        optional = OPTIONAL[self.role]
        return {name: text_of(name, text, optional=name in optional) for name, text in values.items()}

    @decodes_rows
    def read(self, row: Row) -> R:
        """Return the record of a row.

        Raises:
            CorruptCheckpoint: A seal is wrong.
        """
        values: dict[str, Any] = dict(zip(self.store.sql.columns[self.role], row, strict=True))
        if "extra" in values:
            values["extra"] = json.loads(values["extra"])
        if not self.seals.fit(values):
            raise CorruptCheckpoint(f"{self.noun} {values['id']!r} cannot be read: its checksum is wrong. Delete it.")
        for name in ("created_at", "updated_at", "happened_at"):
            if name in values:
                values[name] = aware(values[name])
        if "embedding" in values:
            values["embedding"] = decode_embedding(values["embedding"])
        for name, field in self.store.scope.fields.items():
            if values[name] is not None:
                values[name] = field.read(values[name])
        return self.model.model_construct(**{name: values[name] for name in (*self._core, *self.store.scope.fields)})

    def new(self, scope: Mapping[str, Param], **values: Param) -> dict[str, Param]:
        """Return the columns of a new record."""
        columns = {"id": str(uuid.uuid4()), "created_at": None, "updated_at": None, **values}
        return self.store.sealed(self.role, {**columns, "locus_tenant": self.store.tenant, **scope})

    def deleted(self, values: Mapping[str, Param], **known: Any) -> R:
        """Return a new record that another process deleted before it could be read."""
        now = datetime.now(UTC)
        fields = {name: value for name, value in values.items() if name in self._core}
        for name, field in self.store.scope.fields.items():
            fields[name] = None if values[name] is None else field.read(values[name])
        return self.model.model_construct(**{**fields, "created_at": now, "updated_at": now, **known})


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
