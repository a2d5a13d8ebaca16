"""memU's records as a source and a target of transfers, and as lines of JSON."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from ...config import MySQLConfig
from ...dialect.structure import describe_columns
from ...engine.operation import Operation, fetch
from ...errors import InvalidInput, StateTooLarge, UsageError
from ...families.family import refuse_others
from ...families.memories.vectors.coding import decode_vector, encode_floats
from ...runtime.checksummed_jsonl import Head, checksummed, floats_bytes, floats_text
from ...runtime.database import Database
from ...runtime.exact_json import canonical_text
from ...runtime.sealing import refuse_clear_tables
from ...runtime.transfer import RecordPage, TransferReport
from .family import own_prefix
from .operations import reader
from .records import BaseRecord
from .restoring import MemuOperations
from .scope import kinds_of, model_of, named, value_of
from .statements import Condition, Page
from .tables import CORE, kind_of, table_names

#: The format in the first line.
FORMAT = "locus-mysql memu 1"

#: The roles of records by their names in lines, in the order in which they are written: each after the records that it
#: refers to.
KINDS = {
    "resource": "resources",
    "category": "categories",
    "item": "items",
    "relation": "links",
    "recall_file": "recall_files",
    "segment": "segments",
}
_ROLES = tuple(KINDS.values())
_KIND_OF = {role: kind for kind, role in KINDS.items()}

#: Their names as arguments of `MemuOperations.restore`.
_GIVEN_AS = {role: "relations" if role == "links" else role for role in _ROLES}

#: The field that refers to a record which the tables may have under another id.
_REFERENCES = {"links": "category_id", "segments": "recall_file_id"}

_TIMES = ("created_at", "updated_at", "happened_at")


class MemuMoving(MemuOperations):
    """The operations of a database whose user model is given by the names of its fields.

    Args:
        config: The options.
        scope: The fields of the user model; see `scope`.

    Raises:
        UsageError: A field cannot be a column, or there is no such kind of fields.
    """

    def __init__(self, config: MySQLConfig, scope: Sequence[str]) -> None:
        self.kinds = kinds_of(scope)
        try:
            super().__init__(own_prefix(config), model_of(self.kinds), 0)
        except TypeError as error:
            raise UsageError(str(error)) from None
        self.scope_fields = tuple(self.kinds)
        self.names = table_names(self.config.table_prefix)
        self.readers = {role: reader(self, role) for role in _ROLES}

    def accept(self, role: str, record: Mapping[str, Any]) -> None:
        """Check that a record can be stored.

        Raises:
            InvalidInput: It cannot.
        """
        self._columns(role, record)

    def typed(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields with those of the scope converted to their kinds; JSON, rows and arguments have some as text.

        Raises:
            InvalidInput: A value is not of its kind.
        """
        return {
            name: value_of(name, self.kinds[name], value) if name in self.kinds else value
            for name, value in fields.items()
        }

    def fields_of(self, role: str, record: BaseRecord) -> dict[str, Any]:
        """Return the fields of a record that was read."""
        return {name: getattr(record, name) for name in (*CORE[role], *self.scope_fields)}


class MemuTransfer:
    """Exports and imports memU's records. See `Transfer`.

    Args:
        config: The options, with the tenant.
    """

    noun = "item"

    def __init__(self, config: MySQLConfig) -> None:
        self._config = config

    def source(
        self, scope: Sequence[str] = ("user_id",), where: Mapping[str, str] | None = None, **others: Any
    ) -> MemuSource:
        """Return the source that reads the records of a scope.

        Args:
            scope: The fields of the user model, as the command line has them.
            where: Values of some of these fields, which records must have; None for all records.
            others: Must be empty.
        """
        refuse_others(others, "memU's records")
        return MemuSource(self._config, scope, where or {})

    def accepts(self, head: Head) -> bool:
        """See `Transfer.accepts`."""
        return head.format == FORMAT

    def target(self, head: Head, *, overwrite: bool = False, verify: bool = False) -> MemuTarget:
        """See `Transfer.target`. Records are always compared."""
        if overwrite:
            raise InvalidInput("The file holds memU's records, which are not replaced (--overwrite).")
        scope = head.content.get("scope")
        if not isinstance(scope, list) or not all(isinstance(name, str) for name in scope):
            raise InvalidInput("The file does not name the fields of memU's user model (scope).")
        return MemuTarget(self._config, scope)


class MemuSource:
    """Reads records, kind by kind, in the order of their ids.

    Args:
        config: The options, with the tenant.
        scope: The fields of the user model.
        where: Values of fields that records must have, as in memU's filters.
    """

    def __init__(self, config: MySQLConfig, scope: Sequence[str], where: Mapping[str, str]) -> None:
        self._operations = MemuMoving(config, scope)
        asked = self._operations.typed(where)
        self._where = {role: self._operations.scope.conditions(role, asked) for role in _ROLES}
        self.head = checksummed(
            {"format": FORMAT, "tenant": config.tenant, "scope": list(scope), "where": dict(sorted(where.items()))}
        )

    def position_of(self, content: Mapping[str, Any]) -> Any:
        """Return the number of the kind, and the id, of the record in a line."""
        role, record = record_of(content)
        return _ROLES.index(role), record["id"]

    async def count(self, database: Database) -> int:
        """Return the number of the tenant's records in all scopes.

        Raises:
            UsageError: The tables have a field of the user model that is not exported.
        """
        operations = self._operations
        engine, config = database.asynchronous, operations.config
        await engine.run(check_scope(operations))  # first: its message says which scope the tables have
        await engine.run(operations.load_existing(), operations.schema, config.ddl_mode)
        return sum([await engine.run(operations.readers[role].count()) for role in _ROLES])

    async def page(self, database: Database, after: Any, limit: int) -> RecordPage:
        """Return some records."""
        kind, id = after or (0, None)
        page = RecordPage()
        while kind < len(_ROLES):
            role = _ROLES[kind]
            part = Page(("id",), None if id is None else (id,), limit)
            found = await database.asynchronous.run(self._operations.readers[role].find(self._where[role], part))
            if found:
                page.records = [line_of(role, self._operations.fields_of(role, record)) for record in found]
                page.last = (kind, found[-1].id)
                return page
            kind, id = kind + 1, None
        return page


