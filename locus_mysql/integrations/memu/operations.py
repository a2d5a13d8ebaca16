"""What the repositories share: reading, clearing and writing records, as generators that do no I/O."""

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
from ...dialect.memu.conditions import Condition, equals
from ...dialect.memu.dialect import MemuDialect
from ...dialect.memu.tables import CORE
from ...dialect.statement import Param
from ...drivers.interface import Row
from ...engine.operation import Batch, Duplicate, Operation, Outdated
from ...errors import CorruptCheckpoint, InvalidInput
from ...families.memories.vectors.cache import check_cache_bytes
from ...runtime.answers import decodes_rows
from ...runtime.arguments import check_text
from .embeddings import decode_embedding
from .fields import aware
from .ranking import PoolCache
from .records import LIMITS, BaseRecord, scoped
from .scope import Scope

R = TypeVar("R", bound=BaseRecord)

#: One write in so many is followed by forgetting tokens of old ones.
HOUSEKEEPING_EVERY = 64


#: What errors call a record.
_KINDS = {"resources": "Resource", "items": "Item", "categories": "Category", "links": "Relation"}


class MemuStore:
    """What the operations of one database share.

    Args:
        config: The options.
        user_model: The scope of records.
        vector_cache_bytes: Memory for what repeated searches compare.

    Raises:
        TypeError: The user model has a field that cannot be a column.
    """

    def __init__(self, config: MySQLConfig, user_model: type[BaseModel], vector_cache_bytes: int) -> None:
        self.config = config
        self.scope = Scope(user_model)
        self._dialect = MemuDialect(config.table_prefix, self.scope.columns)
        self.sql = self._dialect.records
        self.pools = PoolCache(check_cache_bytes(vector_cache_bytes))
        self._writes = itertools.count(1)

    @property
    def schema(self) -> Schema:
        """The tables."""
        return self._dialect.schema

    @property
    def tenant(self) -> str:
        """Whose records these are."""
        return self.config.tenant

    def check(self) -> Operation[None]:
        """Nothing but that the tables are made, or checked, as before any operation."""
        return
        yield

    def write(
        self, *steps: Statement | tuple[Statement, ...], read: Statement | None = None
    ) -> Operation[tuple[Row, ...]]:
        """Carry out statements once, whatever becomes of their answers; returns the rows of ``read``, asked afterwards.

        One round trip, unless its answer was lost.
        """
        token = os.urandom(16)
        named = {} if read is None else {"read": read}
        settle = self.sql.settle(token)
        landed = self.sql.landed(token)
        try:
            results = yield Batch.named(*steps, settle, *named.values(), landed=landed, **named)
        except (Duplicate, Outdated) as refused:
            if refused.fate_unknown:  # a first try that arrives late must be refused too
                yield Batch((settle,), landed)
            raise
        if read is None:
            rows: tuple[Row, ...] = ()
        elif results.landed is None:
            rows = tuple(results.named("read").rows)
        else:
            (found,) = yield Batch.of(read)
            rows = tuple(found.rows)
        if next(self._writes) % HOUSEKEEPING_EVERY == 0:
            yield Batch.of(self.sql.forget_settled())
        return rows


class RecordOperations(Generic[R]):
    """Reading and clearing one kind of record.

    Args:
        store: What is shared.
        role: Of the table.
        record: What is made of a row.
    """

    def __init__(self, store: MemuStore, role: str, record: type[R]) -> None:
        self.store = store
        self.role = role
        self.model: type[R] = scoped(store.scope.user_model, record)
        self._core = CORE[role]
        self._kind = _KINDS[role]

    @property
    def tenant(self) -> str:
        """Whose records these are."""
        return self.store.tenant

    def load_existing(self) -> Operation[None]:
        """Make or check the tables. There is nothing to load: every answer comes from the database."""
        yield from self.store.check()

    def find(self, condition: Condition) -> Operation[list[R]]:
        """The records that fulfil a condition, oldest first."""
        (found,) = yield Batch.of(self.store.sql.list(self.role, self.tenant, condition))
        return sorted(map(self.read, found.rows), key=_age)

    def one(self, id: object) -> Operation[R | None]:
        """The record with an id."""
        if not isinstance(id, str) or len(id) > LIMITS["id"]:
            return None  # no record has such an id
        found = yield from self.find(equals("id", check_text(id, "id")))
        return found[0] if found else None

    def all(self) -> Operation[dict[str, R]]:
        """Every record by its id, oldest first."""
        return _by_id((yield from self.find(Condition())))

    def ids(self) -> Operation[list[str]]:
        """The id of every record, oldest first."""
        (found,) = yield Batch.of(self.store.sql.ids(self.role, self.tenant))
        return [cast(str, id) for id, _ in sorted(found.rows, key=lambda row: (row[1], row[0]))]

    def count(self) -> Operation[int]:
        """How many records there are."""
        (found,) = yield Batch.of(self.store.sql.count(self.role, self.tenant))
        return cast(int, found.rows[0][0])

    def where(self, where: Mapping[str, Any] | None) -> Operation[dict[str, R]]:
        """The records that a filter describes, by their ids, oldest first."""
        return _by_id((yield from self.find(self.store.scope.condition(self.role, where))))

    def clear(self, where: Mapping[str, Any] | None) -> Operation[dict[str, R]]:
        """Delete the records that a filter describes; returns those that this call deleted. Two round trips."""
        condition = self.store.scope.condition(self.role, where)
        doomed = _by_id((yield from self.find(condition)))
        if not doomed:
            return {}
        ids, token = list(doomed), os.urandom(16)
        # Asked again of each: somebody may have changed it since, so that it is no longer meant.
        locks = self.store.sql.lock(self.role, self.tenant, ids, condition)
        results = yield Batch.named(
            locks,
            self.store.sql.delete(self.role, self.tenant, ids, condition),
            self.store.sql.settle(token),
            landed=self.store.sql.landed(token),
        )
        if results.landed is None:  # else all that were there are taken for deleted by the try that was not answered
            there = {row[0] for result in results[: len(locks)] for row in result.rows}
            doomed = {id: record for id, record in doomed.items() if id in there}
        return doomed

    @decodes_rows
    def read(self, row: Row) -> R:
        """A record of a row.

        Raises:
            CorruptCheckpoint: Its checksum is wrong, or ``extra`` is no JSON object.
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
        return self.model.model_construct(**values)

    def new(self, scope: Mapping[str, Param], **values: Param) -> dict[str, Param]:
        """The columns of a new record."""
        return {
            "id": str(uuid.uuid4()),
            "created_at": None,
            "updated_at": None,
            **values,
            "locus_tenant": self.tenant,
            **scope,
        }

    def gone(self, values: Mapping[str, Param], **known: Any) -> R:
        """A new record that somebody else deleted before it could be read."""
        now = datetime.now(UTC)
        fields = {name: value for name, value in values.items() if name in self._core}
        for name, field in self.store.scope.fields.items():
            fields[name] = None if values[name] is None else field.read(values[name])
        return self.model.model_construct(**{**fields, "created_at": now, "updated_at": now, **known})


def id_of(name: str, value: object) -> str:
    """An id to look for; any text."""
    return check_text(value, name)


def text_of(name: str, value: object, *, optional: bool = False) -> str | None:
    """A text that fits into its column.

    Raises:
        InvalidInput: It does not.
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
