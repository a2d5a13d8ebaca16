"""memU's records as lines of JSON, and back: what exports read and imports write."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from ...config import MySQLConfig
from ...dialect.memu.conditions import is_one_of
from ...dialect.memu.paging import behind
from ...dialect.memu.tables import CORE, kind_of, table_names
from ...engine.operation import Batch, Operation
from ...errors import InvalidInput, StateTooLarge, UsageError
from ...families.memories.vectors.coding import decode_vector, encode_floats
from ...runtime.checksummed_jsonl import floats_bytes, floats_text, sealed
from ...runtime.database import Database
from ...runtime.exporting import Page, Tally
from .database import own_prefix
from .operations import RecordOperations
from .records import RECORDS, BaseRecord
from .restoring import MemuOperations
from .scope_names import kinds_of, model_of, named, value_of

#: What the first line says.
FORMAT = "locus-mysql memu 1"

#: The kinds of records by the names that they have in lines, in the order in which they are written: each behind those
#: that it refers to.
KINDS = {"resource": "resources", "category": "categories", "item": "items", "relation": "links"}
_ROLES = tuple(KINDS.values())
_KIND_OF = {role: kind for kind, role in KINDS.items()}

#: What `MemuOperations.restore` calls them.
_GIVEN_AS = {"resources": "resources", "categories": "categories", "items": "items", "links": "relations"}

_TIMES = ("created_at", "updated_at", "happened_at")


class MemuMoving(MemuOperations):
    """The operations of a database whose user model is named by a command.

    Args:
        config: The options.
        scope: The user model's fields, as `scope_names` says.

    Raises:
        UsageError: A name cannot be a column's, or there is no such kind of fields.
    """

    def __init__(self, config: MySQLConfig, scope: Sequence[str]) -> None:
        self.kinds = kinds_of(scope)
        try:
            super().__init__(own_prefix(config), model_of(self.kinds), 0)
        except TypeError as error:
            raise UsageError(str(error)) from None
        self.scope_fields = tuple(self.kinds)
        self.names = table_names(self.config.table_prefix)
        self.readers = {role: RecordOperations(self, role, RECORDS[role]) for role in _ROLES}

    def accept(self, role: str, record: Mapping[str, Any]) -> None:
        """Check that a record can be stored.

        Raises:
            InvalidInput: It cannot.
        """
        self._columns(role, record)

    def typed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields with those of the scope as what they are: in JSON, a row or an argument some are texts or numbers.

        Raises:
            InvalidInput: One is none of its kind.
        """
        return {
            name: value_of(name, self.kinds[name], value) if name in self.kinds else value
            for name, value in fields.items()
        }

    def fields_of(self, role: str, record: BaseRecord) -> dict[str, Any]:
        """The fields of a record that was read."""
        return {name: getattr(record, name) for name in (*CORE[role], *self.scope_fields)}


class MemuSource:
    """memU's records, kind by kind, in the order of their ids.

    Args:
        config: Whose, and where from.
        scope: The fields of the user model.
        where: Of which scope, as memU's filters.
    """

    constants = False

    def __init__(self, config: MySQLConfig, scope: Sequence[str], where: Mapping[str, str]) -> None:
        self._operations = MemuMoving(config, scope)
        asked = self._operations.typed(where)
        self._where = {role: self._operations.scope.condition(role, asked) for role in _ROLES}
        self.head = sealed(
            {"format": FORMAT, "tenant": config.tenant, "scope": list(scope), "where": dict(sorted(where.items()))}
        )

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """The kind's place and the id."""
        role, record = record_of(content)
        return _ROLES.index(role), record["id"]

    async def count(self, database: Database) -> int:
        """How many there are of the tenant, of any scope.

        Raises:
            UsageError: The tables have a field of the user model that is not to be exported.
        """
        operations = self._operations
        engine, config = database.asynchronous, operations.config
        await engine.run(operations.load_existing(), operations.schema, config.ddl_mode)
        await engine.run(nothing_left_out(operations))
        return sum([await engine.run(operations.readers[role].count()) for role in _ROLES])

    async def page(self, database: Database, after: Any, limit: int) -> Page:
        """Some records."""
        place, id = after or (0, None)
        page = Page()
        while place < len(_ROLES):
            role = _ROLES[place]
            reading = self._operations.readers[role].find(behind(self._where[role], id, limit))
            found = await database.asynchronous.run(reading)
            if found:
                found.sort(key=lambda record: record.id)
                page.lines = [line_of(role, self._operations.fields_of(role, record)) for record in found]
                page.last = (place, found[-1].id)
                return page
            place, id = place + 1, None
        return page


def nothing_left_out(operations: MemuMoving) -> Operation[None]:
    """See that the scope names every field that the tables have: without one, records of several scopes would be one's.

    Raises:
        UsageError: There are others, or one holds something else.
    """
    (found,) = yield Batch.of(operations.schema.describe_columns())
    known = {name for core in CORE.values() for name in core} | set(operations.scope_fields)
    tables = {operations.names[role] for role in _ROLES}
    there = {str(name): kind_of(str(type)) for table, name, type in found.rows if table in tables}
    others = sorted(name for name in there.keys() - known if not name.startswith("locus_"))
    wanted = ",".join(named(name, there.get(name, "str")) for name in (*operations.scope_fields, *others))
    if others:
        raise UsageError(
            f"The tables have fields that --scope does not name: {', '.join(others)}. Without them the records of "
            f"several scopes would become those of one. Give --scope {wanted}."
        )
    if unlike := [name for name, kind in operations.kinds.items() if there.get(name, kind) != kind]:
        raise UsageError(
            f"The tables hold something else in {', '.join(unlike)} than --scope says. Give --scope {wanted}."
        )