def check_scope(operations: MemuMoving) -> Operation[None]:
    """Check that the scope names every field of the tables. Else an export would merge records of several scopes.

    Raises:
        UsageError: A field is missing, or is of another kind.
    """
    columns = yield from fetch(describe_columns(operations.schema.names))
    known = {name for core in CORE.values() for name in core} | set(operations.scope_fields)
    tables = {operations.names[role] for role in _ROLES}
    there = {column.name: kind_of(column.type) for column in columns if column.table in tables}
    others = sorted(name for name in there.keys() - known if not name.startswith("locus_"))
    wanted = ",".join(named(name, there.get(name, "str")) for name in (*operations.scope_fields, *others))
    if others:
        raise UsageError(
            f"The tables have fields that --scope does not name: {', '.join(others)}. Without them the records of "
            f"several scopes would become those of one. Give --scope {wanted}."
        )
    if unlike := [name for name, kind in operations.kinds.items() if there.get(name, kind) != kind]:
        raise UsageError(
            f"The tables have another type of field in {', '.join(unlike)} than --scope says. Give --scope {wanted}."
        )


class MemuTarget:
    """Writes memU's records.

    Args:
        config: The options, with the tenant.
        scope: The fields of the user model.
    """

    def __init__(self, config: MySQLConfig, scope: Sequence[str]) -> None:
        self._operations = MemuMoving(config, scope)
        refuse_clear_tables(config, self._operations.schema)
        self._renamed: dict[str, str] = {}

    def read(self, content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the role and the fields of the record in a line.

        Raises:
            InvalidInput: It cannot be stored.
        """
        role, record = record_of(content)
        typed = self._operations.typed(record)
        self._operations.accept(role, typed)
        return role, typed

    async def finish(self, database: Database) -> None:
        """Nothing is left."""

    async def write(
        self, database: Database, records: Sequence[tuple[str, dict[str, Any]]], report: TransferReport
    ) -> None:
        """Write records, and read them again to compare; in several transactions if one is too large."""
        try:
            await self._write(database, records, report)
        except StateTooLarge:
            if len(records) == 1:
                raise
            half = len(records) // 2
            await self.write(database, records[:half], report)
            await self.write(database, records[half:], report)

    async def _write(
        self, database: Database, records: Sequence[tuple[str, dict[str, Any]]], report: TransferReport
    ) -> None:
        engine, operations = database.asynchronous, self._operations
        await engine.run(operations.load_existing(), operations.schema, operations.config.ddl_mode)
        wanted: dict[str, dict[str, dict[str, Any]]] = {role: {} for role in _ROLES}
        for role, record in records:
            wanted[role][record["id"]] = self._relinked(role, record)
        before = {role: await self._stored(database, role, wanted[role]) for role in _ROLES}
        missing = {
            _GIVEN_AS[role]: [record for id, record in wanted[role].items() if id not in before[role]]
            for role in _ROLES
        }
        if any(missing.values()):
            self._renamed |= await engine.run(operations.restore(**missing))
            for role in _REFERENCES:
                wanted[role] = {id: self._relinked(role, record) for id, record in wanted[role].items()}
        after = {role: await self._stored(database, role, wanted[role]) for role in _ROLES}
        for role in _ROLES:
            for id, record in wanted[role].items():
                expected = _compared(role, record)
                if before[role].get(id) == expected:
                    report.present += 1
                elif id not in before[role] and after[role].get(id) == expected:
                    report.copied += 1
                else:
                    report.differ(f"The {_KIND_OF[role]} {id!r} {self._difference(role, id, after[role])}.")

    def _relinked(self, role: str, record: dict[str, Any]) -> dict[str, Any]:
        """Replace the id of a category or recall file that the tables have under another id."""
        field = _REFERENCES.get(role)
        if field is None:
            return record
        return {**record, field: self._renamed.get(str(record.get(field)), record.get(field))}

    def _difference(self, role: str, id: str, after: Mapping[str, Any]) -> str:
        if id in self._renamed:
            return f"is stored as {self._renamed[id]!r}, and its items or segments are linked with that"
        if id in after:
            return "differs in the tables"
        if role == "links":
            return "was left out: the two are linked already, or are not stored"
        return "is not stored"

    async def _stored(self, database: Database, role: str, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The stored ones of these records, for comparison."""
        wanted = list(ids)
        if not wanted:
            return {}
        found = await database.asynchronous.run(self._operations.readers[role].find((Condition("id", tuple(wanted)),)))
        return {record.id: _compared(role, self._operations.fields_of(role, record)) for record in found}


def line_of(role: str, record: Mapping[str, Any]) -> bytes:
    """Return the line of a record."""
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
    return checksummed(content)


def record_of(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the role and the fields of the record in a line.

    Raises:
        InvalidInput: The line is not a record.
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
    """Return a record in the form in which it is compared: times in UTC, 32-bit embeddings, no empty fields."""
    compared: dict[str, Any] = {}
    for name, value in record.items():
        if value is None or (name == "extra" and not value):
            continue
        if name == "embedding":
            value = bytes(encode_floats(array("f", value)))
        elif name in _TIMES and isinstance(value, datetime):
            value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        elif isinstance(value, dict | list):
            value = canonical_text(value)
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
