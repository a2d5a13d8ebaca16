"""The declaration of a family's tables: `Tables`, with an `Owner` and its `Part` tables.

An owner is the row that a write locks first: a thread, a session, a transcript. Parts are the rows that belong to it.
Moving rows and encrypting them anew are derived from this declaration; neither knows a family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from ..dialect import Schema, Statement
from ..dialect.resealing import OwnerTable, SealedColumn
from ..engine.operation import Operation
from ..runtime.sealing import Sealing, Value

#: The columns of a row by name.
Row: TypeAlias = Mapping[str, Any]

#: A column in a CREATE TABLE statement; names are quoted or in lower case, other clauses begin with an upper-case word.
_COLUMN = re.compile(r"^ {2,}(?:`(\w+)`|([a-z]\w*)) +(.*)$", re.MULTILINE)


class Sealed(NamedTuple):
    """A column whose bytes carry their seal.

    Args:
        column: The column.
        name: The name under which its bytes are bound to it.
        row: The columns that identify the row.
        base: The SQL expression of what identifies the row that it builds on; empty if rows do not build on each other.
        identity: Returns what identifies an encrypted row; None if that is the values of ``row``.
        cleared: Columns with words of the content in clear text, which are NULL if the content is encrypted.
        seal: The column with the checksum of text that the server reads, which is NULL if the text is encrypted.
        kind: The format of such text; see `Sealing.seal_text`.
        words: Returns the columns of ``cleared`` from such text, for a source that does not store them.
        emptied: The role of a table with clear text of this column, whose rows are removed if it is encrypted anew.
    """

    column: str
    name: str
    row: tuple[str, ...] = ()
    base: str = ""
    identity: Callable[[Row], tuple[Value, ...]] | None = None
    cleared: tuple[str, ...] = ()
    seal: str = ""
    kind: bytes = b""
    words: Callable[[str], Row] | None = None
    emptied: str = ""


class Seal(NamedTuple):
    """A column that is made from the others of its row, such as the checksum of readable columns.

    Args:
        column: The column.
        of: Returns its value from the owner's sealing and the row, which has the tenant as ``tenant``; None if the
            row's is not checked.
        fits: Returns whether the row that was read fits it; None if the value must be the same.
    """

    column: str
    of: Callable[[Sealing, Row], Any]
    fits: Callable[[Row], bool] | None = None


class Spaces(NamedTuple):
    """Namespaces, by which owners are selected.

    Args:
        column: The column with the path of an owner's namespace; those below it begin with its path.
        path_of: Returns the path of labels; empty without labels, else with a NUL at the end.
    """

    column: str
    path_of: Callable[[Sequence[str]], bytes]


#: Returns the statements that write owners, in one transaction, before their own rows are inserted: the first ones,
#: which take locks, and those that replace parts. The arguments: the tenant, the token of the write, the rows of the
#: owners, and those of their parts by their tables.
Writing: TypeAlias = Callable[
    [str, bytes, Sequence[Row], Mapping[str, Sequence[tuple[Any, ...]]]], tuple[list[Statement], list[Statement]]
]

#: Returns the statements that remove owners besides their own rows, in one transaction: those that come before these
#: are removed, which take locks, and those that come after it, which remove the parts. The arguments: the tenant, the
#: token of the removal, and the owners.
Removing: TypeAlias = Callable[[str, bytes, Sequence[Row]], tuple[list[Statement], list[Statement]]]


def path_of_key(columns: Sequence[str]) -> str:
    """Return the SQL expression of a key of several columns as a path, of the row ``o``.

    A last column that is empty is left out. ``~``, ``/`` and NUL are escaped as ``~0``, ``~1`` (as in JSON Pointer, RFC
    6901) and ``~2``.
    """
    *first, last = (f"REPLACE(REPLACE(REPLACE(o.{one}, '~', '~0'), '/', '~1'), CHAR(0), '~2')" for one in columns)
    path = f"CONCAT_WS('/', {', '.join(first)}, IF(LENGTH(o.{columns[-1]}) = 0, NULL, {last}))"
    return f"CONVERT({path} USING utf8mb4) COLLATE utf8mb4_0900_bin"


@dataclass(frozen=True)
class Table:
    """A table whose rows are moved.

    Args:
        role: Its role in `Tables.names`.
        key: Its primary key after the tenant.
        sealed: Its columns with sealed bytes.
        seals: Its columns that are made from others, in this order.
        large: Further columns whose lengths count for the size of a page.
        noun: What a row is, in the singular.
        title: The column that names a row in messages; empty if the key does.
        unmoved: Columns that are not moved, such as those that say who uses the row at present.
    """

    role: str
    key: tuple[str, ...]
    sealed: tuple[Sealed, ...] = ()
    seals: tuple[Seal, ...] = ()
    large: tuple[str, ...] = ()
    noun: str = "row"
    title: str = ""
    unmoved: tuple[str, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        """The columns that are made anew, such as checksums."""
        return (*(one.column for one in self.seals), *(one.seal for one in self.sealed if one.seal))

    @property
    def sized(self) -> tuple[str, ...]:
        """The columns whose lengths count for the size of a page."""
        return (*(one.column for one in self.sealed), *self.large)

    @property
    def cleared(self) -> frozenset[str]:
        """The columns with words of the content in clear text."""
        return frozenset(name for one in self.sealed for name in one.cleared)


@dataclass(frozen=True)
class Owner(Table):
    """The table of owners.

    Args:
        version: Columns that are different after every write, so that owners with equal values have equal parts; empty
            if the rows have to be compared.
        epoch: Columns that are different after every write that changes or removes a row; if empty, those of
            ``version``.
        fresh: Columns of random bytes that a moved owner must not share with its source, with their lengths.
        id: The column with random bytes that identifies the owner in its parts; empty if the key does.
        size: The column with the sum of the lengths of a sealed column of the parts; empty if there is none.
        bound: The columns of the key to which sealed bytes are bound; empty for all.
        described: Returns the name of an owner for messages, after the noun; None for the values of its key.
        spaces: The namespaces of owners; None if they have none.
        named: The column that ``--thread`` and ``--pattern`` select by; empty if there is none.
        updated: The column with the time of the last write; empty if there is none.
        stamp: The column with the time of the last write, or with microseconds since 1970; empty for ``recent``.
        created: The column with the time of the first write.
        rows: The column with the number of rows of the first table of parts; empty if there is none.
        expires: The column with the time from which on an owner is expired; empty if owners do not expire.
        fields: Columns that the user chose and may select by, with functions that return the stored value of a text.
        name: The SQL expression of an owner's name, of the row ``o``; empty for the first column of the key.
        written: The SQL expression of the time of the last write, of the row ``o``; empty for ``updated``.
        recent: A column in whose order the times of the last writes rise, with an index after the tenant; empty if
            there is none.
        idles: Whether an owner is removed after some days without a write.
        turns: The columns by which callers take turns on owners (`leases`): one with a turn is not removed by age.
        totals: Columns whose sums say how much is stored, each with a noun as in `Count`.
        together: The number of owners that one transaction removes.
        about: The SQL expression of about how many parts an owner ``o`` has, from its own row; empty if that is
            ``rows``, or unknown.
    """

    version: tuple[str, ...] = ()
    epoch: tuple[str, ...] = ()
    fresh: tuple[tuple[str, int], ...] = ()
    id: str = ""
    size: str = ""
    bound: tuple[str, ...] = ()
    described: Callable[[Row], str] | None = None
    spaces: Spaces | None = None
    named: str = ""
    updated: str = ""
    stamp: str = ""
    created: str = "created_at"
    rows: str = ""
    expires: str = "expires_at"
    fields: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    name: str = ""
    written: str = ""
    recent: str = ""
    idles: bool = False
    turns: tuple[str, ...] = ()
    totals: tuple[tuple[str, str], ...] = ()
    together: int = 1
    about: str = ""


@dataclass(frozen=True)
class Part(Table):
    """A table of parts.

    Args:
        since: A column of the part and one of its owner: only rows that are not below it are valid. None if all are.
        removed: A column that is 0 in valid rows; empty if there is none.
        counted: The SQL condition of rows whose number is what an owner holds, such as checkpoints; empty if none are.
        size: The SQL expression of the bytes of a row ``c``; empty for those of its sealed columns.
        at: The column with the time at which a row was written, for statistics by day; empty for that of its owner.
        beside: The SQL expression of the bytes that a row ``c`` has in other tables of parts; empty if it has none.
    """

    since: tuple[str, str] | None = None
    removed: str = ""
    counted: str = ""
    size: str = ""
    at: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Tables:
    """The tables of a family with one prefix.

    Args:
        schema: The tables.
        names: Their unquoted names by role; that of the ledger is ``ledger``.
        owner: The table of owners.
        parts: The tables of parts, in an order in which rows only need rows that come before them.
        writing: Writes owners with more than their rows, always in one transaction; None if rows are all.
        tenant: The column with the tenant.
        replaceable: Whether owners that differ may be replaced.
        scope: The columns that the user chose, as the command line names them.
        check: Checks the tables before they are read; None if nothing is to be checked.
        removing: Removes the parts of owners; None if that needs no more than their link.
        restores: Whether the family itself repairs or removes parts without an owner.
    """

    schema: Schema
    names: Mapping[str, str]
    owner: Owner
    parts: tuple[Part, ...] = ()
    writing: Writing | None = None
    tenant: str = "tenant"
    replaceable: bool = True
    scope: tuple[str, ...] = ()
    check: Callable[[], Operation[None]] | None = None
    removing: Removing | None = None
    restores: bool = False

    @property
    def link(self) -> tuple[str, ...]:
        """The columns after the tenant that an owner and its parts have in common."""
        return (self.owner.id,) if self.owner.id else self.owner.key

    @property
    def seen(self) -> tuple[str, ...]:
        """The columns by which a stored owner is recognised as the one that was read."""
        owner = self.owner
        return tuple(dict.fromkeys((*owner.key, *owner.version, *owner.epoch, *self.link)))

    @cached_property
    def _columns(self) -> dict[str, dict[str, str]]:
        roles = {name: role for role, name in self.names.items()}
        return {
            roles[table.name]: {
                quoted or plain: kind
                for quoted, plain, kind in _COLUMN.findall(table.definition)
                if " AS (" not in f" {kind}"
            }
            for table in self.schema.tables
        }

    def kinds(self, table: Table) -> Mapping[str, str]:
        """Return the columns of a table that are written, each with what follows its name in the definition."""
        return self._columns[table.role]

    def row(self, table: Table, names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
        """Return a row that was read, by its columns. Where ids are binary, as on OceanBase, they become text."""
        texts = self._texts[table.role]
        return {
            name: value.decode(errors="replace") if isinstance(value, bytes) and name in texts else value
            for name, value in zip(names, values, strict=False)
        }

    @cached_property
    def _texts(self) -> dict[str, frozenset[str]]:
        return {
            role: frozenset(name for name, kind in columns.items() if kind.startswith(("VARCHAR", "CHAR")))
            for role, columns in self._columns.items()
        }

    def columns(self, table: Table) -> tuple[str, ...]:
        """Return the columns of a table that are moved, in their order.

        The tenant, the link and the checksums are not among them: they are made anew.
        """
        left = {self.tenant, *table.made, *table.unmoved}
        left |= {table.id} if isinstance(table, Owner) else {*self.link}
        return tuple(name for name in self._columns[table.role] if name not in left)

    def encrypted_columns(self) -> tuple[SealedColumn, ...]:
        """Return the sealed columns for the statements that encrypt them anew."""
        owner = self.owner
        own = (
            OwnerTable(self.names[owner.role], ("tenant", *owner.key), ("tenant", owner.id), size=owner.size)
            if owner.id
            else None
        )
        return tuple(
            SealedColumn(
                self.names[table.role],
                key=("tenant", *table.key),
                owner=owner.bound or owner.key,
                row=one.row,
                column=one.column,
                name=one.name,
                seal=one.seal,
                kind=one.kind,
                is_text=bool(one.kind),
                emptied=self.names[one.emptied] if one.emptied else None,
                base=one.base,
                cleared=one.cleared,
                identity=one.identity,
                owner_table=own if table is not owner else None,
            )
            for table in (owner, *self.parts)
            for one in table.sealed
        )
