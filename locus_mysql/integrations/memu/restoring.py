"""Writing records of any store with their ids and times, as generators that do no I/O: `MemuOperations`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast

from ...dialect import Statement
from ...dialect.statement import Param
from ...engine.operation import Batch, Operation, Outdated
from ...errors import InvalidInput
from . import statements
from .items import encode_extra, hash_of, vector_columns
from .operations import UNIQUE, MemuStore, text_of
from .records import encode_embedding
from .scope import time_field
from .statements import equals
from .tables import CORE, OPTIONAL

#: A record, or its fields by their names.
AnyRecord: TypeAlias = object

#: The values of fields that records of one of memU's protocols lack.
_MISSING = {("resources", "modality"): "", ("recall_files", "track"): "memory", ("segments", "track"): "memory"}


class MemuOperations(MemuStore):
    """The operations that the repositories share, and those that no repository has."""

    def restore(
        self,
        *,
        resources: Sequence[AnyRecord] = (),
        categories: Sequence[AnyRecord] = (),
        items: Sequence[AnyRecord] = (),
        relations: Sequence[AnyRecord] = (),
        recall_files: Sequence[AnyRecord] = (),
        segments: Sequence[AnyRecord] = (),
    ) -> Operation[dict[str, str]]:
        """Write records of any store with their ids, times and ``extra``; records whose ids are stored already stay.

        One transaction writes all records except relations and segments, and a second one these; the call may be
        repeated.
        Pass at most some hundreds of records per call. Of several items with the same content, later reinforcements
        apply to the first. An item whose resource is not stored is written without it.

        Args:
            resources: Records, or dicts of their fields and scope; the same for the other arguments.
            categories: A category is not written if one of its scope and name is stored.
            items: Written after the resources.
            relations: Written after the others; one whose item or category is not stored is left out.
            recall_files: A file is not written if one of its scope, track and name is stored.
            segments: Written after the recall files.

        Returns:
            The stored ids of categories and recall files that have another id in the store, by the given ids.
            Relations and segments in the same call use the stored ids.

        Raises:
            InvalidInput: A record lacks a field, has one that is too long, or the user model does not allow its scope.
        """
        given = {"resources": resources, "categories": categories, "items": items, "recall_files": recall_files}
        rows = {role: [self._columns(role, record) for record in records] for role, records in given.items()}
        if any(rows.values()):
            hashed = [
                cast(str, values["id"])
                for values, record in zip(rows["items"], items, strict=True)
                if hash_of(fields_of(record).get("extra") or {})
            ]
            yield from self._insert(rows, hashed)
        renamed = yield from self._other_ids("categories", rows["categories"])
        renamed |= yield from self._other_ids("recall_files", rows["recall_files"])
        linked = [self._renamed("links", "category_id", record, renamed) for record in relations]
        parts = [self._renamed("segments", "recall_file_id", record, renamed) for record in segments]
        links = [self.records["links"].insert(values, declared=statements.LINK) for values in linked]
        links += [self.records["segments"].insert(values, statements.KEEP) for values in parts]
        links += self._guard("segments", parts)
        if links:
            yield from self._write_all(*links)
        return renamed

    def _insert(self, rows: Mapping[str, Sequence[dict[str, Param]]], hashed: Sequence[str]) -> Operation[None]:
        """Insert records whose ids are not stored, in one transaction."""
        steps = [
            self.records[role].insert(
                self.sealed(role, values), statements.KEEP, statements.RESTORED if role == "items" else {}
            )
            for role in ("resources", "categories", "recall_files", "items")
            for values in rows[role]
        ]
        if hashed:
            steps.append(self.records["items"].make(statements.RESTORE_HASHES, ids=[*hashed]))
        for role, given in rows.items():
            steps += self._guard(role, given)
        yield from self._write_all(*steps)

    def _guard(self, role: str, rows: Sequence[Mapping[str, Param]]) -> list[Statement]:
        """Return a guard that none of these ids belongs to another tenant; none if there are no rows."""
        ids = sorted({cast(str, values["id"]) for values in rows})
        return [self.records[role].make(statements.GUARD_OWN, ids=ids)] if ids else []

    def _write_all(self, *steps: Statement) -> Operation[None]:
        try:
            yield from self.write(*steps)
        except Outdated:
            raise InvalidInput(
                "Some of these ids belong to records of another tenant in the same tables; nothing was written. "
                "Choose another table_prefix."
            ) from None

    def _other_ids(self, role: str, rows: Sequence[Mapping[str, Param]]) -> Operation[dict[str, str]]:
        """Return the stored ids of records that have another id in the store, by the given ids."""
        queries = {}
        for values in rows:
            unique = equals(**{name: values[name] for name in UNIQUE if name in values})
            queries[cast(str, values["id"])] = self.records[role].make(statements.AGES, unique)
        if not queries:
            return {}
        results = yield Batch(tuple(queries.values()), atomic=False)
        found = {id: results.row(query) for id, query in queries.items()}
        return {id: stored.id for id, stored in found.items() if stored is not None and stored.id != id}

    def _renamed(self, role: str, field: str, record: AnyRecord, renamed: Mapping[str, str]) -> dict[str, Param]:
        """Return the sealed columns of a record that refers to another one, by the id under which that is stored."""
        values = self._columns(role, record)
        id = cast(str, values[field])
        return self.sealed(role, {**values, field: renamed.get(id, id)})

    def _columns(self, role: str, record: AnyRecord) -> dict[str, Param]:
        """Return the columns of a record."""
        fields = fields_of(record)
        scope = self.scope.params(scope_of(role, fields, self.scope.fields))
        values: dict[str, Param] = {}
        for name in CORE[role]:
            value = fields.get(name, _MISSING.get((role, name)))
            if name in {"created_at", "updated_at", "happened_at"}:
                values[name] = time_field(name).to_store(_as_time(name, value))
            elif name == "embedding":
                values[name] = encode_embedding(value)
            elif name == "extra":
                values[name] = encode_extra(value or {})
            else:
                values[name] = text_of(name, value, optional=name in OPTIONAL[role])
        values |= {"locus_tenant": self.tenant, **scope}
        if role in {"items", "categories", "recall_files"}:
            values["locus_scope"] = self.scope.key(self.tenant, scope)
        if role == "items":
            values |= {"locus_hash": None, **vector_columns(cast(bytes | None, values["embedding"]))}
        return values


def fields_of(record: AnyRecord) -> dict[str, Any]:
    """Return the fields of a record, which is a dict or a pydantic model."""
    if isinstance(record, Mapping):
        return dict(record)
    dump = getattr(record, "model_dump", None)
    if dump is None:
        raise InvalidInput(f"A record must be a dict or a pydantic model, not {type(record).__name__}.")
    fields: dict[str, Any] = dump()
    return fields


def scope_of(role: str, fields: Mapping[str, Any], known: Iterable[str] = ()) -> dict[str, Any]:
    """Return the fields of a record besides its core fields, without unknown fields that are None."""
    core = {*CORE[role], "embedding_json"}  # memU's SQLite store has unknown fields that are None
    return {
        name: value for name, value in fields.items() if name not in core and (value is not None or name in set(known))
    }


def _as_time(name: str, value: Any) -> Any:
    """Return a time that may be given as text."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{name} is no time in ISO 8601's form.") from None
