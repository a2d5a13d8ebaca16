"""Writing records as they were elsewhere: with their ids, times and all, as generators that do no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias, cast

from ...dialect import Statement
from ...dialect.memu.conditions import Condition, equals
from ...dialect.memu.tables import CORE
from ...dialect.statement import Param
from ...engine.operation import Batch, Operation, Outdated
from ...errors import InvalidInput
from .embeddings import encode_embedding
from .fields import time_field
from .items import encode_extra, hash_of, vector_columns
from .operations import MemuStore, text_of

#: A record, or its fields by their names.
AnyRecord: TypeAlias = object

#: Texts that may be missing.
_OPTIONAL = frozenset(("caption", "resource_id", "summary"))


class MemuOperations(MemuStore):
    """What is shared, and what is of no one repository."""

    def load_existing(self) -> Operation[None]:
        """Make or check the tables now, not at the first call. There is nothing to load."""
        yield from self.check()

    def restore(
        self,
        *,
        resources: Sequence[AnyRecord] = (),
        categories: Sequence[AnyRecord] = (),
        items: Sequence[AnyRecord] = (),
        relations: Sequence[AnyRecord] = (),
    ) -> Operation[dict[str, str]]:
        """Write records of any store with their ids, times and ``extra``; those whose ids are here already stay.

        One transaction for all but the relations, and one for these; so it may be repeated. Give at most some
        hundreds of records at once. Of several items that say the same, the first is the one that is reinforced
        from now on. A resource that is not here is forgotten by its items.

        Args:
            resources: Records, or dicts of their fields, scope included; as for the others.
            categories: One of a scope and name that are here already is not written.
            items: Written after the resources.
            relations: Written after the others; one whose item or category is not here is left out.

        Returns:
            The ids of categories that were here already under another id: what that is. Relations given in the same
            call follow it.

        Raises:
            InvalidInput: A record lacks a field, has one that is too long, or the user model does not allow its scope.
        """
        renamed: dict[str, str] = {}
        steps: list[Statement | tuple[Statement, ...]] = []
        named: dict[str, Condition] = {}
        mine: dict[str, set[str]] = {"resources": set(), "items": set()}
        for record in resources:
            values = self._columns("resources", record)
            mine["resources"].add(cast(str, values["id"]))
            steps.append(self.sql.insert_or_keep("resources", values))
        for record in categories:
            values = self._columns("categories", record)
            steps.append(self.sql.insert_or_keep("categories", values))
            named[cast(str, values["id"])] = Condition.all(
                [equals("locus_scope", values["locus_scope"]), equals("name", values["name"])]
            )
        hashed: list[str] = []
        for record in items:
            values = self._columns("items", record)
            mine["items"].add(cast(str, values["id"]))
            steps.append(self.sql.restore_item(values))
            if hash_of(fields_of(record).get("extra") or {}):
                hashed.append(cast(str, values["id"]))
        if steps:
            steps.append(self.sql.restore_hashes(self.tenant, hashed))
            steps += [self.sql.guard_there(role, self.tenant, sorted(ids)) for role, ids in mine.items() if ids]
            try:
                yield from self.write(*steps)
            except Outdated:
                raise InvalidInput(
                    "Some of these ids belong to records of another tenant in the same tables; nothing was written. "
                    "Choose another table_prefix."
                ) from None
        if named:
            reads = (self.sql.list("categories", self.tenant, condition) for condition in named.values())
            results = yield Batch(tuple(reads), atomic=False)
            for id, result in zip(named, results, strict=True):
                if result.rows and result.rows[0][0] != id:
                    renamed[id] = cast(str, result.rows[0][0])
        links = [self._link(record, renamed) for record in relations]
        if links:
            yield from self.write(*links)
        return renamed

    def _link(self, record: AnyRecord, renamed: Mapping[str, str]) -> tuple[Statement, Statement]:
        values = self._columns("links", record)
        category = cast(str, values["category_id"])
        values["category_id"] = renamed.get(category, category)
        return self.sql.link(values, tuple(self.scope.fields))

    def _columns(self, role: str, record: AnyRecord) -> dict[str, Param]:
        """The columns of a record as it is."""
        fields = fields_of(record)
        scope = self.scope.params(scope_of(role, fields, self.scope.fields))
        values: dict[str, Param] = {}
        for name in CORE[role]:
            value = fields.get(name)
            if name in {"created_at", "updated_at", "happened_at"}:
                values[name] = time_field(name).to_store(_as_time(name, value))
            elif name == "embedding":
                values[name] = encode_embedding(value)
            elif name == "extra":
                values[name] = encode_extra(value or {})
            else:
                optional = name in _OPTIONAL and not (role == "items" and name == "summary")
                values[name] = text_of(name, value, optional=optional)
        values |= {"locus_tenant": self.tenant, **scope}
        if role in {"items", "categories"}:
            values["locus_scope"] = self.scope.key(self.tenant, scope)
        if role == "items":
            values |= {"locus_hash": None, **vector_columns(cast(bytes | None, values["embedding"]))}
        return values


def fields_of(record: AnyRecord) -> dict[str, Any]:
    """The fields of a record: a dict, or a pydantic model."""
    if isinstance(record, Mapping):
        return dict(record)
    dump = getattr(record, "model_dump", None)
    if dump is None:
        raise InvalidInput(f"A record must be a dict or a pydantic model, not {type(record).__name__}.")
    fields: dict[str, Any] = dump()
    return fields


def scope_of(role: str, fields: Mapping[str, Any], known: Iterable[str] = ()) -> dict[str, Any]:
    """What a record has beside its core fields; nothing that is None, unless it is known."""
    core = {*CORE[role], "embedding_json"}  # the latter in memU's SQLite
    return {
        name: value for name, value in fields.items() if name not in core and (value is not None or name in set(known))
    }


def _as_time(name: str, value: Any) -> Any:
    """A time that may be the text of one."""
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{name} is no time in ISO 8601's form.") from None