class MemuTarget:
    """memU's records.

    Args:
        config: Where to, and whose they will be.
        scope: The fields of the user model.
        tell: Told of what is left alone.
    """

    constants = False

    def __init__(self, config: MySQLConfig, scope: Sequence[str], tell: Callable[[str], None]) -> None:
        self._operations = MemuMoving(config, scope)
        self._tell = tell
        self._renamed: dict[str, str] = {}

    def read(self, content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The role and the fields of a record."""
        role, record = record_of(content)
        return role, self.checked(role, record)

    def checked(self, role: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """A record that can be stored.

        Raises:
            InvalidInput: It cannot.
        """
        typed = self._operations.typed(record)
        self._operations.accept(role, typed)
        return typed

    async def write(self, database: Database, contents: Sequence[Any], done: Tally) -> None:
        """Write records, and read them again to compare."""
        if not contents:
            return
        try:
            await self._write(database, contents, done)
        except StateTooLarge:
            if len(contents) == 1:
                raise
            half = len(contents) // 2
            await self.write(database, contents[:half], done)
            await self.write(database, contents[half:], done)

    async def _write(self, database: Database, contents: Sequence[tuple[str, dict[str, Any]]], done: Tally) -> None:
        engine, operations = database.asynchronous, self._operations
        await engine.run(operations.load_existing(), operations.schema, operations.config.ddl_mode)
        wanted: dict[str, dict[str, dict[str, Any]]] = {role: {} for role in _ROLES}
        for role, record in contents:
            wanted[role][record["id"]] = self._followed(role, record)
        before = {role: await self._there(database, role, wanted[role]) for role in _ROLES}
        missing = {
            _GIVEN_AS[role]: [record for id, record in wanted[role].items() if id not in before[role]]
            for role in _ROLES
        }
        if any(missing.values()):
            self._renamed |= await engine.run(operations.restore(**missing))
            wanted["links"] = {id: self._followed("links", record) for id, record in wanted["links"].items()}
        after = {role: await self._there(database, role, wanted[role]) for role in _ROLES}
        for role in _ROLES:
            for id, record in wanted[role].items():
                expected = _compared(role, record)
                if before[role].get(id) == expected:
                    done.present += 1
                elif id not in before[role] and after[role].get(id) == expected:
                    done.written += 1
                else:
                    done.differing += 1
                    self._tell(f"The {_KIND_OF[role]} {id!r} {self._is_there(role, id, after[role])}.")

    def _followed(self, role: str, record: dict[str, Any]) -> dict[str, Any]:
        """A record; a relation with the category that is there under another id, if it is known that one is."""
        if role != "links":
            return record
        category = record.get("category_id")
        return {**record, "category_id": self._renamed.get(str(category), category)}

    def _is_there(self, role: str, id: str, after: Mapping[str, Any]) -> str:
        if id in self._renamed:
            return f"is there as {self._renamed[id]!r}, and its items are linked with that"
        if id in after:
            return "is there as something else"
        if role == "links":
            return "was left out: the two are linked already, or are not there"
        return "is not there"

    async def _there(self, database: Database, role: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Those of these records that are there, to be compared."""
        wanted = list(ids)
        if not wanted:
            return {}
        found = await database.asynchronous.run(self._operations.readers[role].find(is_one_of("id", wanted)))
        return {
            record.id: _compared(role, self._operations.fields_of(role, record)) for record in cast(list[Any], found)
        }


def line_of(role: str, record: Mapping[str, Any]) -> bytes:
    """The line of a record."""
    content: dict[str, Any] = {"record": _KIND_OF[role]}
    for name, value in record.items():
        if value is None:
            continue
        if name == "embedding":
            content[name] = {"float32": floats_text(encode_floats(array("f", value)))}
        elif isinstance(value, datetime):
            content[name] = value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        else:
            content[name] = str(value) if isinstance(value, UUID) else value
    return sealed(content)


def record_of(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The role and the fields of the record of a line.

    Raises:
        InvalidInput: It is none.
    """
    record = dict(content)
    role = KINDS.get(str(record.pop("record", None)))
    if role is None:
        raise InvalidInput(f"It is no record of memU's: record must be one of {', '.join(KINDS)}.")
    for name in ("id", "created_at", "updated_at"):
        if not isinstance(record.get(name), str):
            raise InvalidInput(f"The {_KIND_OF[role]} has no {name!r}.")
    for name in _TIMES:
        if name in record:
            record[name] = _time(name, record[name])
    if "embedding" in record:
        held = record["embedding"]
        raw = floats_bytes(held.get("float32") if isinstance(held, dict) else None)
        record["embedding"] = decode_vector(raw).tolist()
    return role, record


def _compared(role: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as it is compared: times as they are, embeddings as 32-bit floats, without what is missing."""
    compared: dict[str, Any] = {}
    for name, value in record.items():
        if value is None or (name == "extra" and not value):
            continue
        if name == "embedding":
            value = bytes(encode_floats(array("f", value)))
        elif name in _TIMES and isinstance(value, datetime):
            value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        compared[name] = value
    return compared


def _time(name: str, value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} is no time in ISO 8601's form.") from None
    if time.tzinfo is None:
        raise InvalidInput(f"{name} must have its zone, as in '2026-01-31T12:00:00.000000Z'.")
    return time
