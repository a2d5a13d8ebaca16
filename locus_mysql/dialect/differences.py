"""Differences between the tables that a family declares and those that a database has, in words for an operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .schema import Schema
from .structure import Column, Index, Structure, declared
from .variants import Variant


class Differences(NamedTuple):
    """Sentences about the tables of a family.

    Args:
        wrong: What has to be corrected.
        extra: Columns and indexes that others added, and that do no harm.
    """

    wrong: tuple[str, ...]
    extra: tuple[str, ...]


def compare(schema: Schema, found: Mapping[str, Structure], variant: Variant | None) -> Differences:
    """Compare tables with what a family declares. Missing tables are left out.

    Args:
        schema: The family's tables.
        found: The existing tables by their names in small letters; see `structure.existing`.
        variant: The dialect of the engine; None for MySQL.
    """
    wrong: list[str] = []
    extra: list[str] = []
    for name, statement in zip(schema.names, schema.create(), strict=True):
        existing = found.get(name.lower())
        if existing is None:
            continue
        wanted = declared((statement if variant is None else variant.statement(statement)).sql)
        for index in schema.optional_indexes:
            if index not in existing.indexes:
                wanted.indexes.pop(index, None)
        if variant is not None:
            _leave_out_inner_columns(wanted.indexes, existing.indexes)
        wrong += [
            *_wrong_columns(name, wanted.columns, existing.columns),
            *_wrong_indexes(name, wanted.indexes, existing.indexes),
        ]
        if not schema.columns:  # else users choose some of the columns
            extra += _extra(name, wanted, existing)
    return Differences(tuple(wrong), tuple(extra))


def _leave_out_inner_columns(wanted: dict[str, Index], existing: dict[str, Index]) -> None:
    """Compare no parts of full-text and functional indexes: OceanBase shows hidden columns of its own for them."""
    for name, index in wanted.items():
        if name in existing and (index.fulltext or any(" " in part for part in index.parts)):
            existing[name] = existing[name]._replace(parts=index.parts)


def _wrong_columns(table: str, wanted: Mapping[str, Column], existing: Mapping[str, Column]) -> Iterator[str]:
    for name, column in wanted.items():
        have = existing.get(name)
        if have is None:
            yield f"Table {table!r} has no column {name!r} ({column.type})."
        else:
            for is_, should_be in _column_facts(have, column):
                yield f"Column {name!r} of table {table!r} {is_}; it should be {should_be}."
    for name, column in existing.items():
        if name not in wanted and column.required:
            yield (
                f"Column {name!r} of table {table!r} is not locus-mysql's, and has no default value, so no row can be "
                "added; it should allow NULL or have one."
            )


def _column_facts(have: Column, column: Column) -> Iterator[tuple[str, str]]:
    """Yield what a column is and what it should be."""
    if have.type != column.type:
        yield f"has type {have.type}", column.type
    elif have.collation != column.collation:
        yield f"has collation {have.collation}", f"{column.collation}"
    if have.nullable != column.nullable:
        yield ("may be NULL", "NOT NULL") if have.nullable else ("may not be NULL", "NULL")
    if have.generated != column.generated:
        is_ = f"is generated as ({have.generated})" if have.generated else "is not generated"
        yield is_, f"generated as ({column.generated})" if column.generated else "an ordinary column"


def _wrong_indexes(table: str, wanted: Mapping[str, Index], existing: Mapping[str, Index]) -> Iterator[str]:
    for name, index in wanted.items():
        have = existing.get(name)
        shown = name.upper() if name == "primary" else name
        if have is None:
            yield f"Table {table!r} has no index {shown!r}, {index}."
        elif have._replace(visible=True) != index:
            yield f"Index {shown!r} of table {table!r} is {have}; it should be {index}."
        elif not have.visible:
            yield f"Index {shown!r} of table {table!r} is invisible; it should be visible."


def _extra(table: str, wanted: Structure, existing: Structure) -> Iterator[str]:
    for name, column in existing.columns.items():
        if name not in wanted.columns and not column.required:
            yield f"Table {table!r} also has a column {name!r}, which locus-mysql does not use."
    for name, index in existing.indexes.items():
        if name not in wanted.indexes:
            harm = " It refuses rows that are equal in these columns." if index.unique else ""
            yield f"Table {table!r} also has an index {name!r}, {index}, which locus-mysql does not need.{harm}"
